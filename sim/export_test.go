// SPDX-License-Identifier: Apache-2.0

package sim

import "fairlead.io/fairlead/sim/scenario"

// PlayOn is Play on one of the cores, counted from 0.
func PlayOn(core int, s scenario.Scenario, o Setting) (Result, error) {
	var r Result
	err := make(chan error)
	go func() {
		stayOn(core)
		var failed error
		r, failed = Play(s, o)
		err <- failed
	}()
	return r, <-err
}
