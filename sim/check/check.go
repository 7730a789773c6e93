// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
)

// Options is what a Set is made of.
type Options struct {
	// Rules are the ids of those to check; none means all.
	Rules    []string
	Bounds   Bounds
	Topology Topology
	// Format is that of the record once everything agrees; 0: any.
	Format uint32
	// Violated is told of a violation when it is found; optional.
	Violated func(Violation)
}

// Bounds are the stated times. Zero fields take their default.
type Bounds struct {
	// L1 is within what time after the last fault everything agrees. Default 30 s.
	L1 time.Duration
	// L2 is within what time a deregistration completes once its driver answers: the retry cap that members run with
	// (leader.Timing), the settle time of a call of unknown outcome, and 10 s. Default 10 min 20 s, which no short run
	// ever reaches: give members a short cap, and say so here.
	L2 time.Duration
	// L3 is within what time new work completes while a quorum is connected. Default 3 s.
	L3 time.Duration
	// S8 is within what time switches follow what is committed. Default 2 s.
	S8 time.Duration
	// Takeover is within what time an address on a segment is answered for again, and Deaf how much longer it takes to notice
	// that a link leads nowhere, twice. Defaults 9 s and 9 s.
	Takeover, Deaf time.Duration
	// Demote is how long a member may be out of contact before its paths rank behind the others'. Default 3 s.
	Demote time.Duration
	// Hold, Restart and Stale are what sessions with switches negotiate. Defaults 30 s, 1 s and 600 s.
	Hold, Restart, Stale time.Duration
	// Settle is how long after its end a call of unknown outcome may take effect. Default 10 s.
	Settle time.Duration
	// Drain is how long nodes keep the rules of addresses that left. Default 30 s.
	Drain time.Duration
	// Late is by how much what was seen of Kubernetes may be late. Default 10 s.
	Late time.Duration
	// Retry is how long after trouble with the API server members may wait until they ask it again: twice the cap of
	// informers.Timing. Default 10 s.
	Retry time.Duration
}

func (b Bounds) withDefaults() Bounds {
	b.L1 = cmp.Or(b.L1, 30*time.Second)
	b.L2 = cmp.Or(b.L2, 10*time.Minute+20*time.Second)
	b.L3 = cmp.Or(b.L3, 3*time.Second)
	b.S8 = cmp.Or(b.S8, 2*time.Second)
	b.Takeover = cmp.Or(b.Takeover, 9*time.Second)
	b.Deaf = cmp.Or(b.Deaf, 9*time.Second)
	b.Demote = cmp.Or(b.Demote, 3*time.Second)
	b.Hold = cmp.Or(b.Hold, 30*time.Second)
	b.Restart = cmp.Or(b.Restart, time.Second)
	b.Stale = cmp.Or(b.Stale, 600*time.Second)
	b.Settle = cmp.Or(b.Settle, 10*time.Second)
	b.Drain = cmp.Or(b.Drain, 30*time.Second)
	b.Late = cmp.Or(b.Late, 10*time.Second)
	b.Retry = cmp.Or(b.Retry, 10*time.Second)
	return b
}

// Topology is who there is.
type Topology struct {
	Members   []string
	Nodes     []Node
	Switches  []string
	Balancers []Balancer
	Links     []Link
	// Sockets is what is served at the sockets of nodes.
	Sockets start.Sockets
	// Exchanges tells whether a switch and members are configured to exchange routes of an address's family; nil: always.
	Exchanges func(at string, a netip.Addr) bool
}

// Node is a node and the addresses that switches know it by.
type Node struct {
	Name      string
	Addresses []netip.Addr
}

// Link is a node's in a segment, and has the segment's name.
type Link struct {
	Node, Segment string
	Network       netip.Prefix // of those who are in the segment
}

// Balancer is an outside load balancer: its name in events, and what the record knows it by.
type Balancer struct {
	Name     string
	Identity fsm.Identity
	// Driver is what faults call its driver; empty: what the record does.
	Driver string
}

// Violation is a rule seen broken.
type Violation struct {
	Rule    string
	At      time.Duration
	Subject string
	Text    string
	// Events are the numbers of the events that show it, in order.
	Events []uint64
}

// String is one line for people.
func (v Violation) String() string {
	return fmt.Sprintf("%s at %s: %s: %s", v.Rule, v.At, v.Subject, v.Text)
}

// Error makes a violation what engine.World.Fail takes.
func (v Violation) Error() string { return v.String() }

// rule is one checker. What it has no use for it leaves to idle.
type rule interface {
	hear(e event.Stamped) // everything that happens, after scene, kube and record took it in
	step(s *step)         // each entry of the record, after the event that brought it
	tick()                // every now and then
	finish()              // at the end of the run
}

type idle struct{}

func (idle) hear(event.Stamped) {}
func (idle) step(*step)         {}
func (idle) tick()              {}
func (idle) finish()            {}

// judge is what a rule knows and how it speaks.
type judge struct {
	id string
	*Set
}

// checked counts that the rule was put to the test.
func (j *judge) checked() { j.counts[j.id]++ }

// broken tells of a violation. Each subject is told of once.
func (j *judge) broken(subject, text string, events ...uint64) {
	if j.told[j.id+" "+subject] {
		return
	}
	j.told[j.id+" "+subject] = true
	events = slices.DeleteFunc(events, func(n uint64) bool { return n == 0 })
	slices.Sort(events)
	v := Violation{Rule: j.id, At: j.scene.now, Subject: subject, Text: text, Events: slices.Compact(events)}
	j.found = append(j.found, v)
	if j.violated != nil {
		j.violated(v)
	}
}

// Set checks all rules of one run. It belongs to the goroutine that runs the world.
type Set struct {
	bounds   Bounds
	topology Topology
	format   uint32
	violated func(Violation)

	scene     *scene
	kube      *kube
	wishes    *wishes
	atSockets *atSockets
	record    *Record
	// recordAt is when the record began to be able to hold what it holds: its format was raised, or it was restored.
	recordAt time.Duration

	rules  []rule
	counts map[string]int
	told   map[string]bool
	found  []Violation
}

// New makes a Set. Errors: a rule that there is none of, or that cannot be checked yet.
func New(o Options) (*Set, error) {
	s := &Set{
		bounds: o.Bounds.withDefaults(), topology: o.Topology, format: o.Format, violated: o.Violated,
		kube: newKube(), wishes: newWishes(), atSockets: newAtSockets(), record: NewRecord(), counts: map[string]int{}, told: map[string]bool{},
	}
	s.scene = newScene(o.Topology, s.record)
	for _, id := range o.Rules {
		if _, ok := makers()[id]; !ok {
			return nil, fmt.Errorf("check rule %q: there is none that can be checked; `fairlead sim list` names them", id)
		}
	}
	for _, r := range Rules() {
		if make := makers()[r.ID]; make != nil && (len(o.Rules) == 0 || slices.Contains(o.Rules, r.ID)) {
			s.counts[r.ID] = 0
			s.rules = append(s.rules, make(&judge{r.ID, s}))
		}
	}
	return s, nil
}

// Hear takes in an event. It is made for engine.World.Hear.
func (s *Set) Hear(e event.Stamped) {
	s.scene.now = max(s.scene.now, e.At)
	s.scene.hear(e)
	s.kube.hear(e)
	s.wishes.hear(e, s.ours)
	if s.topology.Sockets.Any() {
		s.atSockets.hear(e)
	}
	step := s.record.hear(e)
	if step != nil && (step.replaced || step.before.Group().Format != step.after.Group().Format) {
		s.recordAt = e.At
	}
	for _, r := range s.rules {
		r.hear(e)
	}
	if step == nil {
		return
	}
	for _, r := range s.rules {
		r.step(step)
	}
}

// Tick looks at what depends on time alone. Call it every 10 ms or so.
func (s *Set) Tick(now time.Duration) {
	s.scene.now = max(s.scene.now, now)
	s.scene.promotes()
	s.scene.asks()
	for _, r := range s.rules {
		r.tick()
	}
}

// Finish judges what can be judged at the end of a run only, and gives all violations of the run, in order.
func (s *Set) Finish(now time.Duration) []Violation {
	s.Tick(now)
	for _, r := range s.rules {
		r.finish()
	}
	return s.found
}

// Counts tells how often each rule was put to the test. A rule with 0 had nothing to check.
func (s *Set) Counts() map[string]int {
	out := make(map[string]int, len(s.counts))
	for id, n := range s.counts {
		out[id] = n
	}
	return out
}

// View is the record as the group has agreed on it so far.
func (s *Set) View() *fsm.View { return s.record.View() }
