// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"cmp"
	"hash/fnv"
	"io"
	"net/netip"
	"slices"
	"strings"
)

// Terms are the attributes under which one peer is announced a path, in place of the path's own.
type Terms struct {
	Peer             string           `json:"peer"` // its name
	MED              uint32           `json:"med,omitempty"`
	LocalPref        uint32           `json:"localPref,omitempty"` // as of Path
	Communities      []Community      `json:"communities,omitempty"`
	LargeCommunities []LargeCommunity `json:"largeCommunities,omitempty"`
}

// To gives the path as a peer is announced it; false if it is not.
func (p Path) To(peer string) (Path, bool) {
	i, named := slices.BinarySearchFunc(p.Terms, peer, func(t Terms, peer string) int { return strings.Compare(t.Peer, peer) })
	switch {
	case named:
		return p.Terms[i].under(p), true
	case p.Withheld:
		return Path{}, false
	}
	p.Terms = nil
	return p, true
}

// termsOf are the attributes of a path as terms of a peer.
func termsOf(peer string, p Path) Terms {
	return Terms{Peer: peer, MED: p.MED, LocalPref: p.LocalPref, Communities: p.Communities, LargeCommunities: p.LargeCommunities}
}

// under is a path as it is announced under these terms.
func (t Terms) under(p Path) Path {
	p.MED, p.LocalPref, p.Communities, p.LargeCommunities = t.MED, t.LocalPref, t.Communities, t.LargeCommunities
	p.Terms, p.Withheld = nil, false
	return p
}

// Equal says whether t and u are the same terms of the same peer.
func (t Terms) Equal(u Terms) bool {
	return t.Peer == u.Peer && t.MED == u.MED && t.LocalPref == u.LocalPref &&
		slices.Equal(t.Communities, u.Communities) && slices.Equal(t.LargeCommunities, u.LargeCommunities)
}

// normalTerms are terms in order, with communities as those of a normal path.
func normalTerms(terms []Terms) []Terms {
	if len(terms) == 0 {
		return nil
	}
	out := slices.Clone(terms)
	for i, t := range out {
		p := Path{Communities: t.Communities, LargeCommunities: t.LargeCommunities}.Normal()
		out[i].Communities, out[i].LargeCommunities = p.Communities, p.LargeCommunities
	}
	slices.SortFunc(out, func(a, b Terms) int { return cmp.Compare(a.Peer, b.Peer) })
	return out
}

// audience is a hash of who is sent a path, 0 if that is everybody.
func (p Path) audience() uint32 {
	if !p.Withheld {
		return 0
	}
	h := fnv.New32a()
	for _, t := range normalTerms(p.Terms) {
		_, _ = io.WriteString(h, t.Peer+"\n") // a hash takes everything
	}
	return h.Sum32()
}

// overfullByPeer is Overfull where peers are not sent the same paths.
func (d Desired) overfullByPeer() map[netip.Prefix]int {
	out := map[netip.Prefix]int{}
	for _, peer := range d.Peers {
		peer = peer.Normal(0)
		count := map[netip.Prefix]int{}
		for p := range d.Paths.All() {
			if _, sent := p.To(peer.Name); sent && slices.Contains(peer.Families, FamilyOf(p.Prefix.Addr())) {
				count[p.Prefix]++
			}
		}
		for prefix, n := range count {
			if n > int(peer.SendMax) {
				out[prefix] = max(out[prefix], n)
			}
		}
	}
	return out
}
