// SPDX-License-Identifier: Apache-2.0

// Package member puts one member of the controller group together: record, Raft, API, leader, sources and BGP,
// each joined to the others by a small adapter. It decides nothing itself. Several members may live in one
// process, as in `fairlead dev`.
//
// Start reading at Open, then Run; one file for each seam: edges.go (the machine), admingroup.go (operator's verbs),
// joiner.go (founding and joining), forward.go (proposals to the leader), announce.go (record to BGP), lead.go (the
// leader's work), admission.go and drivers.go (LBCF's kinds and their drivers).
package member
