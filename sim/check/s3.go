// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// s3 keeps who owns which port of which address, from the record; which address users are told of which Service, from
// the API server; and where traffic for it ends up, from clients. Two Services that both want an address and did not
// agree to share it may be told of it for L1 while nobody is disturbed, since what users are told follows the record. A
// port that a Service closed, and that nobody else has, may lead to its own pods until nodes can know: a kernel goes on
// with what it was told, and the address belongs to that Service all the time. Nobody else gets it so long (s3_ports.go).
// What a member announces of an address leads to the nodes of one owner (s3_hops.go).
type s3 struct {
	idle
	*judge
	owners map[netip.Addr]map[fsm.ServiceID]fsm.Allocation
	// former are owners that are none any more, and since when.
	former map[netip.Addr]map[fsm.ServiceID]time.Duration
	closed map[closing]time.Duration // when Services that keep an address gave ports of it up
	lost   *portLosses
	hops   hopsOf
	remembered
	told overdue
}

// closing is a port that a Service had at an address.
type closing struct {
	address netip.Addr
	service fsm.ServiceID
	port    uint16
}

// inFlight is how long a request may be under way.
const inFlight = 100 * time.Millisecond

func newS3(j *judge) rule {
	return &s3{
		judge: j, owners: map[netip.Addr]map[fsm.ServiceID]fsm.Allocation{}, former: map[netip.Addr]map[fsm.ServiceID]time.Duration{},
		closed: map[closing]time.Duration{}, lost: newPortLosses(), hops: newHopsOf(), told: newOverdue(),
	}
}

func (r *s3) step(s *step) {
	before := s.before
	if s.replaced {
		r.restored(s)
		before, r.owners = nil, map[netip.Addr]map[fsm.ServiceID]fsm.Allocation{}
		clear(r.lost.since)
	}
	r.lost.forget(s.after)
	r.hops.step(before, s)
	touched := map[netip.Addr]bool{}
	fsm.Changes(before, s.after, fsm.TableAllocations, func(was, is *fsm.Allocation) {
		if was != nil {
			touched[was.Address] = true
		}
		if is != nil {
			touched[is.Address] = true
			if was == nil && !s.replaced {
				r.compareRemembered(is, s.Number)
			}
		}
	})
	for a := range touched {
		r.recount(a, s)
	}
	for _, a := range sortedAddresses(touched) {
		r.compare(a, s.Number)
	}
}

// recount takes the owners of an address from the record.
func (r *s3) recount(a netip.Addr, s *step) {
	now := map[fsm.ServiceID]fsm.Allocation{}
	for _, o := range s.after.Owners(a.String()) {
		now[o.Service] = *o
	}
	for id, old := range r.owners[a] {
		is, still := now[id]
		for _, p := range old.Ports() {
			if still && !slices.Contains(is.Ports(), p) {
				r.closed[closing{a, id, p.Number}] = r.scene.now
			}
		}
		if !still {
			r.lose(a, id)
		}
	}
	r.comparePorts(a, r.owners[a], now, s)
	r.owners[a] = now
}

// lose notes that an address is a Service's no more.
func (r *s3) lose(a netip.Addr, id fsm.ServiceID) {
	if r.former[a] == nil {
		r.former[a] = map[fsm.ServiceID]time.Duration{}
	}
	r.former[a][id] = r.scene.now
}

// compare compares the owners of one address: each pair must have agreed, and share no port.
func (r *s3) compare(a netip.Addr, number uint64) {
	r.checked()
	ids := sortedKeys(r.owners[a])
	for i, x := range ids {
		for _, y := range ids[i+1:] {
			p, q := r.owners[a][x], r.owners[a][y]
			if p.SharingKey() == "" || p.SharingKey() != q.SharingKey() {
				r.broken(a.String(), fmt.Sprintf("it belongs to %s and to %s, which did not agree to share it", x, y), number)
			}
			for _, port := range p.Ports() {
				for _, other := range q.Ports() {
					if port == other {
						r.broken(a.String(), fmt.Sprintf("port %d/%s belongs to %s and to %s", port.Number, port.Protocol, x, y), number)
					}
				}
			}
		}
	}
}

func (r *s3) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.Object:
		if x.Kind == "Service" {
			r.compareTold(x.Namespace+"/"+x.Name, e.Number)
		}
	case event.Flow:
		r.flow(e, x)
	case event.Acted:
		r.lost.acted[x.Process] = x.Revision
	}
}

// compareTold compares what a Service is told with what all others are.
func (r *s3) compareTold(id string, number uint64) {
	for _, other := range r.kube.names {
		if other == id {
			continue
		}
		both := r.kube.wanted(id) && r.kube.wanted(other)
		common := both && slices.ContainsFunc(r.kube.services[id].status, func(a netip.Addr) bool {
			return slices.Contains(r.kube.services[other].status, a)
		})
		key := min(id, other) + " and " + max(id, other)
		r.told.note(key, common && !r.kube.share(id, other), r.scene.now, "both are told of one address", number)
	}
}

func (r *s3) tick() {
	if !r.record.View().Group().Quarantine.IsZero() {
		r.until = r.scene.now
	}
	r.hops.tick(r.judge)
	if !r.scene.unexcused("kubernetes") || r.scene.sound == never {
		for key, w := range r.told.since {
			w.at = r.scene.now
			r.told.since[key] = w
		}
	}
	for _, key := range r.told.over(r.scene.now, r.bounds.L1) {
		w := r.told.since[key]
		r.broken(key, fmt.Sprintf("%s since %s, and did not agree to share it", w.why, w.at), w.event)
	}
}

// flow judges where a request ended.
func (r *s3) flow(e event.Stamped, x event.Flow) {
	if !x.Served || x.Pod == "" || len(r.owners[x.Address]) == 0 {
		return
	}
	r.checked()
	taken := false
	for id, o := range r.owners[x.Address] {
		for _, p := range o.Ports() {
			if p.Number == x.Port && r.kube.served(string(id), x.Pod) {
				return
			}
			taken = taken || p.Number == x.Port
		}
	}
	if !taken && r.justClosed(x) {
		return
	}
	for id, at := range r.former[x.Address] {
		if (r.scene.now-at <= inFlight || r.keeps(at)) && r.kube.served(string(id), x.Pod) {
			return
		}
	}
	if !r.kube.knows(x.Pod) {
		return // no slice told whose it is
	}
	r.broken(fmt.Sprintf("%s port %d", x.Address, x.Port), "it led to "+x.Pod+" on "+x.Node+", which serves none of its owners", e.Number)
}

// justClosed tells whether a request ended where its port led until the Service closed it, at a node that need not know.
func (r *s3) justClosed(x event.Flow) bool {
	for id := range r.owners[x.Address] {
		at, ever := r.closed[closing{x.Address, id, x.Port}]
		if ever && r.kube.served(string(id), x.Pod) && !(r.scene.soundFor(at, r.bounds.L3) && r.scene.worksFor(x.Node, r.bounds.L3)) {
			return true
		}
	}
	return false
}
