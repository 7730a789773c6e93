// SPDX-License-Identifier: Apache-2.0

package member

import (
	"testing"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
)

// applyTo gives what has a record carry commands out, one entry each.
func applyTo(t *testing.T, s *fsm.State) func(...fsm.Command) {
	return func(commands ...fsm.Command) {
		t.Helper()
		fsmtest.Tell(t, s, commands...)
	}
}
