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
	seq    uint64 // of the newest step that the agent has
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
	known    bool            // whether the record knows the node
	changed  <-chan struct{} // closed when there is more
}

// resume finds the place of an agent that comes with something. Where its items are known by their digest, the
// place is exact. Otherwise it may have followed another member, whose steps end elsewhere than ours: it is
// sent all that changed since, which is too much but nearly always right, and the digest tells when it is not.
func (b *board) resume(have fsm.Revision, digest []byte) place {
	b.mu.Lock()
	defer b.mu.Unlock()
	if have.IsZero() || len(digest) != desired.DigestSize {
		return place{full: true}
	}
	oldest := b.seq - uint64(len(b.ring)) // of the step before those on the ring
	if desired.Digest(digest) == b.digest {
		return place{seq: b.seq}
	}
	for i, s := range slices.Backward(b.ring) {
		if s.before == desired.Digest(digest) {
			return place{seq: oldest + uint64(i)}
		}
	}
	if have.Epoch != b.at.Epoch || len(b.ring) == 0 || have.Before(b.ring[0].from) {
		return place{full: true}
	}
	after := slices.IndexFunc(b.ring, func(s step) bool { return have.Before(s.to) })
	if after < 0 {
		return place{full: true} // it should be where we are, and is not
	}
	return place{seq: oldest + uint64(after)}
}

// since gives what a stream at a place lacks.
func (b *board) since(p place, node fsm.NodeID) (update, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	boot, known := b.own.boots[node]
	u := update{
		to: place{seq: b.seq, ownSeq: b.own.seq}, revision: b.at, digest: b.digest,
		wanted: b.wanted[node], boot: boot, known: known, changed: b.changed,
	}
	if p.ownSeq != b.own.seq {
		u.own = b.own.of(node)
	}
	oldest := b.seq - uint64(len(b.ring))
	if p.full || p.seq < oldest {
		if err := b.encodeWhole(oldest); err != nil {
			return update{}, err
		}
		u.full, u.changes, p.seq = true, slices.Clone(b.whole.pieces), b.whole.seq
	}
	for _, s := range b.ring[p.seq-oldest:] {
		u.changes = append(u.changes, s.changes...)
	}
	return u, nil
}

// encodeWhole makes sure that whole is as of a step which the ring goes on from, and not much shorter than what
// would have to follow it.
func (b *board) encodeWhole(oldest uint64) error {
	behind := 0
	if b.whole.pieces != nil && b.whole.seq >= oldest {
		for _, s := range b.ring[b.whole.seq-oldest:] {
			behind += s.size
		}
		if behind < desired.PieceBytes {
			return nil
		}
	}
	keys := make([]string, 0, len(b.items))
	for key := range b.items {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	var pieces desired.Pieces
	for _, key := range keys {
		if err := pieces.Put(key, b.items[key]); err != nil {
			return err
		}
	}
	encoded, err := pieces.Bytes()
	if err != nil {
		return err
	}
	b.whole = whole{seq: b.seq, pieces: append([][]byte{}, encoded...)}
	return nil
}
