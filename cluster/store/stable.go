// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

// NotFound tells whether a raft.StableStore says that it has no such key. The library compares this very text, and
// so must every store.
func NotFound(err error) bool { return err != nil && err.Error() == "not found" }

// Keys of the library.
const (
	keyTerm     = "CurrentTerm"
	keyVoted    = "LastVoteTerm"
	keyVotedFor = "LastVoteCand"
)

// A value is kept with a checksum of it and its key behind it, where releases that know of none do not see it: they read the
// first eight bytes of a number, and a candidate with something behind it is nobody whom they would vote for again.
const numberBytes = 8

// mark stands between a text and its checksum. No text has it.
const mark = 0

// sealNumber gives a number as it is kept.
func sealNumber(key []byte, value uint64) []byte {
	raw := binary.BigEndian.AppendUint64(make([]byte, 0, numberBytes+sumBytes), value)
	return binary.BigEndian.AppendUint32(raw, sumOfValue(key, raw))
}

// sealText gives a text as it is kept.
func sealText(key, value []byte) []byte {
	out := append(make([]byte, 0, len(value)+1+sumBytes), value...)
	return binary.BigEndian.AppendUint32(append(out, mark), sumOfValue(key, value))
}

func sumOfValue(key, value []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Update(0, table, key), table, value)
}

// unsealNumber takes the checksum off again and compares it. One that an older release kept has none.
func unsealNumber(key, kept []byte) (uint64, error) {
	switch len(kept) {
	case numberBytes:
	case numberBytes + sumBytes:
		if err := compareSum(key, kept[:numberBytes], kept[numberBytes:]); err != nil {
			return 0, err
		}
	default:
		return 0, fmt.Errorf("%w: %s has %d bytes", ErrCorrupt, key, len(kept))
	}
	return binary.BigEndian.Uint64(kept), nil
}

// unsealText is unsealNumber for texts.
func unsealText(key, kept []byte) ([]byte, error) {
	n := len(kept) - sumBytes - 1
	if n < 0 || kept[n] != mark {
		return kept, nil
	}
	return kept[:n:n], compareSum(key, kept[:n], kept[n+1:])
}

func compareSum(key, value, sum []byte) error {
	if have, want := sumOfValue(key, value), binary.BigEndian.Uint32(sum); have != want {
		return fmt.Errorf("%w: %s has checksum %08x, written with %08x", ErrCorrupt, key, have, want)
	}
	return nil
}

// guardedStable is a raft.StableStore with a checksum on every value, whose failures end the member: a term or a vote that
// was not kept, or is not what was kept, could be given twice.
type guardedStable struct {
	view
	inner raft.StableStore
}

func (g *guardedStable) Set(key, value []byte) error {
	if err := g.bounded("write "+string(key), func() error { return g.inner.Set(key, sealText(key, value)) }); err != nil {
		return err
	}
	return g.write("write the floor", g.guard.promiseText(key, value))
}

func (g *guardedStable) SetUint64(key []byte, value uint64) error {
	if err := g.bounded("write "+string(key), func() error { return g.inner.Set(key, sealNumber(key, value)) }); err != nil {
		return err
	}
	return g.write("write the floor", g.guard.promiseNumber(key, value))
}

func (g *guardedStable) Get(key []byte) ([]byte, error) { return unsealed(g, key, unsealText) }

func (g *guardedStable) GetUint64(key []byte) (uint64, error) { return unsealed(g, key, unsealNumber) }

// unsealed reads a value. That there is none is no failure.
func unsealed[T any](g *guardedStable, key []byte, unseal func(key, kept []byte) (T, error)) (value T, err error) {
	kept, err := g.inner.Get(key)
	if NotFound(err) {
		return value, err
	}
	if err == nil {
		value, err = unseal(key, kept)
	}
	return value, g.read("read "+string(key), err)
}
