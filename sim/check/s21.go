// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// s21 holds what the end of a member's BGP speaker costs against what it may. That speaker is a process of its own, which dies of what a
// neighbour sends, or is killed.
//
//   - Another one runs after a pause, S8 late at most: a tenth of a second, twice as long each time, ten seconds at most; what lived for a minute
//     counts as the first.
//   - Each undisturbed switch that had a session with it has one again within backIn of that, unless it dies once more. One that was hostile may be
//     held back first, for as long as trouble.holds says; where something else killed speakers, any may be.
//   - Until S8 after that, an address whose next hops are those of before has a path of the member there: graceful restart keeps what was
//     announced, and all of it is announced anew before its end. That is so however often a neighbour has it die. Only a speaker that something
//     else kills again, before that, may cost them (RFC 4724 §4.2).
//   - Of a hostile switch beside others it dies three times, and then once whenever that is tried again.
//   - The member's process goes on, and leads on if it led, where nothing else goes wrong.
type s21 struct {
	idle
	*judge
	speakers map[string]*speaker
	owed     map[link]*owed
	held     map[route]map[string]bool // members with a path there
	routes   map[netip.Prefix]time.Duration
	silent   overdue      // members without a speaker
	lost     overdue      // sessions
	others   map[int]bool // faults of other kinds that may reach members

	disturbed, looked time.Duration
}

// speaker is how it is with a member's.
type speaker struct {
	on    bool
	since time.Duration
	pause time.Duration // before the next one
	ends  int           // by neighbours, since it is the member's
	ended uint64        // the event of its last end
}

// owed is a session that a speaker lost by its end.
type owed struct {
	at    time.Duration
	paths bool          // they have to stay
	back  time.Duration // since when there is one again, or never
}

// The times of speakers.
const (
	leastPause = 100 * time.Millisecond
	mostPause  = 10 * time.Second
	steady     = time.Minute
	backIn     = 10 * time.Second
	// alone is for how long nothing else may have gone wrong before something is put down to the end of a speaker, and aftermath for how
	// long after that it is.
	alone, aftermath = 10 * time.Second, 5 * time.Second
)

func newS21(j *judge) rule {
	return &s21{
		judge: j, speakers: map[string]*speaker{}, owed: map[link]*owed{}, held: map[route]map[string]bool{}, routes: map[netip.Prefix]time.Duration{},
		silent: newOverdue(), lost: newOverdue(), others: map[int]bool{},
	}
}

func (r *s21) step(s *step) {
	before := s.before
	if s.replaced {
		before = nil
	}
	fsm.Changes(before, s.after, fsm.TableRoutes, func(was, is *fsm.Route) {
		if is == nil {
			is = was
		}
		r.routes[is.Prefix] = r.scene.now
	})
}

func (r *s21) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.FaultBegan:
		if x.Fault != "speaker-kill" && x.Fault != "hostile-switch" && r.reachesMembers(x) {
			r.others[x.ID], r.disturbed = true, e.At
		}
	case event.FaultEnded:
		if r.others[x.ID] {
			r.disturbed = e.At
		}
		delete(r.others, x.ID)
	case event.Started:
		r.disturbed = e.At
		r.forget(x.Process)
	case event.Ended:
		if !x.Killed {
			r.outlived(x.Process, e.Number, "its process ended as well: "+x.Why)
		}
		r.disturbed = e.At
		r.forget(x.Process)
	case event.Leading:
		if !x.On {
			r.outlived(x.Process, e.Number, "it leads no more")
		}
	case event.Speaking:
		r.speaking(e, x)
	case event.Session:
		r.session(link{x.Switch, x.Member}, x.Up)
	case event.Forwarding:
		r.forwarding(e.Number, x)
	}
}

// reachesMembers tells whether a fault may be why a member ends, or leads no more: one that names nobody, or a process that is no agent.
func (r *s21) reachesMembers(f event.FaultBegan) bool {
	return len(f.On) == 0 || slices.ContainsFunc(f.On, func(name string) bool {
		process, _, _ := strings.Cut(name, "/")
		_, known := r.scene.runs[process]
		return known && !slices.ContainsFunc(r.topology.Nodes, func(n Node) bool { return n.Name == process })
	})
}

// forget forgets the speaker of a process that began, or ended.
func (r *s21) forget(member string) {
	delete(r.speakers, member)
	for key := range r.owed {
		if key.member == member {
			delete(r.owed, key)
		}
	}
}

// outlived judges what happened to a member whose speaker ended just before, if nothing else can be the reason.
func (r *s21) outlived(member string, number uint64, what string) {
	s := r.speakers[member]
	if s == nil || s.ended == 0 || s.on && r.scene.now-s.since > aftermath || len(r.others) > 0 || r.scene.now-r.disturbed < alone {
		return
	}
	r.broken(member, "its speaker died, and "+what, s.ended, number)
}

func (r *s21) speaking(e event.Stamped, x event.Speaking) {
	s := r.speakers[x.Process]
	switch {
	case x.On && s == nil:
		r.speakers[x.Process] = &speaker{on: true, since: e.At, pause: leastPause}
	case x.On:
		r.checked()
		s.on, s.since, s.pause = true, e.At, min(2*s.pause, mostPause)
	case x.Why == "":
		r.forget(x.Process)
	case s != nil:
		if s.on && e.At-s.since > steady {
			s.pause = leastPause
		}
		s.on, s.since, s.ended = false, e.At, e.Number
		r.owe(x.Process, x.Why == byNeighbour)
		if x.Why == byNeighbour {
			s.ends++
			r.often(x.Process, s)
		}
	}
}

// byNeighbour is how a speaker ends of what came from a switch.
const byNeighbour = "signal: aborted"

// often judges how often a member's speaker has died of what neighbours send.
func (r *s21) often(member string, s *speaker) {
	most, peaceful := 0, slices.ContainsFunc(r.topology.Switches, func(sw string) bool { return !r.scene.hostile[sw].ever })
	for _, t := range r.scene.hostile {
		most += 3
		for hold, left := leastHold, r.scene.now-t.from; left >= hold/4*3; hold *= 2 {
			left -= hold / 4 * 3
			most++
		}
	}
	if !peaceful || r.scene.killed.ever { // there is nobody to be protected; a kill may have been put down to anybody
		return
	}
	r.checked()
	if s.ends > most {
		r.broken(member, fmt.Sprintf("its speaker died of neighbours %d times, %d are allowed", s.ends, most), s.ended)
	}
}

// owe notes what the end of a member's speaker leaves to be done.
func (r *s21) owe(member string, byNeighbour bool) {
	for _, sw := range r.topology.Switches {
		key := link{sw, member}
		session, before := r.scene.sessions[key], r.owed[key]
		switch {
		case session.up:
			paths := before == nil && r.scene.now-session.since >= r.bounds.S8 && r.scene.freeFor(sw, r.bounds.S8)
			if before != nil && byNeighbour {
				paths = before.paths && !r.scene.hostile[sw].ever && !r.scene.killed.ever
			}
			r.owed[key] = &owed{at: r.scene.now, back: never, paths: paths}
		case before != nil:
			before.paths = before.paths && before.back == never
		}
	}
}

// session takes in that a session came, or went. One that goes once it was back goes for another reason, or for the next end.
func (r *s21) session(key link, up bool) {
	o := r.owed[key]
	switch {
	case o != nil && up:
		o.back = r.scene.now
	case o != nil && o.back != never:
		delete(r.owed, key)
	}
}

// forwarding judges the paths of members that a switch holds no more.
func (r *s21) forwarding(number uint64, x event.Forwarding) {
	key, now := route{x.Switch, x.Prefix}, map[string]bool{}
	for _, p := range x.Paths {
		now[p.Member] = true
	}
	before := r.held[key]
	r.held[key] = now
	for _, member := range sortedKeys(before) {
		o := r.owed[link{x.Switch, member}]
		if now[member] || o == nil || !o.paths || !x.Prefix.IsSingleIP() || !r.stays(x.Switch, member, x.Prefix, o.at) {
			continue
		}
		r.broken(fmt.Sprintf("%s at %s", x.Prefix, x.Switch), fmt.Sprintf("the path of %s went, whose speaker died at %s", member, o.at), r.speakers[member].ended, number)
	}
}

// stays tells whether a member has to have a path for an address at a switch: the record has said the same of it since before its speaker ended.
func (r *s21) stays(sw, member string, prefix netip.Prefix, ended time.Duration) bool {
	hops := committed(r.record.View(), prefix)
	changed, known := r.routes[prefix]
	same := known && changed < ended-r.bounds.S8 && len(hops) > 0
	instead := slices.ContainsFunc(r.scene.ways.paths(sw, prefix.Addr()), func(p event.Path) bool { return p.Member == member })
	return same && !instead && r.scene.unexcused(sw) && r.scene.worksFor(member, 0)
}

func (r *s21) tick() {
	if r.scene.now-r.looked < lookEvery {
		return
	}
	r.looked = r.scene.now
	for _, member := range sortedKeys(r.speakers) {
		s := r.speakers[member]
		due := !s.on && r.scene.now-s.since > s.pause && r.scene.worksFor(member, r.bounds.S8)
		r.silent.note(member, due, r.scene.now, "no other one runs", s.ended)
		for _, sw := range r.topology.Switches {
			r.note(link{sw, member}, s)
		}
	}
	r.tell(r.silent, r.bounds.S8)
	r.tell(r.lost, backIn)
}

// note notes how it is with a session that the end of a speaker cost.
func (r *s21) note(key link, s *speaker) {
	o := r.owed[key]
	if o != nil && o.back != never && r.scene.now-o.back > r.bounds.S8 {
		delete(r.owed, key)
		r.checked()
	}
	held := r.scene.hostile[key.at].lasts(r.scene.now, 0) || r.scene.killed.lasts(r.scene.now, 0)
	waits := o != nil && o.back == never && !held && s.on && r.scene.worksFor(key.member, r.bounds.S8) && r.scene.freeFor(key.at, r.bounds.S8)
	r.lost.note(key.member+" with "+key.at, waits, r.scene.now, "it has no session again", s.ended)
}

func (r *s21) tell(o overdue, bound time.Duration) {
	for _, key := range o.over(r.scene.now, bound) {
		w := o.since[key]
		r.broken("speaker of "+key, fmt.Sprintf("it died, and %s since %s", w.why, w.at), w.event)
	}
}
