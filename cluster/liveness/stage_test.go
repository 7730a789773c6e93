// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
)

// stage is a small world of nodes, members and a leader, in virtual time. It knows what is true, which the judge does
// not, and keeps its own account of it.
type stage struct {
	now   time.Duration
	rtt   time.Duration // of every question to a member
	nodes []*machine
	folk  []*folk
	holds []*fsm.Hold
	judge *Judge
	began time.Duration
	last  Decision
	queue []event
	seq   int
	onAny func(*machine, Verdict) // called before a verdict is committed
	log   []string
}

// machine is a node: its kernel, its agent, and what the record says of it.
type machine struct {
	record       fsm.Node
	boot         fsm.BootID
	alive, agent bool
	phase        time.Duration
	heard        time.Duration // when anybody last got a heartbeat, who may have been restarted since
	answered     time.Duration // when the leader last learned that a probe was answered
	vain         []time.Duration
	downs        []time.Duration // when it was committed to be down, in this term
}

// folk is a member.
type folk struct {
	name      string
	answers   bool // the leader
	deafTo    map[fsm.NodeID]bool
	listening time.Duration
	beats     map[fsm.NodeID][]beatAt
	next      time.Duration // when it is asked next
	asked     bool
}

type beatAt struct {
	at   time.Duration
	boot fsm.BootID
}

// event is something on its way.
type event struct {
	at  time.Duration
	seq int
	do  func()
}

const tick = 5 * time.Millisecond

func newStage(members, nodes int, phase func(i int) time.Duration) *stage {
	s := &stage{now: time.Hour, rtt: 5 * time.Millisecond}
	for i := range members {
		s.folk = append(s.folk, &folk{
			name: fmt.Sprintf("m%d", i+1), answers: true, deafTo: map[fsm.NodeID]bool{}, beats: map[fsm.NodeID][]beatAt{}, listening: s.now,
		})
	}
	for i := range nodes {
		m := &machine{boot: "b1", alive: true, agent: true, phase: phase(i), answered: -1}
		m.record = fsm.Node{ID: fsm.NodeID(fmt.Sprintf("n%d", i+1)), Boot: "b1"}
		s.nodes = append(s.nodes, m)
	}
	s.lead()
	return s
}

// lead begins a new term: whoever leads now knows nothing but the record.
func (s *stage) lead() {
	s.judge, s.began, s.queue = NewJudge(Timing{}, s.now), s.now, nil
	for _, f := range s.folk {
		f.next, f.asked = s.now, false
	}
	for _, m := range s.nodes {
		m.downs, m.vain, m.answered = nil, nil, -1
	}
}

func (s *stage) node(id fsm.NodeID) *machine {
	return s.nodes[slices.IndexFunc(s.nodes, func(m *machine) bool { return m.record.ID == id })]
}

func (s *stage) after(d time.Duration, do func()) {
	s.seq++
	s.queue = append(s.queue, event{s.now + d, s.seq, do})
}

func (s *stage) run(d time.Duration) {
	for end := s.now + d; s.now < end; {
		s.now += tick
		s.step()
	}
}

func (s *stage) step() {
	for _, m := range s.nodes {
		if m.alive && m.agent && (s.now-m.phase)%(200*time.Millisecond) == 0 {
			for _, f := range s.folk {
				if !f.deafTo[m.record.ID] {
					f.beats[m.record.ID] = append(f.beats[m.record.ID], beatAt{s.now, m.boot})
					m.heard = s.now
				}
			}
		}
	}
	for len(s.queue) > 0 {
		slices.SortFunc(s.queue, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), a.seq-b.seq) })
		if s.queue[0].at > s.now {
			break
		}
		do := s.queue[0].do
		s.queue = s.queue[1:]
		do()
	}
	for _, f := range s.folk {
		if s.now >= f.next && !f.asked {
			s.poll(f)
		}
	}
	s.look()
}

func (s *stage) poll(f *folk) {
	f.asked = true
	f.next = s.now + 100*time.Millisecond
	if !f.answers {
		s.after(350*time.Millisecond, func() { f.asked = false })
		return
	}
	about := s.last.About
	s.after(s.rtt/2, func() {
		var beats []Beat
		for id, all := range f.beats {
			newest := all[len(all)-1]
			beats = append(beats, Beat{Node: id, Boot: newest.boot, Ago: s.now - newest.at})
		}
		r := Timing{}.NewReport(s.now-f.listening, beats, s.records(), about)
		s.after(s.rtt/2, func() {
			f.asked = false
			s.judge.Heard(s.now, f.name, r)
		})
	})
}

func (s *stage) records() []*fsm.Node {
	var out []*fsm.Node
	for _, m := range s.nodes {
		out = append(out, &m.record)
	}
	return out
}

func (s *stage) voters() []string {
	var out []string
	for _, f := range s.folk {
		out = append(out, f.name)
	}
	return out
}

// look has the judge decide and carries out what it says.
func (s *stage) look() {
	about := s.last.About
	s.last = s.judge.Decide(Scene{Now: s.now, Voters: s.voters(), Nodes: s.records(), Holds: s.holds})
	if s.last.Hurry || !slices.Equal(about, s.last.About) {
		for _, f := range s.folk {
			f.next = min(f.next, s.now+25*time.Millisecond)
		}
	}
	for _, p := range s.last.Probes {
		s.probe(p)
	}
	for _, v := range s.last.Verdicts {
		s.judged(v)
	}
	for _, c := range s.last.Holds {
		switch c := c.(type) {
		case *fsm.PutHold:
			s.holds = append(s.holds, &fsm.Hold{ID: c.ID, Of: c.Of, Subjects: c.Subjects, Why: c.Why})
		case *fsm.DeleteHold:
			s.holds = slices.DeleteFunc(s.holds, func(h *fsm.Hold) bool { return h.ID == c.ID })
		}
	}
}

func (s *stage) probe(p Probe) {
	f := s.folk[slices.IndexFunc(s.folk, func(f *folk) bool { return f.name == p.Member })]
	if !f.answers {
		s.after(350*time.Millisecond, func() { s.judge.Probed(s.now, p, nil) })
		return
	}
	s.after(s.rtt/2, func() {
		answers, took := map[fsm.NodeID]bool{}, tick
		for _, id := range p.Nodes {
			answers[id] = s.node(id).alive && !f.deafTo[id]
			if !answers[id] {
				took = 150 * time.Millisecond
			}
		}
		s.after(took+s.rtt/2, func() {
			for id, yes := range answers {
				if m := s.node(id); yes {
					m.answered = s.now
				} else {
					m.vain = append(m.vain, s.now)
				}
			}
			s.judge.Probed(s.now, p, answers)
		})
	})
}

// judged commits a verdict a moment later, unless another one did so meanwhile.
func (s *stage) judged(v Verdict) {
	m := s.node(v.Node)
	if m.record.Liveness == v.Liveness || m.record.Boot != v.Boot {
		return
	}
	if s.onAny != nil {
		s.onAny(m, v)
	}
	s.log = append(s.log, fmt.Sprintf("%s: %s is %s: %s", s.now-time.Hour, v.Node, v.Liveness, v.Why))
	m.record.Liveness = v.Liveness
	if v.Liveness == fsm.NodeDown {
		m.downs = append(m.downs, s.now)
	}
}

// lastBeat is when a member last got a heartbeat that came no later than by, negative for never.
func (f *folk) lastBeat(id fsm.NodeID, by time.Duration) beatAt {
	for _, b := range slices.Backward(f.beats[id]) {
		if b.at <= by {
			return b
		}
	}
	return beatAt{at: -time.Hour}
}
