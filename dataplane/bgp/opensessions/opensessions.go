// SPDX-License-Identifier: Apache-2.0

// Package opensessions tells which BGP sessions of a speaker the record is told of as open: a member's, or a node's. It promises that one which is
// away for a moment counts on, and that nobody is said to be sent what he was not sent once.
package opensessions

import (
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
)

// Every is how often a speaker's sessions are looked at, and how long a look may take.
const Every = time.Second

const (
	// briefly is for how long a session that is away counts as open: switches are restarted, members, and speakers, and hardly a switch
	// drops what it was told so soon. Who reads that nothing is announced is to have cause to do something.
	briefly = time.Minute
	// openWithin is how long a speaker of which the record was never told has for its sessions to open before it is.
	openWithin = 10 * time.Second
)

// Peer is somebody whom the speaker is to have a session with.
type Peer struct {
	Name    fsm.PeerName
	Address netip.Addr
}

// Watch finds out which of a speaker's sessions count as open. The zero value has seen none. It belongs to one goroutine.
type Watch struct {
	began time.Time
	whole map[netip.Addr]uint64      // the newest session with each peer over which it was told everything once
	away  map[fsm.PeerName]time.Time // since when peers that count as open have no such session
}

// Look gives the peers whose sessions count as open, in order of peers, by what the speaker says of its links and by what was said of it before.
// They are settled once all peers have one, or had time to open it.
func (w *Watch) Look(now time.Time, links []bgp.Link, peers []Peer, have fsm.Sessions) (open []fsm.Reach, settled bool) {
	if w.whole == nil {
		w.began, w.whole, w.away = now, map[netip.Addr]uint64{}, map[fsm.PeerName]time.Time{}
	}
	settled = true
	for _, p := range peers {
		if l, ok := w.told(links, p.Address); ok {
			delete(w.away, p.Name)
			open = append(open, fsm.Reach{Peer: p.Name, IPv4: l.IPv4, IPv6: l.IPv6})
			continue
		}
		settled = false
		if i := slices.IndexFunc(have.Open, func(o fsm.Reach) bool { return o.Peer == p.Name }); i >= 0 && w.isBriefly(now, p.Name) {
			open = append(open, have.Open[i])
		}
	}
	return open, settled || have.Told || now.Sub(w.began) >= openWithin
}

// told is the session with a peer over which it was told everything once. What is still on the way then is of the marks.
func (w *Watch) told(links []bgp.Link, peer netip.Addr) (bgp.Link, bool) {
	i := slices.IndexFunc(links, func(l bgp.Link) bool { return l.Peer == peer.Unmap() })
	if i < 0 || links[i].Session == 0 {
		return bgp.Link{}, false
	}
	if links[i].Written {
		w.whole[links[i].Peer] = links[i].Session
	}
	return links[i], w.whole[links[i].Peer] == links[i].Session
}

// isBriefly tells whether a peer's session has been away for a short time only.
func (w *Watch) isBriefly(now time.Time, peer fsm.PeerName) bool {
	if _, known := w.away[peer]; !known {
		w.away[peer] = now
	}
	return now.Sub(w.away[peer]) < briefly
}
