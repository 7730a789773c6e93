// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"errors"
	"fmt"
	"time"

	"fairlead.io/fairlead/api/desired"
)

// keepWhole is how long a whole is kept: agents that need one come together, after a start or a release, or seldom.
const keepWhole = time.Minute

// whole is everything, encoded once for all who need it: as of a step that is still on the ring.
type whole struct {
	seq    uint64
	pieces [][]byte
	size   int
}

// hasWhole tells whether there is a whole which the ring goes on from, and, unless any will do, whether little beside it has to follow.
func (t *tray) hasWhole(anyWill bool) bool {
	if t.whole.pieces == nil || t.whole.seq < t.oldest() {
		return false
	}
	if anyWill {
		return true
	}
	behind := 0
	for _, s := range t.ring[t.whole.seq-t.oldest():] {
		behind += s.size
	}
	return behind < max(desired.PieceBytes, t.whole.size/8)
}

// encodeWhole makes sure that there is a whole of what a place is told. Items are derived anew: none is kept, as they are seldom
// needed. That takes half a second where there are 50,000 Services, for which nobody has to wait but those who need it.
//
// Errors: an item cannot be encoded, or what comes out is not what the steps led to, so that every agent would refuse it. That is a fault of
// this program, and over once everything was derived anew.
func (b *board) encodeWhole(p place) error {
	b.encoding.Lock()
	defer b.encoding.Unlock()
	b.mu.Lock()
	t, from := b.trayOf(p), source{b.view, b.homes}
	has, seq, digest, all := t.hasWhole(false), t.seq, t.digest, pile{tells: t.tells}
	b.mu.Unlock()
	if has {
		return nil // others needed it, too
	}
	if err := from.everything(p.out, &all); err != nil {
		return err
	}
	if all.digest != digest {
		err := fmt.Errorf("encode everything for agents: its digest is %x, and %x by what changed: all is derived anew", all.digest, digest)
		return errors.Join(err, b.startOver())
	}
	pieces, err := all.pieces.Bytes()
	if err != nil {
		return fmt.Errorf("encode everything for agents: %w", err)
	}
	made := whole{seq: seq, pieces: append([][]byte{}, pieces...)}
	for _, piece := range pieces {
		made.size += len(piece)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trayOf(p).whole = made // where all hosts went meanwhile, their new tray is a step ahead of it
	time.AfterFunc(keepWhole, func() { b.forgetWhole(p, seq) })
	return nil
}

// forgetWhole lets go of the whole as of a step, unless there is a newer one.
func (b *board) forgetWhole(p place, seq uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.trayOf(p); t.whole.seq == seq {
		t.whole = whole{}
	}
}

// pile is all that a tray tells.
type pile struct {
	tells  tells
	pieces desired.Pieces
	digest desired.Digest
}

func (p *pile) put(key string, value []byte, needs tells) error {
	if needs > p.tells {
		return nil
	}
	p.digest = p.digest.Plus(key, value)
	return p.pieces.Put(key, value)
}

func (*pile) drop(string) error { return nil }
