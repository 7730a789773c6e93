// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/store"
)

// cachedEntries is how many entries are kept in memory for followers that are a little behind. Each may hold many
// commands, tens of kilobytes of them; older ones are read from the log.
const cachedEntries = 32

// Node is one member of the controller group.
type Node struct {
	o       Options
	id      raft.ServerID
	log     *slog.Logger
	raft    *raft.Raft
	guard   *store.Guard
	stores  store.Stores // checked; for this package's own reads
	meter   *store.Meter // the library's log
	fsm     *adapter
	seen    *observer
	queue   *queue
	metrics *metrics
	calm    *calm
	found   store.Found // on disk at the start

	commits   commitMarks
	transfers transfers
	refused   chan struct{} // holds one when the library refused a proposal for a transfer

	notify   chan bool     // from the library: leadership won or lost
	renewed  chan struct{} // the record is another one, by a backup: for the leader's functions
	outlived chan struct{} // likewise: for the log
	lead     []LeaderFunc
	obstacle atomic.Pointer[string] // see Status
	led      atomic.Uint64          // the newest term that this member was seen to lead, 0 for none

	stopped  chan struct{} // the library has ended; it answers nobody any more, not even everybody who waits
	failOnce sync.Once
	failed   chan struct{}
	failure  error

	watch struct {
		sync.Mutex
		changed   chan struct{}
		effective uint64 // everything up to here is applied or needs no applying
		term      uint64 // of the leadership whose functions run, 0 for none
	}

	restoring chan struct{} // held while a backup is restored
	admitting chan struct{} // held during a change of membership: one at a time
	// compacting is held while a snapshot is taken, with what stays of the log behind it.
	compacting chan struct{}
}

// Open checks the data folder, restores the newest snapshot and starts the library. From then on this member votes
// and replicates; Run must follow, to make it lead, propose and end properly.
//
// Errors: a *store.Error names the path and the remedy when the folder cannot be believed.
func Open(o Options) (*Node, error) {
	o.Tuning = o.Tuning.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	n := &Node{
		o: o, id: raft.ServerID(ServerID(o.Name, o.Instance)), log: o.Log,
		guard:  store.NewGuard(o.Path, o.Stores),
		notify: make(chan bool, 64), // the library waits when it is full; the reader never does
		failed: make(chan struct{}), stopped: make(chan struct{}), restoring: make(chan struct{}, 1), admitting: make(chan struct{}, 1), compacting: make(chan struct{}, 1),
		renewed: make(chan struct{}, 1), outlived: make(chan struct{}, 1), refused: make(chan struct{}, 1), metrics: newMetrics(), calm: newCalm(),
	}
	n.watch.changed = make(chan struct{})
	n.transfers.failed = map[raft.ServerID]time.Time{}
	n.stores = n.guard.Checked()
	n.queue = newQueue(o.Tuning.UrgentQueue, o.Tuning.BulkQueue)
	n.fsm = &adapter{self: n.id, machine: o.Machine, newMachine: o.NewMachine, fail: n.fail, changed: n.touch, replacing: n.beginAnew, currentTerm: func() uint64 { return n.raft.CurrentTerm() }}
	n.seen = newObserver(o.Transport, n.id, n.touch)
	n.seen.reads = func() bool { _, ok := n.fsm.reads(); return ok }
	n.seen.rolledBack, n.seen.outdated = n.expel, func(why string) { n.fail(n.rolledBack(why)) }
	if err := n.check(); err != nil {
		return nil, err
	}
	if err := n.start(); err != nil {
		return nil, err
	}
	if o.Metrics != nil {
		n.metrics.register(o.Metrics, n)
	}
	return n, nil
}

// check reads the folder and restores the newest snapshot.
func (n *Node) check() error {
	found, err := n.guard.Check(func(r io.Reader) error {
		return n.fsm.load(r.(*store.Snapshot)) // a Guard opens nothing else
	})
	if err != nil {
		return err
	}
	n.found = found
	if err := n.undoHalfBootstrap(); err != nil {
		return err
	}
	return n.standOnFloor()
}

// start starts the library. It runs on a goroutine of its own because a Guard for the library does not return from a
// failure.
func (n *Node) start() error {
	stores := n.guard.ForRaft()
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		if n.meter, err = store.NewMeter(stores.Log); err != nil {
			return
		}
		var cache *raft.LogCache
		if cache, err = raft.NewLogCache(cachedEntries, n.meter); err != nil {
			return
		}
		var log *store.Matched
		var snapshots raft.SnapshotStore
		if log, snapshots, err = store.Match(cache, stores.Snapshots); err != nil {
			return
		}
		n.seen.snapshot, n.seen.entry = log.Snapshot, log.GetLog
		n.raft, err = raft.NewRaft(n.o.raftConfig(n.notify), n.fsm, log, stores.Stable, snapshots, n.seen)
	}()
	<-done
	if err := cmp.Or(n.guard.Err(), err); err != nil {
		return fmt.Errorf("start raft: %w", err)
	}
	n.seen.library.Store(n.raft)
	return nil
}

// Run takes part in the group until ctx ends or this member fails, then stops everything that Open and Run started.
// It returns nil when ctx ended, else what ended the member: a *store.Error (disk), a *PanicError, ErrRemoved,
// ErrRolledBack, ErrStalled. It never ends the process.
func (n *Node) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, part := range []func(context.Context){
		func(context.Context) { n.seen.forward() }, // ends when the library closes the transport
		n.runLeadership, n.runDispatch, n.runBelonging, n.runCompaction, n.runRecall,
	} {
		running.Add(1)
		go func() {
			defer running.Done()
			part(ctx)
		}()
	}
	select {
	case <-ctx.Done():
	case <-n.failed:
	case <-n.guard.Failed():
		n.fail(n.guard.Err())
	}
	cancel()
	n.queue.stop()
	n.seen.reach.release() // the library waits for what it has under way
	n.fsm.stop()
	if err := n.stopLibrary(); err != nil {
		n.fail(err)
	}
	close(n.stopped)
	n.fsm.stopped()
	n.fsm.giveUp()
	running.Wait()
	n.queue.abandon()
	n.touch()
	err := n.ended()
	if errors.Is(err, ErrRolledBack) {
		if err := n.o.Floor.Condemn(); err != nil {
			n.log.Error("floor not written", "server", n.id, "error", err)
		}
	}
	return errors.Join(err, n.o.Floor.Close())
}

// libraryWithin bounds how long the library may take to stop.
const libraryWithin = 3 * time.Second

// stopLibrary stops the library, or leaves it alone where it waits for a disk that hangs. Its heartbeats go on until the transport is closed, and
// keep others from leading, so that of a member that failed it is closed at once; of any other once it has not stopped in time, since what it has
// under way breaks off then.
func (n *Node) stopLibrary() error {
	stopped := make(chan error, 1)
	go func() { stopped <- n.raft.Shutdown().Error() }()
	for closed := errors.Is(n.guard.Err(), store.ErrHangs) || n.stalled(); ; closed = true {
		if closed {
			if err := n.seen.Close(); err != nil {
				return err
			}
		}
		select {
		case err := <-stopped:
			return err
		case <-time.After(libraryWithin):
		}
		if closed {
			n.log.Error("raft is left behind", "server", n.id, "why", "it has not stopped, most likely since a write of the disk does not come back", "within", libraryWithin)
			return nil
		}
	}
}

// stalled tells whether this member has ended since it committed nothing.
func (n *Node) stalled() bool {
	select {
	case <-n.failed:
		return errors.Is(n.failure, ErrStalled)
	default:
		return false
	}
}

// ended is what ended this member; the disk's word counts first, since what else failed followed from it.
func (n *Node) ended() error {
	err := n.guard.Err()
	if err == nil {
		select {
		case <-n.failed:
			err = n.failure
		default:
			return nil
		}
	}
	var p *PanicError
	if errors.As(err, &p) {
		n.log.Error("member panicked", "in", p.In, "error", fmt.Sprint(p.Value), "stack", string(p.Stack))
	}
	return fmt.Errorf("member %s: %w", n.id, err)
}

// fail ends this member. The first reason counts.
func (n *Node) fail(err error) {
	n.failOnce.Do(func() {
		n.failure = err
		close(n.failed)
	})
}

// touch wakes whoever waits for a change of position or leadership.
func (n *Node) touch() {
	n.watch.Lock()
	defer n.watch.Unlock()
	close(n.watch.changed)
	n.watch.changed = make(chan struct{})
}
