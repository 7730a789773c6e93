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
	// owned are the addresses that it has, by address.
	owned map[netip.Addr]string
	// routes are the next hops of the addresses that are announced.
	routes map[netip.Addr][]hop
	// pending and waiting say why it lacks an address, and why an address is not announced; zero for nothing.
	pending, waiting verdict
	refused          bool
	// unrouted is why an address that is owned is not announced.
	unrouted map[netip.Addr]string
	// problems are what cannot be used as it is written.
	problems []string
	at       fsm.Revision
}

// storyOf tells what stands in the record. An address that was announced stays so while members may announce it: see
// facts.announcedBy. A Service that the record does not hold has the zero story.
func storyOf(f *facts, why Explanations, before *story) story {
	if f == nil || f.service.Deleting {
		return story{uid: before.uid, at: before.at}
	}
	s := story{uid: f.service.UID, owned: map[netip.Addr]string{}, routes: map[netip.Addr][]hop{}, unrouted: map[netip.Addr]string{}}
	if n := len(f.service.History); n > 0 {
		s.at = f.service.History[n-1].Revision
	}
	for i := range f.addresses {
		a := &f.addresses[i]
		s.owned[a.address] = a.String()
		later(&s.at, a.since)
		_, was := before.routes[a.address]
		if st := a.stage(); st == announced || was && st == waitingForMembers {
			s.routes[a.address] = a.routed()
		} else {
			s.unrouted[a.address] = a.why(why.text(fsm.TableRoutes, fsm.HostPrefix(a.address).String(), codeNoNextHop))
		}
		for _, h := range a.hops {
			later(&s.at, h.since)
		}
	}
	if v := f.allocated(why); v.status == metav1.ConditionFalse && v.reason != ReasonUndecided {
		s.pending, s.refused = v, f.refused()
	}
	if v := f.announcedBy(why, nil); v.status == metav1.ConditionFalse && v.reason != ReasonNotAllocated && len(s.unrouted) > 0 {
		s.waiting = v
	}
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
	if c := s.condition(Allocated); c != nil {
		if c.Status == metav1.ConditionTrue || c.Reason == now.pending.reason {
			before.owned = now.owned
		}
		if c.Reason == now.pending.reason && c.Message == now.pending.message {
			before.pending = now.pending
		}
	}
	if c := s.condition(Announced); c != nil {
		if c.Status == metav1.ConditionTrue {
			before.routes = now.routes
		}
		if c.Reason == now.waiting.reason {
			before.waiting = now.waiting
		}
	}
	return before
}

// tell says what Events lead from one story of a Service to the next.
func tell(id fsm.ServiceID, before, now *story) []telling {
	var out []telling
	say := func(warning bool, reason, note string, args ...any) {
		out = append(out, telling{id: id, uid: now.uid, warning: warning, reason: reason, note: fmt.Sprintf(note, args...), at: now.at})
	}
	for _, a := range addressesOf(now.owned) {
		if _, had := before.owned[a]; !had {
			say(false, EventAllocated, "%s", now.owned[a])
		}
	}
	for _, a := range addressesOf(now.routes) {
		old, had := before.routes[a]
		switch added, removed := hopsChange(old, now.routes[a]); {
		case !had:
			say(false, EventAnnounced, "%s via %s", a, listHops(now.routes[a]))
		case added+removed != "":
			say(false, EventNextHopsChanged, "%s via %s:%s%s", a, listHops(now.routes[a]), added, removed)
		}
	}
	for _, a := range addressesOf(before.routes) {
		if _, still := now.routes[a]; !still {
			why, owned := now.unrouted[a]
			if !owned {
				why = "the Service gave it up"
			}
			say(owned, EventWithdrawn, "%s: %s", a, why)
		}
	}
	for _, a := range addressesOf(before.owned) {
		_, still := now.owned[a]
		if _, told := before.routes[a]; !still && !told {
			say(false, EventReleased, "%s", before.owned[a])
		}
	}
	if v := now.pending; v != (verdict{}) && v != before.pending {
		reason := EventPending
		if now.refused {
			reason = EventRefused
		}
		say(true, reason, "%s", v.message)
	}
	for _, p := range now.problems {
		if !slices.Contains(before.problems, p) { // it is of no change of the record, so that a next leader makes the same Event
			out = append(out, telling{id: id, uid: now.uid, warning: true, reason: EventNotAsWritten, note: p})
		}
	}
	if v := now.waiting; v != (verdict{}) && v.reason != before.waiting.reason && len(before.routes) == 0 {
		say(v.reason == ReasonNoNextHop || v.reason == ReasonNodesFailed, EventNotAnnounced, "%s", v.message)
	}
	return out
}

// hopsChange names the nodes that came and went between two sets of hops.
func hopsChange(old, now []hop) (added, removed string) {
	same := func(h hop) func(hop) bool {
		return func(o hop) bool { return o.node == h.node && o.address == h.address }
	}
	list := func(verb string, from, in []hop) string {
		var names []string
		for _, h := range from {
			if !slices.ContainsFunc(in, same(h)) {
				names = append(names, string(h.node))
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

// addressesOf lists the keys of a map in order.
func addressesOf[V any](m map[netip.Addr]V) []netip.Addr {
	out := make([]netip.Addr, 0, len(m))
	for a := range m {
		out = append(out, a)
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}
