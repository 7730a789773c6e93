// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// LeaderFunc runs while this member leads. Its context ends when leadership is lost; it must then return soon, since
// the functions of the next term wait for it. A panic in it ends this member.
type LeaderFunc func(ctx context.Context, term uint64)

// WhileLeader has f run in every term that this member leads, after it applied everything that earlier leaders
// committed and committed its opening. All functions of one term have returned before those of the next begin. Call
// it before Run.
func (n *Node) WhileLeader(f LeaderFunc) { n.lead = append(n.lead, f) }

// runLeadership follows the library's word on who leads.
func (n *Node) runLeadership(ctx context.Context) {
	end, leading := func() {}, false
	for {
		select {
		case <-ctx.Done():
			end()
			return
		case leads := <-n.notify:
			end()
			end = func() {}
			if leads {
				end = n.beginTerm(ctx)
			}
			leading = leads
			n.touch()
		case <-n.renewed:
			// What the functions of the leader found in the record is not the record any more: they begin anew.
			if end(); leading {
				end = n.beginTerm(ctx)
			}
		}
	}
}

// beginAnew has this member propose nothing of what it knew until the functions of the leader have begun anew: a backup takes the place of
// the record. Whoever leads does that, also if another one asked for the restore, or nobody waits for it any more.
func (n *Node) beginAnew() {
	n.shut()
	for _, c := range []chan struct{}{n.renewed, n.outlived} {
		select {
		case c <- struct{}{}:
		default: // it is on its way
		}
	}
}

// beginTerm starts a term and gives what ends it: proposals are refused at once, then everything is joined.
func (n *Node) beginTerm(ctx context.Context) (end func()) {
	term := n.raft.CurrentTerm()
	n.log.Info("leadership won", "server", n.id, "term", term)
	n.metrics.won()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	n.queue.accept()
	go func() {
		defer close(done)
		var running sync.WaitGroup
		running.Go(func() { n.watchTerm(ctx, term) })
		n.runTerm(ctx, term)
		running.Wait()
	}()
	return func() {
		cancel()
		n.shut()
		<-done
		n.log.Info("leadership lost", "server", n.id, "term", term)
	}
}

func (n *Node) runTerm(ctx context.Context, term uint64) {
	for {
		err := n.openTerm(ctx)
		if err == nil {
			break
		}
		n.log.Debug("term not opened", "term", term, "error", err)
		select { // leadership is gone and the library says so in a moment, or a transfer failed and it stays
		case <-ctx.Done():
			return
		case <-time.After(n.o.Tuning.Election):
		}
	}
	if !n.open(ctx, term) {
		return
	}
	n.touch()
	var running sync.WaitGroup
	for _, f := range append([]LeaderFunc{n.runAutopilot}, n.lead...) {
		running.Add(1)
		go func() {
			defer running.Done()
			defer n.catch("leader function")
			f(ctx, term)
		}()
	}
	running.Wait()
}

// openTerm waits until everything that earlier leaders committed is applied here, then commits the opening.
func (n *Node) openTerm(ctx context.Context) error {
	if err := n.awaitBarrier(ctx); err != nil {
		return fmt.Errorf("barrier: %w", err)
	}
	if n.o.Opening == nil {
		return nil
	}
	proposals := n.o.Opening()
	if len(proposals) == 0 {
		return nil
	}
	data, err := n.o.Encode(proposals)
	if err != nil {
		n.fail(fmt.Errorf("encode the opening of a term: %w", err))
		return err
	}
	if err := n.await(ctx, asked(func() raft.Future { return n.raft.Apply(data, 0) })); err != nil {
		return fmt.Errorf("opening: %w", err)
	}
	return nil
}

// catch ends this member when a function of the leader panics.
func (n *Node) catch(in string) {
	if v := recover(); v != nil {
		n.fail(&PanicError{In: in, Value: v, Stack: debug.Stack()})
	}
}

// await waits for the library, for ctx or for the end of this member.
func (n *Node) await(ctx context.Context, f raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- f.Error() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-n.failed:
		return ErrStopped
	case <-n.guard.Failed():
		return ErrStopped
	case <-n.stopped:
		return ErrStopped
	}
}

// asked is a question to the library that is asked where its answer is waited for: while its main goroutine stands, asking waits, too, and
// heeds no context.
type asked func() raft.Future

func (a asked) Error() error { return a().Error() }

// awaitBarrier waits until everything committed before the call is applied here. To the library a snapshot is applied that is still being read.
func (n *Node) awaitBarrier(ctx context.Context) error {
	if err := n.await(ctx, asked(func() raft.Future { return n.raft.Barrier(0) })); err != nil {
		return err
	}
	return n.fsm.loaded(ctx)
}

// VerifyLeader returns once a majority of the voters followed this leader at a moment after the call began.
//
// The library's own confirmation is not asked for: it counts non-voters too, and what was sent before the call and is answered after it. While
// its main goroutine stands, those who ask fill a channel that its senders of heartbeats write to as well (v1.7.3, verifyFuture.vote), which
// stops them, and the leader is taken for dead.
//
// Errors: ErrNotLeader, ctx's.
func (n *Node) VerifyLeader(ctx context.Context) error { return n.verify(ctx, "verify leader", "", 0) }

// busyFor is how long those that follow may take to answer on a machine with much to do.
const busyFor = 2 * time.Second

// VerifyWithout returns once a majority of the voters other than a server followed this leader at a moment after the call began, and holds what was
// committed by then: to be asked before that server goes, or loses its vote, while it may be what keeps this leader. What was answered lately is
// no answer to that: who died since would be needed for a majority afterwards, and the server, which knows of nothing, could not stand in. Nor
// could who answers heartbeats and takes no entry: nothing would ever be committed again.
//
// Errors: ErrNotLeader, ErrNotReady if they do not answer, ctx's.
func (n *Node) VerifyWithout(ctx context.Context, id string) error {
	within, cancel := context.WithTimeout(ctx, max(n.lately(), busyFor))
	defer cancel()
	err := n.verify(within, "verify leader without "+id, raft.ServerID(id), n.raft.CommitIndex())
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: without %s the voters that answer and hold what is committed are no majority", ErrNotReady, id)
	}
	return err
}

// verify waits for a majority of the voters, one of whom may be left out, and whose logs are to reach up to an index.
func (n *Node) verify(ctx context.Context, what string, without raft.ServerID, holding uint64) error {
	began, term := time.Now(), n.raft.CurrentTerm()
	n.seen.beatNow(n.raft.GetConfiguration().Configuration(), term)
	for {
		answer := n.seen.answer()
		c := n.raft.GetConfiguration().Configuration()
		c.Servers = slices.DeleteFunc(slices.Clone(c.Servers), func(s raft.Server) bool { return s.ID == without })
		switch {
		case n.raft.State() != raft.Leader || n.raft.CurrentTerm() != term:
			return n.leaderError(what, raft.ErrLeadershipLost)
		case !n.seen.quorumAt(c, n.id, term, holding, time.Now()).Before(began):
			return nil
		}
		select {
		case <-answer:
		case <-time.After(n.o.Tuning.Lease): // nobody answers, so that it does not lead on
		case <-ctx.Done():
			return ctx.Err()
		case <-n.failed:
			return fmt.Errorf("%s: %w", what, ErrStopped)
		case <-n.guard.Failed():
			return fmt.Errorf("%s: %w", what, ErrStopped)
		}
	}
}

// Barrier returns once everything committed before the call is applied here. Only the leader can.
//
// Errors: ErrNotLeader, ctx's.
func (n *Node) Barrier(ctx context.Context) error {
	defer n.touch() // the machine does not see a barrier
	return n.leaderError("barrier", n.awaitBarrier(ctx))
}

// leaderError gives the library's errors of lost leadership one identity.
func (n *Node) leaderError(what string, err error) error {
	n.refuses(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipLost),
		errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return fmt.Errorf("%s: %w: %w", what, ErrNotLeader, err)
	case errors.Is(err, raft.ErrRaftShutdown):
		return fmt.Errorf("%s: %w", what, ErrStopped)
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}

// open lets proposals out, unless the term ended meanwhile.
func (n *Node) open(ctx context.Context, term uint64) bool {
	n.watch.Lock()
	defer n.watch.Unlock()
	if ctx.Err() != nil {
		return false
	}
	n.watch.term = term
	n.queue.begin()
	return true
}

// shut refuses proposals; the context of the term has ended.
func (n *Node) shut() {
	n.watch.Lock()
	defer n.watch.Unlock()
	n.watch.term = 0
	n.queue.lose()
}

// LeadingTerm is the term in which this member leads and has opened for proposals, 0 when it does not.
func (n *Node) LeadingTerm() uint64 {
	n.watch.Lock()
	defer n.watch.Unlock()
	return n.watch.term
}
