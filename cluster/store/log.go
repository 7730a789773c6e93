// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

// sumBytes is the length of the checksum that ends the Extensions of every stored entry.
const sumBytes = 4

// checksum covers everything of an entry that has a meaning. Castagnoli is the polynomial that processors know, and
// MakeTable keeps its table.
func checksum(l *raft.Log) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	var head [25]byte
	binary.BigEndian.PutUint64(head[0:], l.Index)
	binary.BigEndian.PutUint64(head[8:], l.Term)
	head[16] = byte(l.Type)
	binary.BigEndian.PutUint64(head[17:], uint64(len(l.Data)))
	sum := crc32.Update(0, table, head[:])
	sum = crc32.Update(sum, table, l.Data)
	return crc32.Update(sum, table, l.Extensions)
}

// seal gives a copy of l whose Extensions end with its checksum. The original is left alone: raft replicates it.
func seal(l *raft.Log) *raft.Log {
	sealed := *l
	sealed.Extensions = make([]byte, 0, len(l.Extensions)+sumBytes)
	sealed.Extensions = append(sealed.Extensions, l.Extensions...)
	sealed.Extensions = binary.BigEndian.AppendUint32(sealed.Extensions, checksum(l))
	return &sealed
}

// unseal takes the checksum off again and compares it.
func unseal(index uint64, l *raft.Log) error {
	if l.Index != index {
		return fmt.Errorf("%w: entry %d stands where %d belongs", ErrCorrupt, l.Index, index)
	}
	n := len(l.Extensions) - sumBytes
	if n < 0 {
		return fmt.Errorf("%w: entry %d has no checksum", ErrCorrupt, index)
	}
	want := binary.BigEndian.Uint32(l.Extensions[n:])
	l.Extensions = l.Extensions[:n:n]
	if n == 0 {
		l.Extensions = nil
	}
	if have := checksum(l); have != want {
		return fmt.Errorf("%w: entry %d has checksum %08x, written with %08x", ErrCorrupt, index, have, want)
	}
	return nil
}

// guardedLog is a raft.LogStore with a checksum on every entry.
type guardedLog struct {
	view
	inner raft.LogStore
}

func (g *guardedLog) FirstIndex() (uint64, error) {
	i, err := g.inner.FirstIndex()
	return i, g.read("read first index of the log", err)
}

func (g *guardedLog) LastIndex() (uint64, error) {
	i, err := g.inner.LastIndex()
	return i, g.read("read last index of the log", err)
}

// GetLog returns raft.ErrLogNotFound as it is: that an entry was compacted away is no fault.
func (g *guardedLog) GetLog(index uint64, l *raft.Log) error {
	var found raft.Log
	err := g.inner.GetLog(index, &found)
	if errors.Is(err, raft.ErrLogNotFound) {
		return raft.ErrLogNotFound
	}
	if err == nil {
		err = unseal(index, &found)
	}
	if err != nil {
		return g.read(fmt.Sprintf("read log entry %d", index), err)
	}
	*l = found
	return nil
}

func (g *guardedLog) StoreLog(l *raft.Log) error { return g.StoreLogs([]*raft.Log{l}) }

func (g *guardedLog) StoreLogs(logs []*raft.Log) error {
	sealed := make([]*raft.Log, len(logs))
	for i, l := range logs {
		sealed[i] = seal(l)
	}
	if err := g.bounded("append to the log", func() error { return g.inner.StoreLogs(sealed) }); err != nil {
		return err
	}
	return g.write("write the floor", g.guard.promiseEntries(logs))
}

func (g *guardedLog) DeleteRange(first, last uint64) error {
	if last == 0 {
		return nil // an empty log, when a folder is recovered twice; the library's in-memory store cannot take it
	}
	if err := g.guard.withdrawEntries(first, last); err != nil {
		return g.write("write the floor", err)
	}
	return g.bounded("cut the log", func() error { return g.inner.DeleteRange(first, last) })
}

// EntryBytes implements Sizer. An entry that is not what was stored is told when it is read.
func (g *guardedLog) EntryBytes(index uint64) (uint64, error) {
	bytes, err := sizeOf(g.inner, index)
	if errors.Is(err, raft.ErrLogNotFound) {
		return 0, raft.ErrLogNotFound
	}
	return bytes, g.read(fmt.Sprintf("read the length of log entry %d", index), err)
}
