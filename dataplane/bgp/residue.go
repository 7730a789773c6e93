// SPDX-License-Identifier: Apache-2.0

package bgp

import "net/netip"

// Residue tells how many paths of a prefix a peer may hold that the next session with it will not tell it of, since they were
// withdrawn when the session before could no longer say so. End-of-RIB ends them, but for switches that do not do all that it asks for.
//
// It must be told of each peer that comes, of each path that goes, and of what has arrived. The zero value knows no peer.
type Residue struct {
	peers map[netip.Addr]map[netip.Prefix]int
} // nil for a peer: anything

// Met notes a peer that is added. One that was not known may hold what an earlier life of this speaker told it.
func (r *Residue) Met(peer netip.Addr) {
	if _, known := r.peers[peer]; !known {
		r.Doubt(peer)
	}
}

// Doubt notes that a peer is to be told something else than other peers: it may hold anything.
func (r *Residue) Doubt(peer netip.Addr) {
	if r.peers == nil {
		r.peers = map[netip.Addr]map[netip.Prefix]int{}
	}
	r.peers[peer] = nil
}

// Removed notes that a path of a prefix is about to be withdrawn from all peers.
func (r *Residue) Removed(prefix netip.Prefix) {
	for _, prefixes := range r.peers {
		if prefixes != nil {
			prefixes[prefix]++
		}
	}
}

// Settled notes that a peer holds what it is to hold, and nothing else.
func (r *Residue) Settled(peer netip.Addr) {
	if _, known := r.peers[peer]; known {
		r.peers[peer] = map[netip.Prefix]int{}
	}
}

// Gone forgets a peer.
func (r *Residue) Gone(peer netip.Addr) { delete(r.peers, peer) }

// Most gives how many such paths of one prefix a peer may hold at most; false if there is no telling.
func (r *Residue) Most(peer netip.Addr) (most int, known bool) {
	prefixes := r.peers[peer]
	for _, n := range prefixes {
		most = max(most, n)
	}
	return most, prefixes != nil
}
