// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

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
	belongs     bool      // to the group, or is on its way into it
	down, still int       // by so many faults
	full        int       // likewise its disk
	room        time.Time // since when it has room again, once it was full
	excused     string    // why it may end by itself
	damaged     bool      // what it keeps was changed behind its back: it is replaced when the round is over
	joined      bool      // the group had it among its voters
	leaves      bool      // an operator removes it
}

func newTroupe(r *run) *troupe {
	tr := &troupe{r: r, roles: map[*lab.Member]*role{}}
	for i, m := range r.Members {
		tr.roles[m] = &role{belongs: i < first, joined: i < first}
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

// anyStill tells whether a member stands still.
func (tr *troupe) anyStill() bool {
	for _, o := range tr.roles {
		if o.still > 0 {
			return true
		}
	}
	return false
}

// leaving is how long a member may take to end over a write that failed: one that does not come back is waited for for 10 s, and it takes leave
// of the switch.
const leaving = 15 * time.Second

// count notices who ended by himself, and fails the test unless a fault excuses that. Who met a full disk may end once there is room again, and is
// started then.
func (tr *troupe) count() {
	for _, m := range tr.r.Members {
		code, ended := m.EndedByItself()
		if !ended {
			continue
		}
		lines := strings.Split(strings.TrimSpace(m.Log()), "\n")
		last := fmt.Sprintf("%s ended by itself with code %d: %s", m.Name, code, lines[len(lines)-1])
		tr.r.trace.note("%s", last)
		late := strings.Contains(last, syscall.ENOSPC.Error()) && time.Since(tr.roles[m].room) < leaving
		if tr.roles[m].excused == "" && !late || code != 1 {
			tr.r.t.Fatal(last)
		}
		if !strings.Contains(lines[len(lines)-1], "fairlead: ") {
			tr.r.t.Fatalf("no word of why: %s", last)
		}
		if late {
			tr.start(m)
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

// ask has an operator give a command, while other things happen.
func (tr *troupe) ask(kind string, args ...string) {
	tr.r.trace.act(kind, "fairlead %s", strings.Join(args, " "))
	tr.asks.Go(func() {
		out, stderr, code := tr.r.CLI(args...)
		tr.r.trace.note("fairlead %s ended with %d: %s", strings.Join(args, " "), code, strings.Join(strings.Fields(out+stderr), " "))
		if code < 0 {
			tr.r.t.Errorf("fairlead %s did not come back", strings.Join(args, " "))
		}
	})
}

// replace empties a member's folder, with which it is a new server.
func (tr *troupe) replace(m *lab.Member) {
	if m.Runs() {
		m.Kill()
	}
	tr.wipe(m)
	tr.start(m)
}

// wipe empties the folder of a member that does not run.
func (tr *troupe) wipe(m *lab.Member) {
	m.Wipe()
	tr.roles[m].damaged, tr.roles[m].joined = false, false
}

// settled waits for what faults began and what needs a group that is whole: who leaves is gone, and who is damaged begins anew.
func (r *run) settled() {
	r.t.Helper()
	r.troupe.asks.Wait()
	for _, m := range r.Members {
		o := r.troupe.roles[m]
		if o.leaves {
			r.leaves(m)
		}
		r.troupe.count()
		if o.damaged {
			r.trace.note("%s is replaced", m.Name)
			r.troupe.replace(m)
		}
		r.troupe.start(m)
		if o.excused = ""; o.belongs {
			r.joins(m)
		}
	}
}
