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

// sealed begins a value with a checksum behind it. No value of the library begins so: terms are less than 2^56, and candidates
// are text.
const sealed = 0xff

// sealValue gives a value with the checksum of it and its key.
func sealValue(key, value []byte) []byte {
	out := make([]byte, 0, 1+sumBytes+len(value))
	out = append(out, sealed)
	out = binary.BigEndian.AppendUint32(out, sumOfValue(key, value))
	return append(out, value...)
}

func sumOfValue(key, value []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Update(0, table, key), table, value)
}

// unsealValue takes the checksum off again and compares it. One that an older release kept has none.
func unsealValue(key, kept []byte) ([]byte, error) {
	if len(kept) == 0 || kept[0] != sealed {
		return kept, nil
	}
	if len(kept) < 1+sumBytes {
		return nil, fmt.Errorf("%w: %s is cut short", ErrCorrupt, key)
	}
	want, value := binary.BigEndian.Uint32(kept[1:]), kept[1+sumBytes:]
	if have := sumOfValue(key, value); have != want {
		return nil, fmt.Errorf("%w: %s has checksum %08x, written with %08x", ErrCorrupt, key, have, want)
	}
	return value, nil
}

// guardedStable is a raft.StableStore with a checksum on every value, whose failures end the member: a term or a vote that
// was not kept, or is not what was kept, could be given twice.
type guardedStable struct {
	view
	inner raft.StableStore
}

func (g *guardedStable) Set(key, value []byte) error {
	return g.write("write "+string(key), g.inner.Set(key, sealValue(key, value)))
}

func (g *guardedStable) SetUint64(key []byte, value uint64) error {
	return g.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

func (g *guardedStable) Get(key []byte) ([]byte, error) {
	kept, err := g.inner.Get(key)
	if NotFound(err) {
		return nil, err
	}
	var value []byte
	if err == nil {
		value, err = unsealValue(key, kept)
	}
	return value, g.read("read "+string(key), err)
}

func (g *guardedStable) GetUint64(key []byte) (uint64, error) {
	value, err := g.Get(key)
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, g.read("read "+string(key), fmt.Errorf("%w: %s has %d bytes, not 8", ErrCorrupt, key, len(value)))
	}
	return binary.BigEndian.Uint64(value), nil
}
