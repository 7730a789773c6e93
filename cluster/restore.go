// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"
)

// restoreTimeout bounds how long a restore waits for the library to begin it.
const restoreTimeout = 30 * time.Second

// Restored is what a restore made, or would make, of a backup.
type Restored struct {
	Backup BackupHeader
	// State is the record that the group goes on with: the backup's, renewed. For comparing; nothing else uses it.
	State Machine
}

// Restore replaces the record of the whole group by a backup's, renewed by Options.Renew: the renewal is part of what
// is restored, so that there is no moment at which the group acts on an old record. With dryRun it only tells what
// would be. On the leader only.
//
// Errors: ErrNotABackup, ErrNotLeader; ErrUnknownOutcome when it was begun and lost sight of.
func (n *Node) Restore(ctx context.Context, r io.Reader, dryRun bool) (Restored, error) {
	if n.o.NewMachine == nil || n.o.Renew == nil {
		return Restored{}, errors.New("restore: this member was not given what renews a record")
	}
	machine := n.o.NewMachine()
	header, err := readBackup(r, machine.Restore)
	if err != nil {
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	out := Restored{Backup: header, State: machine}
	index := header.Index + 1
	if err := renewed(machine, n.o.Renew, n.o.Encode, index, header.Term); err != nil {
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	if dryRun {
		return out, nil
	}
	select {
	case n.restoring <- struct{}{}:
		defer func() { <-n.restoring }()
	case <-ctx.Done():
		return Restored{}, fmt.Errorf("restore: %w", ctx.Err())
	case <-n.failed:
		return Restored{}, fmt.Errorf("restore: %w", ErrStopped)
	}
	n.log.Warn("restoring a backup", "index", header.Index, "term", header.Term, "from", header.ServerID)
	if err := n.install(machine.Freeze(), index, header.Term); err != nil {
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	select {
	case n.renewed <- struct{}{}:
	default: // it is on its way
	}
	return out, nil
}

// install hands a state to the library, which sends it to everybody.
func (n *Node) install(state Frozen, index Index, term uint64) error {
	var size counter
	if err := state.Write(&size); err != nil {
		return err
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(state.Write(w)) }()
	defer func() { _ = r.Close() }() // lets the writer go if the library stopped reading
	meta := &raft.SnapshotMeta{Version: raft.SnapshotVersionMax, Index: uint64(index), Term: term, Size: int64(size)}
	done := make(chan error, 1)
	go func() { done <- n.raft.Restore(meta, r, restoreTimeout) }()
	var err error
	select {
	case err = <-done:
	case <-n.guard.Failed():
		err = ErrStopped // the library's goroutine is gone and answers nobody
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrEnqueueTimeout), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	default:
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
}

// renewed applies what begins a new life of a record to it, as one entry at index.
func renewed(m Machine, renew func(Machine) ([]Proposal, error), encode func([]Proposal) ([]byte, error), index Index, term uint64) (err error) {
	proposals, err := renew(m)
	if err != nil {
		return fmt.Errorf("renew: %w", err)
	}
	data, err := encode(proposals)
	if err != nil {
		return fmt.Errorf("renew: %w", err)
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("renew: %v", v)
		}
	}()
	for _, outcome := range m.ApplyEntries([]LogEntry{{Index: index, Term: term, Data: data}})[0] {
		if err := outcome.Err(); err != nil {
			return fmt.Errorf("renew: %w", err)
		}
	}
	return nil
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
