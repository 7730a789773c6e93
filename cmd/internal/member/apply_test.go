// SPDX-License-Identifier: Apache-2.0

package member

import (
	"testing"

	"fairlead.io/fairlead/fsm"
)

// applyTo gives what has a record carry commands out, one entry each.
func applyTo(t *testing.T, s *fsm.State) func(...fsm.Command) {
	return func(commands ...fsm.Command) {
		t.Helper()
		for _, c := range commands {
			_, epoch, _ := s.Identity()
			data, err := fsm.EncodeEntry(epoch, []fsm.Proposal{{Actor: "test", Command: c}})
			if err != nil {
				t.Fatal(err)
			}
			if o := s.ApplyEntries([]fsm.LogEntry{{Index: s.Applied() + 1, Term: 1, Data: data}})[0][0]; o.Err() != nil {
				t.Fatalf("%T: %v", c, o.Err())
			}
		}
	}
}
