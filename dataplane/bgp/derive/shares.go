// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"maps"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/share"
	"fairlead.io/fairlead/fsm"
)

// NodePeers gives the peers that a node has itself, in order: those without a password, those with one, which the node has to have
// from elsewhere, and those of which it has to find the address.
func NodePeers(v *fsm.View, node fsm.NodeID) (peers []bgp.Peer, signed []share.SignedPeer, unnumbered []share.UnnumberedPeer) {
	for _, p := range fsm.List[*fsm.Peer](v, fsm.TablePeers) {
		switch {
		case !p.Nodes.Admits(node):
		case p.Interface != "":
			unnumbered = append(unnumbered, share.UnnumberedPeer{Peer: peerOf(p), Interface: p.Interface})
		case p.PasswordFrom != "":
			signed = append(signed, share.SignedPeer{Peer: peerOf(p), PasswordFrom: p.PasswordFrom})
		default:
			peers = append(peers, peerOf(p))
		}
	}
	return peers, signed, unnumbered
}

// Shares keeps what each node announces itself of a record that changes: the paths that members announce, each by the node that
// is its next hop. The zero value has seen nothing; one goroutine uses it, with newer and newer views of one State.
type Shares struct {
	view   *fsm.View
	all    Follower
	blocks aggregates
	beside summaries
	nodes  map[fsm.NodeID]map[netip.Prefix]part
	at     map[netip.Prefix][]fsm.NodeID // who has a part of a prefix
	// settled is of the newest record outside a quarantine.
	settled Settled
	seq     uint64
	common  uint64                // sequence number of the newest change that concerns every node
	own     map[fsm.NodeID]uint64 // and of those that concern one
}

// part is what one node has of one prefix: the path by its next hop, or none where a hop of it is on its way out.
type part struct {
	nextHop netip.Addr
	gone    bool
}

// Follow takes in a newer view.
func (s *Shares) Follow(v *fsm.View) {
	if s.view != nil && !fsm.Differ(s.view, v, Tables()...) && s.blocks.all == mayDraw(v) {
		return
	}
	s.seq++
	before := s.view
	_, touched, whole := s.all.Follow(v)
	s.view = v
	if v.Group().Quarantine.IsZero() {
		s.settled = Settled{View: v, Paths: s.all.paths}
	}
	defer s.redraw(touched, whole)
	if whole {
		s.nodes, s.at, s.own = map[fsm.NodeID]map[netip.Prefix]part{}, map[netip.Prefix][]fsm.NodeID{}, map[fsm.NodeID]uint64{}
		for _, r := range fsm.List[*fsm.Route](v, fsm.TableRoutes) {
			s.place(r)
		}
		s.common = s.seq
		return
	}
	if fsm.Differ(before, v, fsm.TablePeers) || before.Group().Quarantine != v.Group().Quarantine {
		s.common = s.seq
	}
	for _, prefix := range touched {
		for _, id := range s.at[prefix] {
			delete(s.nodes[id], prefix)
			s.own[id] = s.seq
		}
		delete(s.at, prefix)
		if r, ok := fsm.Get[*fsm.Route](v, fsm.TableRoutes, prefix.String()); ok {
			s.place(r)
		}
	}
}

// redraw finds the aggregates and the summaries anew, which concern the nodes that have their addresses.
func (s *Shares) redraw(touched []netip.Prefix, whole bool) {
	changed := s.blocks.follow(&s.all, touched, whole)
	maps.Copy(changed, s.beside.follow(&s.all, touched, whole))
	for block := range changed {
		for _, p := range s.all.paths.In(block) {
			for _, id := range s.at[p.Prefix] {
				s.own[id] = s.seq
			}
		}
	}
}

// place gives the paths of a route to the nodes that are its hops.
func (s *Shares) place(r *fsm.Route) {
	settings := s.view.Group().Settings
	for _, h := range r.NextHops {
		n, _ := fsm.Get[*fsm.Node](s.view, fsm.TableNodes, string(h.Node()))
		p := part{h.Address(), h.Withdrawing}
		if !h.Withdrawing && !fsm.Announceable(r.Prefix, h, n, settings) {
			continue
		}
		if s.nodes[h.Node()] == nil {
			s.nodes[h.Node()] = map[netip.Prefix]part{}
		}
		if have, there := s.nodes[h.Node()][r.Prefix]; !there || have.gone { // a node that changes its address has two hops
			s.nodes[h.Node()][r.Prefix] = p
		}
		if !slices.Contains(s.at[r.Prefix], h.Node()) {
			s.at[r.Prefix] = append(s.at[r.Prefix], h.Node())
		}
		s.own[h.Node()] = s.seq
	}
}

// Seq tells apart what a node was told: it is another one whenever there is something to tell, also that something which the
// node may never have announced is withdrawn.
func (s *Shares) Seq(node fsm.NodeID) uint64 { return max(s.common, s.own[node]) }

// Of gives what a node announces. A node that has no peers announces nothing.
func (s *Shares) Of(node fsm.NodeID) share.Share {
	rev := s.view.Revision()
	out := share.Share{Revision: bgp.Revision{Epoch: uint64(rev.Epoch), Index: uint64(rev.Index)}, Keep: !s.view.Group().Quarantine.IsZero()}
	out.Peers, out.Signed, out.Unnumbered = NodePeers(s.view, node)
	if len(out.Peers)+len(out.Signed)+len(out.Unnumbered) == 0 && !out.Keep {
		return out
	}
	for _, prefix := range slices.SortedFunc(maps.Keys(s.nodes[node]), netip.Prefix.Compare) {
		p := s.nodes[node][prefix]
		switch {
		case out.Keep && !p.gone && s.settled.ownerChanged(s.view, prefix): // Keep says why
		case !p.gone:
			of := s.all.paths.Of(prefix)
			out.Paths = append(out.Paths, of[slices.IndexFunc(of, func(own bgp.Path) bool { return own.NextHop == p.nextHop })])
		case out.Keep:
			out.Gone = append(out.Gone, prefix)
		}
	}
	slices.SortFunc(out.Paths, bgp.Path.Compare)
	out.Summaries = s.summaries(out.Paths)
	if len(s.blocks.drawn) == 0 {
		return out
	}
	paths := bgp.NewPaths(out.Paths...)
	for _, block := range slices.SortedFunc(maps.Keys(s.blocks.drawn), netip.Prefix.Compare) {
		if bgp.Aggregate(paths, block) != nil {
			out.Aggregates = append(out.Aggregates, block)
		}
	}
	return out
}

// summaries gives the paths of prefixes that a node announces beside those of some addresses, in order.
func (s *Shares) summaries(singles []bgp.Path) (out []bgp.Path) {
	if len(s.beside.beside) == 0 {
		return nil
	}
	seen := map[netip.Prefix]bool{}
	for _, single := range singles {
		for _, block := range s.all.attributes.aggregatesWith(single.Prefix.Addr()) {
			of := s.beside.beside[block]
			i := slices.IndexFunc(of, func(p bgp.Path) bool { return p.NextHop == single.NextHop })
			if i >= 0 && !seen[block] {
				seen[block] = true
				out = append(out, of[i])
			}
		}
	}
	slices.SortFunc(out, bgp.Path.Compare)
	return out
}
