// SPDX-License-Identifier: Apache-2.0

// Package fsmtest gives tests a record without a group around it: what is told to it is applied at once, as the log does it.
package fsmtest

import "fairlead.io/fairlead/fsm"

// T is what testing.TB, rapid's T and others have in common.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// New is the record of a group of the newest format that has just been formed.
func New(t T, group fsm.GroupID) *fsm.State {
	t.Helper()
	return NewOf(t, group, fsm.NewestFormat)
}

// NewOf is New of another format.
func NewOf(t T, group fsm.GroupID, format uint32) *fsm.State {
	t.Helper()
	s := fsm.New()
	Tell(t, s, &fsm.InitGroup{Group: group, Format: format})
	return s
}

// Tell applies commands, each as an entry of its own, and wants all of them accepted.
func Tell(t T, s *fsm.State, commands ...fsm.Command) {
	t.Helper()
	for _, c := range commands {
		if err := Try(t, s, c).Err(); err != nil {
			t.Fatalf("%T: %v", c, err)
		}
	}
}

// Try applies a command, and gives what came of it.
func Try(t T, s *fsm.State, c fsm.Command) fsm.Outcome {
	t.Helper()
	return Commit(t, s, fsm.Proposal{Actor: "test", Command: c})[0]
}

// Commit applies proposals as one entry at the next index, in the epoch that the record is in, and gives what came of each.
func Commit(t T, s *fsm.State, proposals ...fsm.Proposal) []fsm.Outcome {
	t.Helper()
	_, epoch, _ := s.Identity()
	data, err := s.Read().EncodeEntry(epoch, proposals)
	if err != nil {
		t.Fatalf("encode an entry: %v", err)
	}
	return s.ApplyEntries([]fsm.LogEntry{{Index: s.Applied() + 1, Term: 1, Data: data}})[0]
}
