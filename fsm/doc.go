// SPDX-License-Identifier: Apache-2.0

// Package fsm holds the replicated record: services and the addresses they own, routes and the nodes behind
// them, bindings on outside load balancers and the operations that carry them out, nodes, peers, leases,
// holds and the members themselves.
//
// A State changes only through ApplyEntries, in log order, and applying reads nothing but the State and the
// entry: no clock, no randomness, no map order. A refused command changes nothing and yields an Outcome that
// is equal on every replica; an entry that cannot be understood is a panic, because skipping it would fork
// the record in silence. Planning lives elsewhere: commands say what to record, guards say what may never be.
//
// Read table.go for what is kept, command.go for what may change it, state.go for how entries are applied,
// and one file per noun for its record, its commands and their guards.
package fsm
