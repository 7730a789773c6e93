// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/store"
)

// A snapshot that a leader sent is read beside the library. Its main goroutine waits for Restore (v1.7.3, installSnapshot), and a large record takes
// seconds to read: as long this member would neither vote nor take an entry. So Restore only begins. The library takes the snapshot for restored
// from then on, and rightly answers that this member has it: it is on disk. What is left to see to here, until it is read:
//
//   - Entries behind it wait (ApplyBatch), and are applied in their order.
//   - Position, configuration and record are those of before.
//   - No snapshot is taken and no backup, and no barrier is passed.
//   - This member lets others lead: it could not open a term.
const (
	// waitingBytes is how much of such entries is kept in memory. What comes then has the library wait.
	waitingBytes = 64 << 20
	// catchUpEntries is how many of them are applied at once, before others are let see how far that is.
	catchUpEntries = 64
)

// errLoading says why this member does not do something now.
var errLoading = errors.New("this member is reading a snapshot that it was sent; try again in some seconds")

// loading is a snapshot that is being read, and what is to be applied behind it.
type loading struct {
	snapshot *store.Snapshot
	term     uint64        // of who sent it
	done     chan struct{} // closed once all of it is applied, or none will be
	read     atomic.Uint64 // bytes
	once     sync.Once
	ended    chan struct{} // closed to break off

	waiting []*raft.Log
	bytes   int // of those
}

func newLoading(s *store.Snapshot, term uint64) *loading {
	return &loading{snapshot: s, term: term, done: make(chan struct{}), ended: make(chan struct{})}
}

// Read implements io.Reader.
func (l *loading) Read(p []byte) (int, error) {
	select {
	case <-l.ended:
		return 0, ErrStopped
	default:
	}
	n, err := l.snapshot.Read(p)
	l.read.Add(uint64(n))
	return n, err
}

// end breaks off. Who waits for done does not wait long.
func (l *loading) end() { l.once.Do(func() { close(l.ended) }) }

// put keeps entries for later, unless they are too many, or somebody may wait for an answer: this member has led no term up to the one of who sent
// the snapshot any more, so that nobody asks it for what was proposed until then.
func (l *loading) put(logs []*raft.Log) bool {
	if l.bytes >= waitingBytes || logs[len(logs)-1].Term > l.term {
		return false
	}
	l.waiting = append(l.waiting, logs...)
	for _, one := range logs {
		l.bytes += len(one.Data)
	}
	return true
}

// take takes some entries out again.
func (l *loading) take() []*raft.Log {
	logs := l.waiting[:min(len(l.waiting), catchUpEntries)]
	l.waiting = l.waiting[len(logs):]
	for _, one := range logs {
		l.bytes -= len(one.Data)
	}
	return logs
}

// Restore begins to replace the state by a snapshot's, for the library. When that cannot be done this member ends; the library is told nothing
// of it, because on a leader it would panic and take the process along. A broken adapter applies nothing more.
func (a *adapter) Restore(r io.ReadCloser) error {
	snapshot, err := snapshotOf(r)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken == nil && a.ending {
		a.broken = ErrStopped
	}
	if a.broken != nil {
		return nil
	}
	former := a.loading
	if former != nil {
		former.end() // this one has all that it has
	}
	a.loading = newLoading(snapshot.Keep(), a.currentTerm())
	go a.read(a.loading, former)
	return nil
}

// snapshotOf finds what the guarded store opened in what the library made of it.
func snapshotOf(r io.ReadCloser) (*store.Snapshot, error) {
	if w, ok := r.(raft.ReadCloserWrapper); ok {
		r = w.WrappedReadCloser()
	}
	snapshot, ok := r.(*store.Snapshot)
	if !ok {
		return nil, fmt.Errorf("restore snapshot: it comes from %T, not from a guarded store", r)
	}
	return snapshot, nil
}

// load replaces the state by a snapshot's, before the library runs.
func (a *adapter) load(s *store.Snapshot) error {
	if err := a.decode(s.Meta, s); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.positionLocked(s.Meta)
	a.changed()
	return nil
}

// decode replaces the machine's state. Nothing is applied to it meanwhile.
func (a *adapter) decode(meta *raft.SnapshotMeta, r io.Reader) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{In: "restore snapshot " + meta.ID, Value: v, Stack: debug.Stack()}
		}
	}()
	a.giveUp() // no snapshot is taken while a backup is brought: what this one has came later
	if err := a.machine.Restore(r); err != nil {
		return fmt.Errorf("restore snapshot %s: %w", meta.ID, err)
	}
	return nil
}

// read reads a snapshot, once a former one is done with, and applies what waits behind it.
func (a *adapter) read(l, former *loading) {
	defer close(l.done)
	defer func() { _ = l.snapshot.Close() }() // nothing was written to it
	if former != nil {
		<-former.done
	}
	err := a.decode(l.snapshot.Meta, l)
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.changed()
	if a.loading != l {
		return // there is a newer one
	}
	defer func() {
		if a.loading == l {
			a.loading = nil
		}
	}()
	if err != nil {
		a.brokeLocked(err, l)
		return
	}
	a.positionLocked(l.snapshot.Meta)
	for a.loading == l && a.broken == nil && len(l.waiting) > 0 {
		if a.batchLocked(l.take()); len(l.waiting) > 0 {
			a.mu.Unlock() // who asks how far this is shall not wait for all of it
			a.mu.Lock()
		}
	}
}

// brokeLocked ends this member, unless it ends by itself.
func (a *adapter) brokeLocked(err error, l *loading) {
	select {
	case <-l.ended:
		a.broken = ErrStopped
	default:
		a.broken = err
		a.fail(err)
	}
}

// laterLocked keeps entries until the snapshot before them is read. Those that it cannot keep wait for that.
func (a *adapter) laterLocked(logs []*raft.Log) bool {
	for l := a.loading; l != nil; l = a.loading {
		if l.put(logs) {
			return true
		}
		a.mu.Unlock()
		<-l.done
		a.mu.Lock()
	}
	return false
}

// reads tells whether a snapshot is being read, and how many bytes of it were.
func (a *adapter) reads() (bytes uint64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.loading == nil {
		return 0, false
	}
	return a.loading.read.Load(), true
}

// loaded waits until no snapshot is being read, and all that came behind it is applied.
func (a *adapter) loaded(ctx context.Context) error {
	for {
		a.mu.Lock()
		l, broken := a.loading, a.broken
		a.mu.Unlock()
		if l == nil {
			return broken
		}
		select {
		case <-l.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// stop breaks off what the library would wait for when it stops.
func (a *adapter) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ending = true
	if a.loading != nil {
		a.loading.end()
	}
}

// stopped waits until nothing is read any more, or for a disk that hangs no longer than for the library.
func (a *adapter) stopped() {
	ctx, cancel := context.WithTimeout(context.Background(), libraryWithin)
	defer cancel()
	_ = a.loaded(ctx) // what it says is known
}
