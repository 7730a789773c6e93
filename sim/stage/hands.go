// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/vm"
)

// Hold kills a process and keeps everybody from starting it, until the function that it returns is called: then it
// starts, unless it is held by others still or its machine has no power.
func (s *Stage) Hold(name string) (release func()) {
	m := s.machine(name)
	m.held++
	s.Kill(name)
	return func() {
		if m.held--; m.held == 0 {
			s.Start(name)
		}
	}
}

// Install has the next lives of a machine's process be of a release.
func (s *Stage) Install(name, release string) { s.machine(name).release = release }

// Downgrade has the next lives of a machine's process be of the older release, whatever is installed, and no longer so.
func (s *Stage) Downgrade(name string, on bool) { s.machine(name).back = on }

// Recover has the next process of a member, which must not run, make a group of one of the folder and end, or one process more; a member
// follows.
func (s *Stage) Recover(name string) { s.machine(name).rescues++ }

// Freeze stops a process, as SIGSTOP does; Thaw has it go on. Who is killed meanwhile is not frozen in its next life.
func (s *Stage) Freeze(name string) {
	if p := s.machine(name).process; p != nil {
		p.Pause(vm.Forever)
	}
}

// Thaw ends Freeze.
func (s *Stage) Thaw(name string) {
	if p := s.machine(name).process; p != nil {
		p.Pause(0)
	}
}

// Gains is by how much the clock of a machine runs wrong by itself, in parts per million.
func (s *Stage) Gains(name string) int { return s.machine(name).gains }

// Record is what the group agreed on; nil where nobody keeps account of it.
func (s *Stage) Record() *fsm.View {
	if s.options.Record == nil {
		return nil
	}
	return s.options.Record()
}
