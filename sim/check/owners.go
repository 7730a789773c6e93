// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// owners is S8 on segments: who asks for an address is answered, and everybody is told who answers.
//
//   - silent, Takeover (and Deaf, where a link had a carrier and led nowhere): a host's questions for an address are not
//     answered, while one and the same undisturbed node could: it is a committed hop, it is up, its link passes, and a
//     majority is undisturbed under one leader;
//   - unannounced, S8 and a second: a node answers under a lease, which it could renew, and has not announced that since it has
//     it, or since the link got its carrier back or led nowhere for long.
//
// Addresses that their holder keeps when it is cut off are nobody else's to answer for while it is disturbed.
type owners struct {
	*judge
	unanswered map[netip.Addr]map[string]uint64 // by segment, the first question
	silent     overdue
	muted      map[linkOf]time.Duration // when a link last led nowhere
	moments    map[linkOf]time.Duration // when a link led nowhere last, if that was too short for its node to know
	granted    map[netip.Addr]time.Duration
	began      map[string]time.Duration // the present life of processes
	announced  map[spot]fsm.Revision    // under which lease
	missing    map[spot]omission
	told       map[onSegment]string // who announced an address there last
}

// spot is an address on a link, onSegment one on a segment.
type (
	spot struct {
		linkOf
		address netip.Addr
	}
	onSegment struct {
		segment string
		address netip.Addr
	}
)

// omission is an announcement that is due.
type omission struct {
	since time.Duration
	fence fsm.Revision
	event uint64
}

func newOwners(j *judge) owners {
	return owners{
		judge: j, unanswered: map[netip.Addr]map[string]uint64{}, silent: newOverdue(), muted: map[linkOf]time.Duration{},
		moments: map[linkOf]time.Duration{}, granted: map[netip.Addr]time.Duration{},
		began: map[string]time.Duration{}, announced: map[spot]fsm.Revision{}, missing: map[spot]omission{},
		told: map[onSegment]string{},
	}
}

func (o *owners) lease(a netip.Addr) (*fsm.Lease, bool) {
	return fsm.Get[*fsm.Lease](o.record.View(), fsm.TableLeases, a.String())
}

func (o *owners) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.Asks:
		of := o.unanswered[x.Address]
		if of == nil {
			of = map[string]uint64{}
			o.unanswered[x.Address] = of
		}
		if _, before := of[x.Segment]; !before {
			of[x.Segment] = e.Number
		}
	case event.Claim:
		o.claims(e, x)
	case event.Carrier:
		o.carrier(e, x)
	case event.Started:
		o.began[x.Process] = e.At
	}
}

// claims takes in a frame.
func (o *owners) claims(e event.Stamped, x event.Claim) {
	o.checked()
	delete(o.unanswered, x.Address)
	at := spot{linkOf{x.Node, x.Segment}, x.Address}
	l, leased := o.lease(x.Address)
	switch {
	case !leased: // S10 speaks of it
	case !x.Asked:
		o.announced[at] = l.Fence
		o.told[onSegment{x.Segment, x.Address}] = x.Node
		delete(o.missing, at)
	case o.announced[at] != l.Fence && !o.lossy(at):
		o.due(at, l, e)
	}
}

// carrier has what a node answers for be announced anew where its link came up.
func (o *owners) carrier(e event.Stamped, x event.Carrier) {
	link := linkOf{x.Node, x.Segment}
	is := o.scene.segments.state[link]
	if _, was := o.muted[link]; is.mute || was {
		o.muted[link] = e.At
	}
	again := is.since == e.At && is.mutedFor >= unheard
	if is.since == e.At && is.mutedFor > 0 && !again {
		o.moments[link] = e.At
	}
	if is.down || is.mute {
		for at := range o.missing {
			if at.linkOf == link {
				delete(o.missing, at)
			}
		}
		return
	}
	if is.rose != e.At && !again {
		return
	}
	for _, l := range fsm.List[*fsm.Lease](o.record.View(), fsm.TableLeases) {
		if string(l.Holder) == x.Node && slices.Contains(o.scene.segments.of(x.Node, l.VIP), link) {
			o.due(spot{link, l.VIP}, l, e)
		}
	}
}

// unheard is after what silence a node takes what it announced for lost: one and a half seconds, and one until it asks.
const unheard = 2500 * time.Millisecond

// lossy tells whether all that a node announced since it has the lease may be lost: its link led nowhere for a moment, too short
// for it to know.
func (o *owners) lossy(at spot) bool {
	last, ever := o.moments[at.linkOf]
	return ever && last >= o.granted[at.address]
}

// step takes in which leases are new.
func (o *owners) step(s *step) {
	before := s.before
	if s.replaced {
		before = nil
	}
	fsm.Changes(before, s.after, fsm.TableLeases, func(was, is *fsm.Lease) {
		if is != nil && (was == nil || was.Fence != is.Fence) {
			o.granted[is.VIP] = s.At
		}
	})
}

// due notes that an announcement is.
func (o *owners) due(at spot, l *fsm.Lease, e event.Stamped) {
	if _, is := o.missing[at]; !is {
		o.missing[at] = omission{e.At, l.Fence, e.Number}
	}
}

// tick looks at what has been wrong for too long.
func (o *owners) tick() {
	for _, at := range sortedSpots(o.missing) {
		m := o.missing[at]
		l, leased := o.lease(at.address)
		holds := leased && l.Fence == m.fence && string(l.Holder) == at.node
		if !holds || !o.led(m.since) || !o.scene.worksFor(at.node, o.scene.now-m.since+o.bounds.S8) {
			delete(o.missing, at)
			continue
		}
		if o.scene.now-m.since > o.bounds.S8+time.Second { // it asks once a second whether it is heard
			o.broken(fmt.Sprintf("%s at %s", at.address, at.node), fmt.Sprintf("unannounced on %s since %s", at.segment, m.since), m.event)
		}
	}
	o.look()
	for _, key := range o.silent.over(o.scene.now, o.bound()) {
		w := o.silent.since[key]
		o.broken(key, fmt.Sprintf("silent since %s: %s", w.at, w.why), w.event)
	}
}

// led tells whether a majority has been working undisturbed under one leader since a moment: owners could renew their leases.
func (o *owners) led(since time.Duration) bool {
	s := o.scene
	return s.sound != never && s.sound <= since && s.lead != never && s.lead <= since && s.unexcused(s.leader)
}

// bound is for how long questions may go unanswered.
func (o *owners) bound() time.Duration {
	if o.scene.segments.muteWithin(o.scene.now, o.bounds.Takeover+o.bounds.Deaf, o.muted) {
		return o.bounds.Takeover + o.bounds.Deaf
	}
	return o.bounds.Takeover
}

// look notes who could answer for what is asked for in vain.
func (o *owners) look() {
	v := o.record.View()
	now := map[string]bool{}
	if o.scene.sound != never && o.scene.lead != never && o.scene.unexcused(o.scene.leader) && v.Group().Quarantine.IsZero() {
		for a, questions := range o.unanswered {
			for hop := range committed(v, fsm.HostPrefix(a)) {
				node := o.scene.nodeAt[hop]
				event, could := o.could(v, a, node, questions)
				if key := a.String() + " " + node; could {
					now[key] = true
					o.silent.note(key, true, o.scene.now, node+" could answer, and nobody does", event)
				}
			}
		}
	}
	for key := range o.silent.since {
		if !now[key] {
			delete(o.silent.since, key)
		}
	}
}

// could tells whether a node could answer for an address, and to which question.
func (o *owners) could(v *fsm.View, a netip.Addr, node string, questions map[string]uint64) (question uint64, could bool) {
	n, known := fsm.Get[*fsm.Node](v, fsm.TableNodes, node)
	owned := slices.ContainsFunc(v.Owners(a.String()), func(o *fsm.Allocation) bool { return !o.Releasing })
	if !known || !owned || n.Liveness != fsm.NodeUp || !n.Eligible || !o.scene.worksFor(node, 0) {
		return 0, false
	}
	if l, leased := o.lease(a); leased && o.stays(l) {
		return 0, false
	}
	for _, link := range o.scene.segments.of(node, a) {
		if number, asked := questions[link.segment]; asked && o.scene.segments.passes(link) {
			return number, true
		}
	}
	return 0, false
}

// stays tells whether an address stays with its holder, though that may not be heard: one that keeps it, or that has never heard
// anybody on its link, and so does not know that it leads nowhere.
func (o *owners) stays(l *fsm.Lease) bool {
	holder := string(l.Holder)
	if l.Keep && !o.scene.worksFor(holder, o.bounds.Takeover) {
		return true
	}
	return slices.ContainsFunc(o.scene.segments.of(holder, l.VIP), func(link linkOf) bool {
		is := o.scene.segments.state[link]
		return is.mute && is.since <= o.began[holder]+time.Second
	})
}

func sortedSpots(all map[spot]omission) []spot {
	return slices.SortedFunc(maps.Keys(all), func(x, y spot) int {
		return cmp.Or(x.address.Compare(y.address), strings.Compare(x.node, y.node), strings.Compare(x.segment, y.segment))
	})
}
