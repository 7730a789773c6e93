// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

// entryBytes is what an entry takes beside its data: its other fields by name, its key, and where it is.
const entryBytes = 128

// Meter is a raft.LogStore that knows what its entries take. The library bounds a log by how many they are.
type Meter struct {
	raft.LogStore

	mu      sync.Mutex
	entries []metered // by index, ascending; there may be gaps below a snapshot that another member sent
	bytes   uint64    // of all of them
	alarm   chan struct{}
	left    uint64 // bytes that may still be stored before alarm is closed
}

// metered is an entry of the log.
type metered struct{ index, bytes uint64 }

// Sizer is a raft.LogStore that knows what its entries take without reading them: nothing depends on those below a snapshot, and there may be many.
type Sizer interface {
	// EntryBytes is how long an entry's data is, or a little more. Errors: raft.ErrLogNotFound.
	EntryBytes(index uint64) (uint64, error)
}

// NewMeter asks a log for all its entries once.
func NewMeter(log raft.LogStore) (*Meter, error) {
	m := &Meter{LogStore: log}
	first, err := log.FirstIndex()
	if err != nil {
		return nil, err
	}
	last, err := log.LastIndex()
	if err != nil {
		return nil, err
	}
	for i := first; i > 0 && i <= last; i++ {
		if bytes, err := sizeOf(log, i); err == nil {
			m.addLocked(metered{i, bytes + entryBytes})
		} else if !errors.Is(err, raft.ErrLogNotFound) {
			return nil, err
		}
	}
	return m, nil
}

func sizeOf(log raft.LogStore, index uint64) (bytes uint64, err error) {
	if sizer, ok := log.(Sizer); ok {
		return sizer.EntryBytes(index)
	}
	var l raft.Log
	err = log.GetLog(index, &l)
	return dataBytes(&l), err
}

func dataBytes(l *raft.Log) uint64 { return uint64(len(l.Data) + len(l.Extensions)) }

// StoreLog implements raft.LogStore.
func (m *Meter) StoreLog(l *raft.Log) error { return m.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (m *Meter) StoreLogs(logs []*raft.Log) error {
	if err := m.LogStore.StoreLogs(logs); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range logs {
		m.addLocked(metered{l.Index, dataBytes(l) + entryBytes})
	}
	return nil
}

func (m *Meter) addLocked(added metered) {
	at, replaced := m.find(added.index)
	if replaced {
		m.bytes -= m.entries[at].bytes
		m.entries[at] = added
	} else {
		m.entries = slices.Insert(m.entries, at, added)
	}
	m.bytes += added.bytes
	if m.alarm != nil {
		if m.left -= min(m.left, added.bytes); m.left == 0 {
			close(m.alarm)
			m.alarm = nil
		}
	}
}

// DeleteRange implements raft.LogStore.
func (m *Meter) DeleteRange(first, last uint64) error {
	if err := m.LogStore.DeleteRange(first, last); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	from, _ := m.find(first)
	to, _ := m.find(last + 1)
	if from < to {
		m.bytes -= sum(m.entries[from:to])
		m.entries = slices.Delete(m.entries, from, to)
	}
	return nil
}

// find gives where an index is, or belongs.
func (m *Meter) find(index uint64) (at int, found bool) {
	return slices.BinarySearchFunc(m.entries, index, func(e metered, index uint64) int { return cmp.Compare(e.index, index) })
}

func sum(entries []metered) (bytes uint64) {
	for _, e := range entries {
		bytes += e.bytes
	}
	return bytes
}

// Bytes is what all entries take.
func (m *Meter) Bytes() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes
}

// Behind is how many indexes there are behind one, and what their entries take.
func (m *Meter) Behind(index uint64) (entries, bytes uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, _ := m.find(index + 1)
	if at == len(m.entries) {
		return 0, 0
	}
	return m.entries[len(m.entries)-1].index - index, sum(m.entries[at:])
}

// Newest is how many of the newest entries take no more than so many bytes, entries at most.
func (m *Meter) Newest(entries, bytes uint64) (n uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.entries) == 0 {
		return entries
	}
	last := m.entries[len(m.entries)-1].index
	for _, e := range slices.Backward(m.entries) {
		if last-e.index >= entries || e.bytes > bytes {
			break
		}
		bytes -= e.bytes
		n = last - e.index + 1
	}
	return n
}

// Stored gives a channel that is closed once so many bytes more are stored. The one that it gave before is forgotten.
func (m *Meter) Stored(bytes uint64) <-chan struct{} {
	alarm := make(chan struct{})
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.alarm, m.left = alarm, bytes; bytes == 0 {
		close(alarm)
		m.alarm = nil
	}
	return alarm
}
