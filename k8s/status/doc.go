// SPDX-License-Identifier: Apache-2.0

// Package status shows in Kubernetes what the group's record holds of each Service of type LoadBalancer: its addresses
// in status.loadBalancer, two conditions, and Events; and, where that is asked for, a finalizer that keeps it until they are free.
//
// What it writes is a projection. Nothing is read back from it but what people were told already; deleting it by hand
// gets it written again. It writes only where something differs from what the API server shows, only on Services that
// are ours by their class, and there only the fields that it owns as field manager "fairlead". Who keeps overwriting
// them is given way to: see writes.Pace.
//
// The finalizer is the only field outside of the status, and applied by itself.
//
// Decisions are pure: Project says what to write, tell what to say in Events, scan whom a change of the record may
// concern. Projector joins them to an API server, for one term of the leader. Start reading at Project.
package status
