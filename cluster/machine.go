// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"io"

	"fairlead.io/fairlead/fsm"
)

// The record's words, which go through this package unread.
type (
	Index    = fsm.Index
	LogEntry = fsm.LogEntry
	Outcome  = fsm.Outcome
	Proposal = fsm.Proposal
)

// Machine is the replicated record as this package needs it. One goroutine calls it at a time.
type Machine interface {
	// ApplyEntries applies committed entries in order and gives one outcome per command of each entry. It panics
	// on an entry that it cannot understand: skipping it would fork the record.
	ApplyEntries(entries []LogEntry) [][]Outcome
	// Freeze gives the state as it is now, at no cost that grows with its size.
	Freeze() Frozen
	// Restore replaces the state by one that Frozen.Write wrote.
	Restore(r io.Reader) error
	// ReplaceBy replaces the state by a backup's, an own one of Options.NewMachine, after it applied renewal to that, and gives the outcomes
	// of renewal. If one is a refusal, nothing is replaced. It costs nothing that grows with the size of either.
	ReplaceBy(backup Machine, renewal LogEntry) []Outcome
}

// Frozen is a state that no longer changes. Write may run beside further applies, any number of times, and writes
// the same bytes each time.
type Frozen interface {
	Write(w io.Writer) error
}

// Record makes the record a Machine.
type Record struct{ *fsm.State }

// ReplaceBy implements Machine.
func (r Record) ReplaceBy(backup Machine, renewal LogEntry) []Outcome {
	return r.State.ReplaceBy(backup.(Record).State, renewal)
}

// Freeze takes the record as it is.
func (r Record) Freeze() Frozen { return r.State.Freeze() }
