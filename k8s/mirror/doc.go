// SPDX-License-Identifier: Apache-2.0

// Package mirror shows in Kubernetes what the group's record holds of outside load balancers, in LBCF's objects: a
// BackendRecord for each binding, the status of LoadBalancers, Binds, BackendGroups and LoadBalancerDrivers, their
// finalizers, and Events.
//
// The record is the truth and all this a projection. What it promises: whatever happens to the API server and to the
// leader, objects come to show the record, and then nothing is written; a bound backend costs an object and one write
// of its status; a BackendRecord that is neither ours (it says so in AnnotationRecord of package lbcf) nor taken over is left alone; a
// finalizer is taken away only when the record proves that what it stands for is over.
//
// Decisions are pure: planRecord, planBalancer, planBind, planGroup and planDriver say what to write, eventsOf what to
// say in Events. Mirror joins them to an API server, for one term of the leader. Start reading at planRecord.
package mirror
