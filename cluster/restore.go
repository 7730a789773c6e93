// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// partBytes is what one entry brings of a backup: little enough that others get in between.
	partBytes = 64 << 10
	// partsInFlight keeps the disks of followers busy while the leader writes.
	partsInFlight = 8
)

// Restored is what a restore made, or would make, of a backup.
type Restored struct {
	Backup BackupHeader
	Index  Index // of the entry by which the group took it in; of a dry run the one behind the backup's
	// State is the record that the group goes on with: the backup's, renewed. For comparing; nothing else uses it.
	State Machine
}

// Restore replaces the record of the whole group by a backup's, renewed by Options.Renew: the renewal is part of what
// is restored, so that there is no moment at which the group acts on an old record. With dryRun it only tells what
// would be. On the leader only.
//
// It goes through the log: every member takes the backup in at the same entry, or none does. Until that is committed the record is what
// it was, whoever leads, and whatever becomes of this member. What others commit meanwhile is replaced with the rest.
//
// Errors: ErrNotABackup, ErrNotLeader and ctx's: nothing was restored; ErrUnknownOutcome when it was begun and lost sight of.
func (n *Node) Restore(ctx context.Context, r io.Reader, dryRun bool) (Restored, error) {
	if n.o.Renew == nil {
		return Restored{}, errors.New("restore: this member was not given what renews a record")
	}
	machine := n.o.NewMachine()
	header, err := readBackup(r, machine.Restore)
	if err != nil {
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	state := machine.Freeze()
	renewal, err := renewalOf(machine, n.o.Renew, n.o.Encode)
	if err != nil {
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	out := Restored{Backup: header, Index: header.Index + 1, State: machine}
	if err := renewed(machine, LogEntry{Index: out.Index, Term: header.Term, Data: renewal}); err != nil {
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
	if out.Index, err = n.install(ctx, state, renewal); err != nil {
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	return out, nil
}

// install brings a state to every member, and has them take it in. It gives the index of the entry that they did so at.
func (n *Node) install(ctx context.Context, state Frozen, renewal []byte) (Index, error) {
	id := []byte(rand.Text())
	sum, err := n.bring(ctx, id, state)
	if err != nil {
		go n.abort(id)
		return 0, n.notRestored(err)
	}
	body, err := json.Marshal(finish{Sum: sum, Renewal: renewal})
	if err != nil {
		go n.abort(id)
		return 0, err
	}
	f := n.applying(stepFinish.entry(body))
	answer, err := f.wait(ctx, n)
	if err != nil {
		go n.abort(id) // of no account behind the entry, if that is committed
		return 0, proposalError(err)
	}
	switch answer := answer.(type) {
	case []Outcome:
		return Index(f.future.Index()), refusedAny(answer)
	case error:
		if errors.Is(answer, errNotStaged) {
			return 0, n.notRestored(answer)
		}
		return 0, fmt.Errorf("%w: %w", ErrUnknownOutcome, answer)
	default:
		return 0, fmt.Errorf("%w: applying answered %T", ErrUnknownOutcome, answer)
	}
}

// abort has every member let go of what was brought in a restore, for which they take no snapshots else. Where this member leads no more, the
// first entry of the next leader has them do so.
func (n *Node) abort(id []byte) {
	for {
		_, err := n.applying(stepAbort.entry(id)).wait(context.Background(), n)
		if !errors.Is(err, raft.ErrLeadershipTransferInProgress) {
			return
		}
		select {
		case <-time.After(retryAfter):
		case <-n.failed:
			return
		case <-n.stopped:
			return
		}
	}
}

// notRestored gives what became of a restore that was not brought to its end one identity.
func (n *Node) notRestored(err error) error {
	switch {
	case errors.Is(err, raft.ErrRaftShutdown), errors.Is(err, ErrStopped):
		return ErrStopped
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipLost), errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, errNotStaged):
		return fmt.Errorf("%w; nothing was restored: %w", ErrNotLeader, err)
	default:
		return fmt.Errorf("nothing was restored: %w", err)
	}
}

// bring puts a state into the log in parts, and waits until this member has read them.
func (n *Node) bring(ctx context.Context, id []byte, state Frozen) (sum []byte, err error) {
	term := n.raft.CurrentTerm()
	parts := &parts{ctx: ctx, node: n}
	if err := parts.put(stepBegin.entry(id)); err != nil {
		return nil, err
	}
	chunks := bufio.NewWriterSize(parts, partBytes)
	zipped, all := gzip.NewWriter(chunks), sha256.New()
	if err := state.Write(io.MultiWriter(zipped, all)); err != nil {
		return nil, err
	}
	if err := errors.Join(zipped.Close(), chunks.Flush(), parts.put(stepPart.entry(nil)), parts.wait(0)); err != nil {
		return nil, err
	}
	mine := n.fsm.brought(term)
	if mine == nil {
		return nil, errNotStaged
	}
	select {
	case <-mine.done:
		return all.Sum(nil), mine.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-n.failed:
		return nil, ErrStopped
	case <-n.stopped:
		return nil, ErrStopped
	}
}

// parts puts what is written to it into the log, a part for each Write, some at a time.
type parts struct {
	ctx      context.Context
	node     *Node
	inFlight []*applying
}

func (p *parts) Write(part []byte) (int, error) {
	if err := p.put(stepPart.entry(part)); err != nil {
		return 0, err
	}
	return len(part), nil
}

func (p *parts) put(entry []byte) error {
	p.inFlight = append(p.inFlight, p.node.applying(entry))
	return p.wait(partsInFlight)
}

// wait waits until no more than so many are in flight.
func (p *parts) wait(atMost int) error {
	for len(p.inFlight) > atMost {
		answer, err := p.inFlight[0].wait(p.ctx, p.node)
		if err != nil {
			return err
		}
		if err, _ := answer.(error); err != nil {
			return err
		}
		p.inFlight = p.inFlight[1:]
	}
	return nil
}

// applying is an entry on its way.
type applying struct {
	future raft.ApplyFuture
	done   chan error
}

// applying hands an entry to the library, in the order of calls.
func (n *Node) applying(entry []byte) *applying {
	a := &applying{future: n.raft.Apply(entry, 0), done: make(chan error, 1)}
	go func() { a.done <- a.future.Error() }()
	return a
}

// wait gives what this member answered when it applied the entry.
func (a *applying) wait(ctx context.Context, n *Node) (any, error) {
	select {
	case err := <-a.done:
		if err != nil {
			return nil, err
		}
		return a.future.Response(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-n.failed:
		return nil, ErrStopped
	case <-n.guard.Failed(): // the library's goroutine is gone and answers nobody
		return nil, ErrStopped
	case <-n.stopped:
		return nil, ErrStopped
	}
}

// renewalOf makes the entry that begins a new life of a record.
func renewalOf(m Machine, renew func(Machine) ([]Proposal, error), encode func([]Proposal) ([]byte, error)) ([]byte, error) {
	proposals, err := renew(m)
	if err != nil {
		return nil, fmt.Errorf("renew: %w", err)
	}
	data, err := encode(proposals)
	if err != nil {
		return nil, fmt.Errorf("renew: %w", err)
	}
	return data, nil
}

// renewed applies such an entry.
func renewed(m Machine, renewal LogEntry) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("renew: %v", v)
		}
	}()
	if err := refusedAny(m.ApplyEntries([]LogEntry{renewal})[0]); err != nil {
		return fmt.Errorf("renew: %w", err)
	}
	return nil
}

func refusedAny(outcomes []Outcome) error {
	for _, outcome := range outcomes {
		if err := outcome.Err(); err != nil {
			return err
		}
	}
	return nil
}
