// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"bytes"
	"fmt"
	"slices"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/fsm"
)

// ringLimit bounds the ring: agents that were away for longer are sent everything.
type ringLimit struct{ steps, bytes int }

func defaultRing() ringLimit { return ringLimit{steps: 4096, bytes: 4 << 20} }

// shelf is what is told to nodes, or to hosts outside the cluster, by what of it they want. The board's lock guards it. No item is kept: what
// stood under a key before a step is derived once more, from the view that the step leads on from.
type shelf struct {
	trays []tray // by what they tell
	was   recall // while a step is derived, what it may replace
}

func newShelf(trays ...tells) shelf {
	var s shelf
	for _, t := range trays {
		s.trays = append(s.trays, tray{tells: t})
	}
	return s
}

// clear empties a shelf: its trays are a step on, from which no step on their rings leads.
func (s *shelf) clear() {
	for i := range s.trays {
		t := &s.trays[i]
		*t = tray{tells: t.tells, seq: t.seq + 1}
	}
}

// tray is what nodes that want the same items are told from: how those came to be what they are, encoded once for all of
// those nodes. The board's lock guards it.
type tray struct {
	tells tells

	digest    desired.Digest
	ring      []step
	ringBytes int
	seq       uint64 // of the newest step
	whole     whole

	next   step // that is being derived
	pieces desired.Pieces
	sum    desired.Digest // that it leads to
}

// tells is what a tray has: each kind has what those before it have, too.
type tells uint8

const (
	tellsAddresses tells = iota // nothing but addresses
	tellsAddressed              // also the Services that have any
	tellsAll                    // also those that nodes serve by their node ports or ClusterIPs alone, all nodes, and policies
)

// item is what stands under a key, but for its value.
type item struct {
	digest desired.Digest // of it alone
	needs  tells          // who is told of it
}

// step is one change of the items, encoded once for all nodes.
type step struct {
	from, to fsm.Revision
	before   desired.Digest
	changes  [][]byte
	size     int
}

// begin begins a step from one revision to another; from the zero one it leads to all that there is. One that was not pushed leaves nothing.
func (t *tray) begin(from, to fsm.Revision) {
	t.next, t.pieces, t.sum = step{from: from, to: to, before: t.digest}, desired.Pieces{}, t.digest
}

// put changes an item in the step; before is nil if there was none. One that is not to be told from here any more goes.
func (t *tray) put(key string, value []byte, before *item, now item) error {
	if now.needs > t.tells {
		return t.drop(key, before)
	}
	if before != nil && before.needs <= t.tells {
		t.sum = t.sum.Without(before.digest)
	}
	if t.sum = t.sum.With(now.digest); t.next.from.IsZero() {
		return nil // nobody is sent it
	}
	return t.pieces.Put(key, value)
}

// drop removes an item in the step, if it was told from here.
func (t *tray) drop(key string, before *item) error {
	if before == nil || before.needs > t.tells {
		return nil
	}
	t.sum = t.sum.Without(before.digest)
	return t.pieces.Remove(key)
}

// push adds the step to the ring, if it changes anything, and drops what is too old. The first step is on no ring: whoever has nothing needs
// everything. below are the changes of the tray that tells less: where they are the same, both hold one copy.
func (t *tray) push(limit ringLimit, below [][]byte) (changes [][]byte, err error) {
	s := t.next
	if s.changes, err = t.pieces.Bytes(); err != nil {
		return nil, fmt.Errorf("encode changes for agents: %w", err)
	}
	t.next, t.pieces, t.digest = step{}, desired.Pieces{}, t.sum
	if s.from.IsZero() {
		t.seq++
		return nil, nil
	}
	if len(s.changes) == 0 {
		return nil, nil
	}
	if slices.EqualFunc(s.changes, below, bytes.Equal) {
		s.changes = below
	}
	for _, c := range s.changes {
		s.size += len(c)
	}
	t.ring, t.ringBytes = append(t.ring, s), t.ringBytes+s.size
	t.seq++
	drop := 0
	for drop < len(t.ring) && (len(t.ring)-drop > limit.steps || t.ringBytes > limit.bytes) {
		t.ringBytes -= t.ring[drop].size
		drop++
	}
	clear(t.ring[:drop])
	t.ring = t.ring[drop:] // the next append that finds no room moves them all
	return s.changes, nil
}

// oldest is the step before those on the ring.
func (t *tray) oldest() uint64 { return t.seq - uint64(len(t.ring)) }

// find gives the step that an agent has which comes with something. Where its items are known by their digest, that
// is exact. Otherwise it may have followed another member, whose steps end elsewhere than ours: it is
// sent all that changed since, which is too much but nearly always right, and the digest tells when it is not.
// It is false for an agent that has to be sent everything. epoch is that of the record.
func (t *tray) find(have fsm.Revision, digest []byte, epoch fsm.Epoch) (seq uint64, ok bool) {
	if have.IsZero() || len(digest) != desired.DigestSize {
		return 0, false
	}
	if desired.Digest(digest) == t.digest {
		return t.seq, true
	}
	for i, s := range slices.Backward(t.ring) {
		if s.before == desired.Digest(digest) {
			return t.oldest() + uint64(i), true
		}
	}
	if have.Epoch != epoch || len(t.ring) == 0 || have.Before(t.ring[0].from) {
		return 0, false
	}
	after := slices.IndexFunc(t.ring, func(s step) bool { return have.Before(s.to) })
	if after < 0 {
		return 0, false // it should be where we are, and is not
	}
	return t.oldest() + uint64(after), true
}
