// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"sync"

	"github.com/hashicorp/raft"
)

// A leader sends a snapshot to who lacks what its own log has no more. The library takes it in and keeps the log as it was, and its own idea
// of where that ends. Both may be wrong then:
//
//   - It answers for the entry at which the snapshot ends by its log alone. If that goes further, and has another entry there or none,
//     whatever follows is refused, the leader sends the snapshot again, and so on for ever.
//   - Entries of the log that were never committed stay below the snapshot. Who leads later sends them to others.
//
// So a log whose entry at that index is not the snapshot's last one is none that leads there, and is cut in full (Ongaro and Ousterhout, §7).

// Matched is a log that a newer snapshot never contradicts. It stands in front of all that the library does with its log.
type Matched struct {
	raft.LogStore

	mu sync.Mutex
	// index and term are those of the last entry of the newest snapshot. The log need not have it.
	index, term uint64
	// upTo is where the log ended that was cut, while the library takes it to go on up to there. It is told of entries of term 0, which no
	// leader ever sent: they are overwritten by the first that comes, as entries of another term are.
	upTo uint64
}

// notForApplying stands in entries that are none. Nobody can read it, so that a member ends where it would apply such a one.
var notForApplying = []byte{0x00, 0xff}

// Match puts a log behind the newest of the snapshots, now and whenever there is another one.
func Match(log raft.LogStore, snapshots raft.SnapshotStore) (*Matched, raft.SnapshotStore, error) {
	m := &Matched{LogStore: log}
	list, err := snapshots.List()
	if err == nil && len(list) > 0 {
		m.index, m.term = list[0].Index, list[0].Term
	}
	return m, &matchingSnapshots{SnapshotStore: snapshots, log: m}, err
}

// GetLog implements raft.LogStore.
func (m *Matched) GetLog(index uint64, l *raft.Log) error {
	err := m.LogStore.GetLog(index, l)
	if !errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case index == m.index && index > 0:
		*l = raft.Log{Index: index, Term: m.term, Type: raft.LogCommand, Data: notForApplying}
		return nil
	case index > m.index && index <= m.upTo:
		*l = raft.Log{Index: index, Type: raft.LogCommand, Data: notForApplying}
		return nil
	default:
		return err
	}
}

// Snapshot gives the last entry of the newest snapshot, 0 for none.
func (m *Matched) Snapshot() (index, term uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.index, m.term
}

// StoreLog implements raft.LogStore.
func (m *Matched) StoreLog(l *raft.Log) error { return m.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore. Whatever comes now, the library knows again where the log ends.
func (m *Matched) StoreLogs(logs []*raft.Log) error {
	err := m.LogStore.StoreLogs(logs)
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.upTo = 0
	}
	return err
}

// DeleteRange implements raft.LogStore, for a range of which there may be nothing.
func (m *Matched) DeleteRange(first, last uint64) error {
	from, err := m.FirstIndex()
	if err != nil {
		return err
	}
	to, err := m.LastIndex()
	if err != nil || to == 0 || first > to || last < from {
		return err
	}
	return m.LogStore.DeleteRange(first, last)
}

// snapshotted takes in that there is a snapshot up to an entry, by which the log may have to be cut.
func (m *Matched) snapshotted(index, term uint64) error {
	last, err := cutUnmatched(m.LogStore, index, term)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if index >= m.index {
		m.index, m.term = index, term
	}
	m.upTo = max(m.upTo, last)
	return nil
}

// cutUnmatched cuts a log in full that does not lead to the last entry of a snapshot, and gives where it ended; 0 if it was left alone.
func cutUnmatched(log raft.LogStore, index, term uint64) (last uint64, err error) {
	if last, err = log.LastIndex(); err != nil || last == 0 {
		return 0, err
	}
	first, err := log.FirstIndex()
	if err != nil || first == index+1 {
		return 0, err // it begins right behind it
	}
	var there raft.Log
	switch err := log.GetLog(index, &there); {
	case err == nil && there.Term == term:
		return 0, nil
	case err != nil && !errors.Is(err, raft.ErrLogNotFound):
		return 0, err
	}
	return last, log.DeleteRange(first, last)
}

// cutLate cuts what a member that died right after a snapshot came had no time to cut. A log that begins later than right behind the snapshot
// is left alone: it is of a newer snapshot, which is gone.
func cutLate(log raft.LogStore, index, term uint64) error {
	first, err := log.FirstIndex()
	if err != nil || first > index+1 {
		return err
	}
	_, err = cutUnmatched(log, index, term)
	return err
}

// matchingSnapshots tells the log of each snapshot.
type matchingSnapshots struct {
	raft.SnapshotStore
	log *Matched
}

// Create implements raft.SnapshotStore.
func (s *matchingSnapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration, configurationIndex uint64,
	trans raft.Transport,
) (raft.SnapshotSink, error) {
	sink, err := s.SnapshotStore.Create(version, index, term, configuration, configurationIndex, trans)
	if err != nil {
		return nil, err
	}
	return &matchingSink{sink, s.log, index, term}, nil
}

type matchingSink struct {
	raft.SnapshotSink
	log         *Matched
	index, term uint64
}

// Close implements raft.SnapshotSink.
func (s *matchingSink) Close() error {
	if err := s.SnapshotSink.Close(); err != nil {
		return err
	}
	return s.log.snapshotted(s.index, s.term)
}
