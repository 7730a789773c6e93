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
	known    bool // whether the record knows the node
	// mayTunnel says that the record can know whether nodes make tunnels, tunnels what it knows of this one.
	mayTunnel, tunnels bool
	changed            <-chan struct{} // closed when there is more
}

// resume finds the place of an agent that comes with something.
func (b *board) resume(have fsm.Revision, digest []byte, wants tells) place {
	b.mu.Lock()
	defer b.mu.Unlock()
	seq, ok := b.trays[wants].find(have, digest, b.at.Epoch)
	return place{wants: wants, seq: seq, full: !ok}
}

// since gives what a stream at a place lacks.
func (b *board) since(p place, node fsm.NodeID) (update, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := &b.trays[p.wants]
	boot, known := b.own.boots[node]
	u := update{
		to:       place{wants: p.wants, seq: t.seq, ownSeq: b.own.seq},
		revision: b.at, digest: t.digest, wanted: b.wanted[node], boot: boot, known: known, mayTunnel: b.own.mayTunnel, tunnels: b.own.tunneling[node], changed: b.changed,
	}
	if p.wants == tellsAll && u.wanted.Before(b.redirected) {
		u.wanted = b.redirected
	}
	if p.ownSeq != b.own.seq {
		u.own = b.own.of(node)
	}
	if p.full || p.seq < t.oldest() {
		if err := t.encodeWhole(b.items); err != nil {
			return update{}, err
		}
		u.full, u.changes, p.seq = true, slices.Clone(t.whole.pieces), t.whole.seq
	}
	for _, s := range t.ring[p.seq-t.oldest():] {
		u.changes = append(u.changes, s.changes...)
	}
	return u, nil
}
