// SPDX-License-Identifier: Apache-2.0

// Package balancers plans outside load balancers: it compares the objects of LBCF's kinds, and the pods, Services and
// nodes that they choose, with the record, and proposes what is missing (load balancer specification, sections 2 and 5).
//
// Plan is pure and deterministic. It proposes nothing once the record is as it shall be, and takes nothing away on
// absence without evidence: an object that is there and says no is evidence, one that is not there needs MayRemove.
// What another controller registered is taken over as it is, and its driver is not asked again (lbcf §13).
//
// An Index plans the same at the cost of what changed since it planned last. What it keeps is the record by what is looked up
// (index.go), and which owners of pods need no look at all as long as nothing about them changes (settled.go).
//
// Start reading at Input and Plan, then owner for what groups and Binds want, and leaving for what goes.
package balancers
