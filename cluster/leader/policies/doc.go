// SPDX-License-Identifier: Apache-2.0

// Package policies plans policies of client-side balancing: it compares the objects of both kinds, and the Services, nodes and pods
// that they choose, with the record, and proposes what is missing (balancing specification, sections 4 to 9).
//
// Plan is pure and deterministic. It proposes nothing once the record is as it shall be, and takes nothing away on absence without
// evidence: what is there and says no is evidence, what is not there needs MayRemove. Who wins where two policies capture the same is
// left to the hosts, which know what is effective there; here the loser is told.
//
// Start reading at Input and Plan, then planner.resolve for what a policy becomes.
package policies
