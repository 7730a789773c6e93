// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"fmt"
	"strings"
	"sync"
	"syscall"

	"fairlead.io/fairlead/e2e/lab"
)

// troupe are the members, and what several faults do to one of them at once, so that they do not fight: a member runs while none keeps it
// down, and stands still until the last that wants so has ended.
type troupe struct {
	r     *run
	roles map[*lab.Member]*role
	asks  sync.WaitGroup // commands of operators that are under way
}

type role struct {
	belongs     bool // to the group, or is on its way into it
	down, still int  // by so many faults
	excused     string
}

func newTroupe(r *run) *troupe {
	tr := &troupe{r: r, roles: map[*lab.Member]*role{}}
	for i, m := range r.Members {
		tr.roles[m] = &role{belongs: i < first}
	}
	return tr
}

// members are those of the group.
func (tr *troupe) members() (out []*lab.Member) {
	for _, m := range tr.r.Members {
		if tr.roles[m].belongs {
			out = append(out, m)
		}
	}
	return out
}

func (tr *troupe) size() int { return len(tr.members()) }

// down keeps a member down from now on, and up lets it run again.
func (tr *troupe) down(m *lab.Member) {
	if tr.roles[m].down++; m.Runs() {
		m.Kill()
	}
}

func (tr *troupe) up(m *lab.Member) {
	if o := tr.roles[m]; o.down > 0 {
		o.down--
	}
	tr.start(m)
}

// start runs a member that nothing keeps down.
func (tr *troupe) start(m *lab.Member) {
	if o := tr.roles[m]; o.down == 0 && o.belongs && !m.Runs() {
		m.Start()
	}
}

// halt has a member stand still (SIGSTOP), and resume ends that.
func (tr *troupe) halt(m *lab.Member) {
	if tr.roles[m].still++; m.Runs() {
		m.Signal(syscall.SIGSTOP)
	}
}

func (tr *troupe) resume(m *lab.Member) {
	o := tr.roles[m]
	if o.still--; o.still == 0 && m.Runs() {
		m.Signal(syscall.SIGCONT)
	}
}

// count notices who ended by himself, and fails the test unless a fault excuses that.
func (tr *troupe) count() {
	for _, m := range tr.r.Members {
		code, ended := m.EndedByItself()
		if !ended {
			continue
		}
		lines := strings.Split(strings.TrimSpace(m.Log()), "\n")
		last := fmt.Sprintf("%s ended by itself with code %d: %s", m.Name, code, lines[len(lines)-1])
		tr.r.trace.note("%s", last)
		if tr.roles[m].excused == "" || code != 1 {
			tr.r.t.Fatal(last)
		}
	}
}

// heal ends what is left of faults.
func (r *run) heal() {
	r.t.Helper()
	r.trace.note("all is healed")
	for _, m := range r.Members {
		o := r.troupe.roles[m]
		if o.still > 0 && m.Runs() {
			m.Signal(syscall.SIGCONT)
		}
		o.down, o.still = 0, 0
		r.troupe.start(m)
	}
}

// settled waits for what faults began and what needs a group that is whole.
func (r *run) settled() {
	r.t.Helper()
	r.troupe.asks.Wait()
	for _, m := range r.troupe.members() {
		r.troupe.start(m)
		r.troupe.roles[m].excused = ""
	}
}
