// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Propose asks the group to commit proposals, in order and together: all of them or none reach the log, in one entry, but for those that no
// entry can hold (Options.Fit), which are set aside: their outcome is a refusal, RejectUnfit, and the others do without them as without any
// that a guard refuses. It returns one outcome for each, once this group applied them. On another member than the leader it goes through
// Options.Forward, and is not waited for much longer than that one leads.
//
// Errors: fsm.ErrTooLarge, ErrNotLeader, ErrBusy and ErrStopped mean that nothing was proposed; ErrUnknownOutcome that it may have
// been. When ctx ends while the proposals still wait they are taken back and the error is ctx's, else it is both
// ErrUnknownOutcome and ctx's. A refusal by a guard is no error: see Outcome.
func (n *Node) Propose(ctx context.Context, u Urgency, proposals ...Proposal) ([]Outcome, error) {
	return n.fitting(u, proposals, func(proposals []Proposal, bytes int) ([]Outcome, error) {
		outcomes, err := n.propose(ctx, u, proposals, bytes)
		if !errors.Is(err, ErrNotLeader) || n.o.Forward == nil {
			return outcomes, err
		}
		leader, term, ok := n.leaderAndTerm()
		if !ok || leader.ID == string(n.id) {
			return nil, err
		}
		return n.forward(ctx, leader, term, u, proposals)
	})
}

// forward hands proposals to the leader of a term, and waits until somebody leads a later one, and as long again as a lease.
// A former leader that lives has stepped down by then, and said so. One that lost its power never answers, and a caller that
// waited for that would keep from the new leader what it has to say.
func (n *Node) forward(ctx context.Context, leader Peer, term uint64, u Urgency, proposals []Proposal) ([]Outcome, error) {
	within, giveUp := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer giveUp(nil)
	watching.Go(func() {
		if !n.awaitLaterLeader(within, term) {
			return
		}
		select {
		case <-within.Done():
		case <-time.After(n.o.Tuning.Lease):
			giveUp(errDeposed)
		}
	})
	outcomes, err := n.o.Forward(within, leader, u, proposals)
	if err != nil && errors.Is(context.Cause(within), errDeposed) && !errors.Is(err, ErrNotLeader) {
		return nil, fmt.Errorf("propose: %s did not answer, and %w: %w", leader.Name, errDeposed, ErrUnknownOutcome)
	}
	return outcomes, err
}

// errDeposed says why an answer is not waited for any more.
var errDeposed = errors.New("somebody else leads")

// ProposeLocal is Propose without forwarding, as the leader's end of a Forwarder needs it.
func (n *Node) ProposeLocal(ctx context.Context, u Urgency, proposals ...Proposal) ([]Outcome, error) {
	return n.fitting(u, proposals, func(proposals []Proposal, bytes int) ([]Outcome, error) {
		return n.propose(ctx, u, proposals, bytes)
	})
}

// propose waits for what becomes of proposals that have so many bytes together.
func (n *Node) propose(ctx context.Context, u Urgency, proposals []Proposal, bytes int) ([]Outcome, error) {
	begin := time.Now()
	r, err := n.queue.put(u, proposals, bytes)
	if err != nil {
		n.metrics.proposed(u, len(proposals), err, time.Since(begin))
		return nil, fmt.Errorf("propose: %w", err)
	}
	select {
	case a := <-r.answer:
		return n.answered(u, r, a, begin)
	case <-ctx.Done():
	}
	if n.queue.withdraw(u, r) {
		return nil, fmt.Errorf("propose: given up before its turn: %w", ctx.Err())
	}
	select {
	case a := <-r.answer: // it came at the last moment
		return n.answered(u, r, a, begin)
	default:
		err := fmt.Errorf("propose: %w: %w", ErrUnknownOutcome, ctx.Err())
		n.metrics.proposed(u, len(proposals), err, time.Since(begin))
		return nil, err
	}
}

func (n *Node) answered(u Urgency, r *request, a answer, begin time.Time) ([]Outcome, error) {
	n.metrics.proposed(u, len(r.proposals), a.err, time.Since(begin))
	if a.err != nil {
		return nil, fmt.Errorf("propose: %w", a.err)
	}
	return a.outcomes, nil
}

// runDispatch hands batches to the library as long as there are some and room in flight.
func (n *Node) runDispatch(ctx context.Context) {
	for {
		b := n.queue.take()
		if b == nil {
			select {
			case <-ctx.Done():
				return
			case <-n.queue.wake:
			}
			continue
		}
		n.dispatch(b)
	}
}

// dispatch makes one entry of a batch and answers it once the entry is applied or lost.
func (n *Node) dispatch(b *batch) {
	proposals := b.requests[0].proposals
	if len(b.requests) > 1 {
		proposals = make([]Proposal, 0, b.commands)
		for _, r := range b.requests {
			proposals = append(proposals, r.proposals...)
		}
	}
	data, err := n.encode(proposals)
	if err != nil {
		n.dispatchApart(b, err)
		return
	}
	if !n.queue.current(b) { // what was planned for the former record may have been encoded for the one of now
		n.queue.finish(b, func(int, *request) answer { return answer{err: ErrNotLeader} })
		return
	}
	n.metrics.batched(b.urgency, b.commands)
	future := n.raft.Apply(data, 0)
	go func() {
		outcomes, err := outcomesOf(future, b.commands)
		n.refuses(err)
		n.queue.finish(b, func(_ int, r *request) answer {
			if err != nil {
				return answer{err: err}
			}
			mine := outcomes[:len(r.proposals):len(r.proposals)]
			outcomes = outcomes[len(r.proposals):]
			return answer{outcomes: mine}
		})
	}()
}

// dispatchApart finds out whose proposals cannot be encoded, so that they do not take the others with them. The
// others surely were not proposed: they are told to come again.
func (n *Node) dispatchApart(b *batch, err error) {
	n.queue.finish(b, func(_ int, r *request) answer {
		if len(b.requests) > 1 {
			if _, err = n.encode(r.proposals); err == nil {
				return answer{err: fmt.Errorf("batched with a proposal that cannot be encoded: %w", ErrBusy)}
			}
		}
		return answer{err: fmt.Errorf("encode: %w", err)}
	})
}

// outcomesOf waits for an entry.
func outcomesOf(future raft.ApplyFuture, commands int) ([]Outcome, error) {
	if err := future.Error(); err != nil {
		return nil, proposalError(err)
	}
	switch answer := future.Response().(type) {
	case []Outcome:
		if len(answer) != commands {
			return nil, fmt.Errorf("%w: %d commands gave %d outcomes", ErrUnknownOutcome, commands, len(answer))
		}
		return answer, nil
	case error:
		return nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, answer)
	default:
		return nil, fmt.Errorf("%w: applying answered %T", ErrUnknownOutcome, answer)
	}
}

// proposalError sorts what the library says into what surely did not happen and what may have.
func proposalError(err error) error {
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	default:
		// ErrLeadershipLost, ErrRaftShutdown and whatever else: the entry may be on some disk.
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
}
