// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm"
)

// Reasons of Events.
const (
	EventAllocated       = "AddressAllocated"
	EventReleased        = "AddressReleased"
	EventPending         = "AddressPending" // nobody can give it what it asks for now
	EventRefused         = "AddressRefused" // what it asks for is not to be had
	EventAnnounced       = "Announced"
	EventNotAnnounced    = "NotAnnounced"
	EventNextHopsChanged = "NextHopsChanged"
	EventWithdrawn       = "Withdrawn"
	EventNotAsWritten    = "NotAsWritten"      // something of its spec or annotations cannot be used as it is written
	EventOverwritten     = "StatusOverwritten" // somebody else keeps writing status.loadBalancer or our conditions
)

// telling is one Event to be written.
type telling struct {
	id      fsm.ServiceID
	uid     string
	warning bool
	reason  string
	note    string
	// at is the revision that it tells of: two leaders that tell the same of it write one Event.
	at fsm.Revision
}

// story is what people were told of a Service, or would be told now.
type story struct {
	uid string
	// addresses are in order. There is a story of each Service all along, so that it is small.
	addresses []addressStory
	lacks     *lacks // nil for nothing
	// problems are what cannot be used as it is written.
	problems []string
	// stuck is why nothing is done about it that the cluster says now; empty if something is.
	stuck string
	at    fsm.Revision
}

// lacks is why a Service lacks an address, and why an address is not announced; zero for nothing.
type lacks struct {
	pending, waiting verdict
	refused          bool
}

func (s *story) lacking() lacks {
	if s.lacks == nil {
		return lacks{}
	}
	return *s.lacks
}

func (s *story) setLacking(l lacks) {
	if s.lacks = nil; l != (lacks{}) {
		s.lacks = &l
	}
}

// addressStory is what people were told of an address: that the Service has it, by its text, that it is announced, by which ways, or why not.
type addressStory struct {
	address       netip.Addr
	owned, routed bool
	text, why     string
	ways          []way
}

// of finds the story of an address; the zero one if nothing is told of it.
func (s *story) of(a netip.Addr) addressStory {
	for i := range s.addresses {
		if s.addresses[i].address == a {
			return s.addresses[i]
		}
	}
	return addressStory{}
}

// silent tells whether none of its addresses is announced.
func (s *story) silent() bool {
	return !slices.ContainsFunc(s.addresses, func(a addressStory) bool { return a.routed })
}

// storyOf tells what stands in the record. An address that was announced stays so while members may announce it: see
// facts.announcedBy. A Service that the record does not hold has the zero story.
func storyOf(f *facts, why Explanations, before *story) story {
	if f == nil || f.service.Deleting {
		return story{uid: before.uid, at: before.at}
	}
	s := story{uid: f.service.UID, addresses: make([]addressStory, len(f.addresses))}
	if n := len(f.service.History); n > 0 {
		s.at = f.service.History[n-1].Revision
	}
	for i := range f.addresses {
		a := &f.addresses[i]
		one := addressStory{address: a.address, owned: true, text: a.String()}
		later(&s.at, a.since)
		if st := a.stage(); st == announced || st == waitingForMembers && before.of(a.address).routed {
			one.routed, one.ways = true, a.routed()
		} else {
			one.why = a.why(why.unrouted(a.address))
		}
		for _, h := range a.hops {
			later(&s.at, h.since)
		}
		s.addresses[i] = one
	}
	var l lacks
	if v := f.allocated(why); v.status == metav1.ConditionFalse && v.reason != ReasonUndecided {
		l.pending, l.refused = v, f.refused()
	}
	if v := f.announcedBy(why, nil); v.status == metav1.ConditionFalse && v.reason != ReasonNotAllocated && slices.ContainsFunc(s.addresses, func(a addressStory) bool { return !a.routed }) {
		l.waiting = v
	}
	s.setLacking(l)
	return s
}

// refused tells whether only a change of the Service can help, rather than one of the pools.
func (f *facts) refused() bool {
	switch f.service.Pending.Code {
	case "address-taken", "outside-pools", "invalid-address", "not-allowed", "node-port-taken":
		return true
	}
	return false
}

func later(at *fsm.Revision, than fsm.Revision) {
	if at.Before(than) {
		*at = than
	}
}

// recall guesses what an earlier leader told people of a Service, from the conditions that it wrote: what they say
// already is not told again.
func recall(now *story, s *Seen) *story {
	before := &story{uid: now.uid, at: now.at}
	owned, routed := false, false
	is, was := now.lacking(), lacks{}
	if c := s.condition(Allocated); c != nil {
		owned = c.Status == metav1.ConditionTrue || c.Reason == is.pending.reason
		if c.Reason == is.pending.reason && c.Message == is.pending.message {
			was.pending = is.pending
		}
	}
	if c := s.condition(Announced); c != nil {
		routed = c.Status == metav1.ConditionTrue
		if c.Reason == is.waiting.reason {
			was.waiting = is.waiting
		}
	}
	before.setLacking(was)
	before.addresses = now.known(owned, routed)
	return before
}

// known are the addresses of a story of which people know that the Service has them, that they are announced, or both.
func (s *story) known(owned, routed bool) []addressStory {
	out := slices.Clone(s.addresses)
	for i := range out {
		out[i].owned = owned
		if out[i].routed = out[i].routed && routed; !out[i].routed {
			out[i].ways = nil
		}
	}
	return out
}

// tell says what Events lead from one story of a Service to the next.
func tell(id fsm.ServiceID, before, now *story) []telling {
	var out []telling
	say := func(warning bool, reason, note string, args ...any) {
		out = append(out, telling{id: id, uid: now.uid, warning: warning, reason: reason, note: fmt.Sprintf(note, args...), at: now.at})
	}
	for _, a := range now.addresses {
		if !before.of(a.address).owned {
			say(false, EventAllocated, "%s", a.text)
		}
	}
	for _, a := range now.addresses {
		if !a.routed {
			continue
		}
		old := before.of(a.address)
		switch added, removed := waysChange(old.ways, a.ways); {
		case !old.routed:
			say(false, EventAnnounced, "%s via %s", a.address, listWays(a.ways))
		case added+removed != "":
			say(false, EventNextHopsChanged, "%s via %s:%s%s", a.address, listWays(a.ways), added, removed)
		}
	}
	for _, a := range before.addresses {
		if still := now.of(a.address); a.routed && still.owned && !still.routed {
			reason := EventWithdrawn
			if now.lacking().waiting.reason == ReasonNoSession {
				reason = EventNotAnnounced
			}
			say(true, reason, "%s: %s", a.address, still.why)
		} else if a.routed && !still.routed {
			say(false, EventWithdrawn, "%s: the Service gave it up", a.address)
		}
	}
	for _, a := range before.addresses {
		if a.owned && !a.routed && !now.of(a.address).owned {
			say(false, EventReleased, "%s", a.text)
		}
	}
	was, is := before.lacking(), now.lacking()
	if v := is.pending; v != (verdict{}) && v != was.pending {
		reason := EventPending
		if is.refused {
			reason = EventRefused
		}
		say(true, reason, "%s", v.message)
	}
	for _, p := range now.problems {
		if !slices.Contains(before.problems, p) { // it is of no change of the record, so that a next leader makes the same Event
			out = append(out, telling{id: id, uid: now.uid, warning: true, reason: EventNotAsWritten, note: p})
		}
	}
	if now.stuck != "" && now.stuck != before.stuck {
		out = append(out, telling{id: id, uid: now.uid, warning: true, reason: EventSourceRanBack, note: now.stuck})
	}
	if v := is.waiting; v != (verdict{}) && v.reason != was.waiting.reason && before.silent() {
		say(v.reason == ReasonNoNextHop || v.reason == ReasonNodesFailed || v.reason == ReasonNoSession, EventNotAnnounced, "%s", v.message)
	}
	return out
}

// waysChange names the nodes that came and went between two sets of ways.
func waysChange(old, now []way) (added, removed string) {
	list := func(verb string, from, in []way) string {
		var names []string
		for _, w := range from {
			if !slices.Contains(in, w) {
				names = append(names, string(w.node))
			}
		}
		if len(names) == 0 {
			return ""
		}
		more := ""
		if n := len(names) - fewNodes; n > 0 {
			names, more = names[:fewNodes], fmt.Sprintf(" and %d more", n)
		}
		return " " + verb + " " + strings.Join(names, ", ") + more + ";"
	}
	return list("new", now, old), strings.TrimSuffix(list("without", old, now), ";")
}
