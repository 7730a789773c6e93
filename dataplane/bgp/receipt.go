// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"net/netip"
	"slices"
	"time"
)

// Link is how a speaker stands with a peer that holds paths of ours, or may hold some.
type Link struct {
	Peer netip.Addr
	// Session is the number of the open session; no other one ever has it. Zero says that none is open, and that the peer
	// may still keep what an earlier one told it.
	Session uint64
	// IPv4 and IPv6 tell of which families the session takes paths, as both ends agreed.
	IPv4, IPv6 bool
	Written    bool // all that was applied has been written to the session
	// Residue says that the peer may hold more than the session tells it of: what it kept of an earlier one.
	Residue bool
	// Sent is how much has been written to the session, and Arrived how much of that the other end is known to have, in
	// any measure that only grows.
	Sent, Arrived uint64
}

// Keeps is for how long after a session is lost its peer may keep our paths: it may notice late, and keeps them for as
// long as it was asked to. p is normal.
func (p Peer) Keeps() time.Duration {
	return p.HoldTime + p.Restart.RestartTime + p.Restart.StaleTime
}

// receipt finds out when no peer holds anything that had been withdrawn when the receipt was asked for.
//
// Writing to a session is not enough: what is written may be lost on the way until the session is, and the peer keeps
// paths of a session that was lost. A peer is through once the other end of its session has all that was written by
// then, once all paths have arrived over a newer session that leaves it nothing else, or once it cannot have kept any for so long.
type receipt struct {
	waits []wait
}

// wait is for a peer: until so much has arrived over a session. No session has number zero.
type wait struct {
	peer          netip.Addr
	session, upto uint64
}

// askReceipt asks for a receipt of what has been written so far.
func askReceipt(links []Link) *receipt {
	r := &receipt{}
	for _, l := range links {
		r.waits = append(r.waits, wait{peer: l.Peer})
	}
	r.given(links) // sessions that are open have all written
	return r
}

// given tells whether every peer is through.
func (r *receipt) given(links []Link) bool {
	r.waits = slices.DeleteFunc(r.waits, func(w wait) bool {
		return !slices.ContainsFunc(links, func(l Link) bool { return l.Peer == w.peer })
	})
	for _, l := range links {
		i := slices.IndexFunc(r.waits, func(w wait) bool { return w.peer == l.Peer })
		if i < 0 || l.Session == 0 || l.Residue {
			continue
		}
		if l.Session != r.waits[i].session {
			if !l.Written {
				continue
			}
			r.waits[i] = wait{peer: l.Peer, session: l.Session, upto: l.Sent}
		}
		if l.Arrived >= r.waits[i].upto {
			r.waits = slices.Delete(r.waits, i, i+1)
		}
	}
	return len(r.waits) == 0
}

// peers are those that are not through.
func (r *receipt) peers() (out []netip.Addr) {
	for _, w := range r.waits {
		out = append(out, w.peer)
	}
	return out
}
