// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"net/netip"
	"slices"
)

// View is the record at one index: immutable, cheap to take, safe for any number of readers.
type View struct {
	rows    *rows
	applied Index
	digest  Digest
	// published counts the views of a State.
	published uint64
}

// Read gives the record as of the newest applied entries.
func (s *State) Read() *View { return s.view.Load() }

// publish makes what was applied visible to readers, all at once, and wakes those who wait for the tables.
func (s *State) publish(touched map[Table]bool) {
	s.published++
	var before *rows
	if v := s.view.Load(); v != nil {
		before = v.rows
	}
	v := &View{rows: s.rows.freeze(before, touched), applied: s.applied, digest: s.digest, published: s.published}
	s.waiters.publish(s.published, touched, func() { s.view.Store(v) })
}

// Only is the view as if the tables that are not named were empty. Whoever compares it with later ones, or waits with it, holds no more of
// the record than that.
func (v *View) Only(tables ...Table) *View {
	out := *v
	out.rows = newRows()
	for _, t := range tables {
		out.rows.tables[t] = v.rows.tables[t]
	}
	return &out
}

// Applied is the index of the view.
func (v *View) Applied() Index { return v.applied }

// Digest is that of the record at Applied.
func (v *View) Digest() Digest { return v.digest }

// DigestWithout is that of the record at Applied as it would be if some tables were empty.
func (v *View) DigestWithout(tables ...Table) Digest {
	out := v.digest
	for _, t := range tables {
		for _, r := range List[Record](v, t) {
			out.sub(r.sealed().sum)
		}
	}
	return out
}

// Revision is the epoch and index of the view.
func (v *View) Revision() Revision { return Revision{v.Group().Epoch, v.applied} }

// Group is the identity and settings; zero before bootstrap.
func (v *View) Group() *Group {
	if g, ok := Get[*Group](v, TableGroup, groupKey); ok {
		return g
	}
	return &Group{}
}

// Get reads one record by its key. The record is shared: never write to it.
func Get[R Record](v *View, t Table, key string) (R, bool) { return find[R](v.rows, t, key) }

// List reads a whole table in key order. The records are shared: never write to them.
func List[R Record](v *View, t Table) []R { return list[R](v.rows, t) }

// Count is how many rows a table has.
func (v *View) Count(t Table) int { return v.rows.tables[t].order.count }

// Owners lists the allocations of one address.
func (v *View) Owners(address string) []*Allocation {
	return ownersOf(v.rows, address)
}

// Addresses lists the allocations of one service, in order of address text.
func (v *View) Addresses(s ServiceID) []*Allocation {
	return allocationsOf(v.rows, s)
}

// OnSubject lists the bindings that share one line of operations.
func (v *View) OnSubject(s Subject) []*Binding {
	return listRefs[*Binding](v.rows, TableBindings, refSubject, string(s))
}

// BalancersOn lists the load balancers whose calls share one line of operations.
func (v *View) BalancersOn(s Subject) []*LoadBalancer {
	return listRefs[*LoadBalancer](v.rows, TableBalancers, refSubject, string(s))
}

// CountBalancersOf tells how many load balancers a driver looks after.
func (v *View) CountBalancersOf(driver string) int {
	return countRefs(v.rows, TableBalancers, refDriver, driver)
}

// CountBindingsOf tells how many bindings a load balancer has.
func (v *View) CountBindingsOf(id BalancerID) int {
	return countRefs(v.rows, TableBindings, refBalancer, string(id))
}

// BindingsOf lists the bindings of a load balancer.
func (v *View) BindingsOf(id BalancerID) []*Binding {
	return listRefs[*Binding](v.rows, TableBindings, refBalancer, string(id))
}

// Announceable tells whether a hop of a prefix may be on the wire: wanted still, and its node's present boot
// acknowledged it and did not fail at it, or nobody is asked to (S9). The node may be nil: it is unknown then.
func Announceable(prefix netip.Prefix, h NextHop, node *Node, settings Settings) bool {
	switch {
	case h.Withdrawing:
		return false
	case settings.Unsteered:
		return true
	case node == nil || node.Acknowledged.IsZero() || node.Acknowledged.Before(h.Since):
		return false
	}
	return !slices.Contains(node.Failed, prefix)
}

// HopState derives where a hop of a prefix stands from the marks of its node and of the speakers, and from who hears these. What nobody is
// sent is not announced, however much of it is written: it is acknowledged, see Unreached.
func (v *View) HopState(r *Route, h NextHop) HopState {
	if h.Withdrawing {
		return HopWithdrawing
	}
	since, ok := v.AnnounceableSince(r, h)
	if !ok {
		return HopWanted
	}
	if _, heard := v.written(r, h, since); heard {
		return HopAnnounced
	}
	return HopAcknowledged
}

// Unreached tells of a hop that speakers have put on all their sessions, and that is announced to nobody all the same: the peers that it is
// to be sent to, none of which has a session that takes it, are its Audience.
func (v *View) Unreached(r *Route, h NextHop) bool {
	since, ok := v.AnnounceableSince(r, h)
	if !ok {
		return false
	}
	written, heard := v.written(r, h, since)
	return written && !heard
}

// written tells whether any speaker has put a hop, which may be announced since a revision, on all its sessions, and whether anybody hears one
// that has.
func (v *View) written(r *Route, h NextHop, since Revision) (written, heard bool) {
	a := r.Prefix.Addr()
	var members, nodes []*Peer // that are to be sent it
	looked := false
	look := func() {
		if !looked {
			members, nodes = byWhoPeers(v.Audience(a, h.Node()))
			written, looked = true, true
		}
	}
	if n, known := Get[*Node](v, TableNodes, string(h.Node())); known && n.Speaking.Speaks && !n.Speaking.Announced.Before(since) {
		if look(); len(nodes) > 0 && n.Speaking.Sessions.reaches(nodes, a) {
			return true, true
		}
	}
	if v.NodesAnnounce() {
		return written, false
	}
	for _, m := range v.Speakers() {
		if m.Announced.Before(since) {
			continue
		}
		if look(); m.Sessions.reaches(members, a) {
			return true, true
		}
	}
	return written, false
}

// byWhoPeers takes peers of members and those of nodes apart.
func byWhoPeers(peers []*Peer) (members, nodes []*Peer) {
	for _, p := range peers {
		if p.Nodes.Speak {
			nodes = append(nodes, p)
		} else {
			members = append(members, p)
		}
	}
	return members, nodes
}

// NodesAnnounce tells whether only nodes have peers: what members then have on the wire reaches nobody.
func (v *View) NodesAnnounce() bool {
	peers := List[*Peer](v, TablePeers)
	return len(peers) > 0 && !slices.ContainsFunc(peers, func(p *Peer) bool { return !p.Nodes.Speak })
}

// Announcers lists the members that have a hop on the wire of a session whose peer is to be sent it, in order of their servers. There are some
// just where HopState says HopAnnounced, unless only nodes have peers: nobody else announces then.
func (v *View) Announcers(r *Route, h NextHop) (out []*Member) {
	since, ok := v.AnnounceableSince(r, h)
	if !ok || v.NodesAnnounce() {
		return nil
	}
	audience, _ := byWhoPeers(v.Audience(r.Prefix.Addr(), h.Node()))
	for _, m := range v.Speakers() {
		if !m.Announced.Before(since) && m.Sessions.reaches(audience, r.Prefix.Addr()) {
			out = append(out, m)
		}
	}
	return out
}

// AnnounceableSince is the revision at which a hop came to be announceable; false if it is not.
func (v *View) AnnounceableSince(r *Route, h NextHop) (since Revision, ok bool) {
	n, known := Get[*Node](v, TableNodes, string(h.Node()))
	if !Announceable(r.Prefix, h, n, v.Group().Settings) {
		return Revision{}, false
	}
	if known && n.Acknowledged == h.Since {
		return n.AcknowledgedAt, true // not before that was committed
	}
	return h.Since, true
}
