// SPDX-License-Identifier: Apache-2.0

// Package policystatus shows in Kubernetes what the group's record holds of each policy of client-side balancing: conditions, counts,
// and Events.
//
// What it writes is a projection of record and object. Nothing is read back from it; what agrees is not written, and what others put into
// the status is left alone. A policy that the record does not hold yet is told why, by what the sources and the leader say of it.
//
// Decisions are pure: Project says what the status shall be, tell what to say in Events, scan whom a change of the record may concern.
// Projector joins them to an API server, for one term of the leader. Start reading at Project.
package policystatus
