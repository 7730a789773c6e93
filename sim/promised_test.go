// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"testing"
	"time"

	"fairlead.io/fairlead/sim"
	"fairlead.io/fairlead/sim/fault"
	"fairlead.io/fairlead/sim/scenario"
)

// design §6 and §10: a node that dies is out of the routes of every switch within a second, by the time of a world, which no other work
// of the machine makes longer. When a member dies at the same moment, whichever that is, the second begins with the next leader.
func TestDeadNodeIsOutOfTheRoutesWithinASecond(t *testing.T) {
	t.Parallel()
	m := shipped(t)
	for member := range 4 {
		name := "alone"
		if member > 0 {
			name = fmt.Sprintf("with-m%d", member)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := scenario.Scenario{Seed: 1, Duration: 15 * time.Second, Members: 3, Nodes: 3, Switches: 1, Services: 4}
			for i, at := range []time.Duration{6 * time.Second, 13 * time.Second} {
				s.Faults = append(s.Faults, fault.Fault{Kind: "node-death", At: at + time.Duration(i)*70*time.Millisecond, For: 3 * time.Second, On: []string{fmt.Sprintf("n%d", i+1)}})
				if member > 0 {
					s.Faults = append(s.Faults, fault.Fault{Kind: "kill", At: at, For: 3 * time.Second, On: []string{fmt.Sprintf("m%d", member)}})
				}
			}
			r, err := play(s, sim.Setting{Program: m, Follow: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if v := r.Violation; v != nil {
				t.Errorf("%s broke at %v: %s: %s", v.Rule, v.At, v.Subject, v.Text)
			}
		})
	}
}
