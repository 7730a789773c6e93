// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"net/netip"
	"slices"
	"time"
)

// Keeping tells, for a speaker, which peers without a session may keep what they were told. It must be told of each
// peer that comes, and of each session that ends. The zero value knows no peer.
type Keeping struct{ peers map[netip.Addr]keeps }

type keeps struct {
	long  time.Duration
	until time.Time
}

// Met notes a peer that was added or changed: it may keep what an earlier life of this speaker told it. p is normal.
func (k *Keeping) Met(p Peer, now time.Time) {
	if k.peers == nil {
		k.peers = map[netip.Addr]keeps{}
	}
	k.peers[p.Address] = keeps{long: p.Keeps(), until: now.Add(max(p.Keeps(), k.peers[p.Address].long))}
}

// Lost notes that the session with a peer has ended without leave.
func (k *Keeping) Lost(peer netip.Addr, now time.Time) {
	if known, ok := k.peers[peer]; ok {
		known.until = now.Add(known.long)
		k.peers[peer] = known
	}
}

// Left notes that an open session has ended by taking leave for good: its peer drops all paths.
func (k *Keeping) Left(peer netip.Addr) { delete(k.peers, peer) }

// Peers lists the peers that may keep something, unless their session is open, in order.
func (k *Keeping) Peers(now time.Time) (out []netip.Addr) {
	for peer, known := range k.peers {
		if now.Before(known.until) {
			out = append(out, peer)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}
