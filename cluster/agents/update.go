// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"slices"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/fsm"
)

// place is how far a stream is.
type place struct {
	wants  tells  // what the agent wants
	out    bool   // it is of a host outside the cluster
	seq    uint64 // of the newest step that it has
	full   bool   // it has nothing: everything has to be sent
	ownSeq uint64
}

// update is what a stream has to look at: the difference between its place and the board.
type update struct {
	to       place
	revision fsm.Revision
	full     bool
	changes  [][]byte
	digest   desired.Digest
	own      *fairleadv1.NodeState // nil if it is as before
	wanted   fsm.Revision          // since when the node has something to acknowledge
	boot     fsm.BootID
	known    bool      // whether the record knows the node, or the host
	facts    hostFacts // of a host outside the cluster
	// mayTunnel says that the record can know whether nodes make tunnels, tunnels what it knows of this one.
	mayTunnel, tunnels bool
	changed            <-chan struct{} // closed when there is more
}

// resume finds the place of an agent that comes with something.
func (b *board) resume(have fsm.Revision, digest []byte, wants tells) place {
	b.mu.Lock()
	defer b.mu.Unlock()
	seq, ok := b.inside.trays[wants].find(have, digest, b.at.Epoch)
	return place{wants: wants, seq: seq, full: !ok}
}

// resumeOutside is resume for a host outside the cluster.
func (b *board) resumeOutside(have fsm.Revision, digest []byte) place {
	b.mu.Lock()
	defer b.mu.Unlock()
	seq, ok := b.outside.trays[0].find(have, digest, b.at.Epoch)
	return place{out: true, seq: seq, full: !ok}
}

// since gives what a stream at a place lacks.
func (b *board) since(p place, name string) (update, error) {
	for made := false; ; made = true {
		if u, ok := b.sinceRing(p, name, made); ok {
			return u, nil
		}
		if err := b.encodeWhole(p); err != nil {
			return update{}, err
		}
	}
}

// sinceRing is since; it is false if everything has to be sent, and is not encoded. What was made for this will do, however much must follow.
func (b *board) sinceRing(p place, name string, made bool) (update, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.trayOf(p)
	all := p.full || p.seq < t.oldest()
	if all && !t.hasWhole(made) {
		return update{}, false
	}
	u := update{
		to:       place{wants: p.wants, out: p.out, seq: t.seq, ownSeq: b.own.seq},
		revision: b.at, digest: t.digest, changed: b.changed,
	}
	if p.out {
		var h hostFacts
		h, u.known = b.own.hosts[fsm.HostID(name)]
		u.boot, u.facts = h.boot, h
		if h.tunnels {
			u.wanted = b.meshed
		}
	} else {
		u.wanted = b.wanted[fsm.NodeID(name)]
		for _, at := range []fsm.Revision{b.policiesSince, b.meshed} {
			if p.wants == tellsAll && u.wanted.Before(at) {
				u.wanted = at
			}
		}
		if p.wants != tellsAddresses && u.wanted.Before(b.probed) {
			u.wanted = b.probed
		}
		u.boot, u.known = b.own.boots[fsm.NodeID(name)]
		u.mayTunnel, u.tunnels = b.own.mayTunnel, b.own.tunneling[fsm.NodeID(name)]
	}
	switch {
	case p.ownSeq == b.own.seq:
	case p.out:
		u.own = b.own.ofHost(fsm.HostID(name))
	default:
		u.own = b.own.of(fsm.NodeID(name))
	}
	if all {
		u.full, u.changes, p.seq = true, slices.Clone(t.whole.pieces), t.whole.seq
	}
	for _, s := range t.ring[p.seq-t.oldest():] {
		u.changes = append(u.changes, s.changes...)
	}
	return u, true
}

// trayOf is what a stream is told from.
func (b *board) trayOf(p place) *tray {
	if p.out {
		return &b.outside.trays[0]
	}
	return &b.inside.trays[p.wants]
}
