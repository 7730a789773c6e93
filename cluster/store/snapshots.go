// SPDX-License-Identifier: Apache-2.0

package store

import (
	"io"

	"github.com/hashicorp/raft"
)

// guardedSnapshots is a raft.SnapshotStore whose failures end the member. A snapshot that cannot be written would
// otherwise only be logged, while the log grows until the disk is full.
type guardedSnapshots struct {
	view
	inner raft.SnapshotStore
}

func (g *guardedSnapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, trans raft.Transport,
) (raft.SnapshotSink, error) {
	sink, err := g.inner.Create(version, index, term, configuration, configurationIndex, trans)
	if err != nil {
		return nil, g.write("create snapshot", err)
	}
	return &guardedSink{SnapshotSink: sink, view: g.view, last: Position{term, index}}, nil
}

func (g *guardedSnapshots) List() ([]*raft.SnapshotMeta, error) {
	list, err := g.inner.List()
	return list, g.read("list snapshots", err)
}

func (g *guardedSnapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	meta, r, err := g.inner.Open(id)
	if err != nil {
		return nil, nil, g.read("open snapshot "+id, err)
	}
	return meta, &Snapshot{ReadCloser: r, Meta: meta}, nil
}

// Snapshot is what a guarded store opens. It tells what it is the snapshot of, which the library does not pass on to
// its state machine.
type Snapshot struct {
	io.ReadCloser
	Meta *raft.SnapshotMeta
}

// Keep gives the snapshot to be read for longer than whoever opened it waits: closing s does nothing any more, closing what Keep gives does.
func (s *Snapshot) Keep() *Snapshot {
	kept := &Snapshot{ReadCloser: s.ReadCloser, Meta: s.Meta}
	s.ReadCloser = io.NopCloser(s.ReadCloser)
	return kept
}

// guardedSink ends the member when a snapshot cannot be written to its end. Cancel is no failure.
type guardedSink struct {
	raft.SnapshotSink
	view view
	last Position
}

func (s *guardedSink) Write(p []byte) (int, error) {
	n, err := s.SnapshotSink.Write(p)
	return n, s.view.write("write snapshot "+s.ID(), err)
}

func (s *guardedSink) Close() error {
	if err := s.view.write("finish snapshot "+s.ID(), s.SnapshotSink.Close()); err != nil {
		return err
	}
	return s.view.write("write the floor", s.view.guard.promiseSnapshot(s.last))
}
