// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"connectrpc.com/connect"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/fsm"
)

const (
	// maxMarks bounds the nodes of one command, and with it the pause that applying it makes.
	maxMarks = 512
	// maxFailed bounds what one node may put into the record: who cannot carry out more has not carried out the
	// revision at all.
	maxFailed = 1024
	// maxFailedAtOnce bounds what all nodes of one command put there: a command that is too long for an entry would be set aside with what
	// all of them acknowledge, and a long one keeps those waiting that come after it.
	maxFailedAtOnce = 16 * maxFailed
	// proposeWithin keeps acknowledgements from waiting behind one that nobody answers.
	proposeWithin = 10 * time.Second
)

// marks coalesces acknowledgements: what arrives while a proposal is under way shares the next one, and of each
// node only the newest counts.
type marks struct {
	proposer Proposer
	proposal func(reason string, c fsm.Command) fsm.Proposal
	wake     chan struct{} // of capacity 1

	mu      sync.Mutex
	pending map[markKey]*pendingMark
	stopped bool
}

type markKey struct {
	node fsm.NodeID
	boot fsm.BootID
}

type pendingMark struct {
	mark fsm.AppliedMark
	done chan struct{} // closed once err is set
	err  error
}

func newMarks(o Options) *marks {
	return &marks{proposer: o.Proposer, proposal: o.proposal, wake: make(chan struct{}, 1), pending: map[markKey]*pendingMark{}}
}

// proposal signs a command. The stamp is for people to read.
func (o *Options) proposal(reason string, c fsm.Command) fsm.Proposal {
	return fsm.Proposal{Actor: "member/" + o.Member, Reason: reason, AtUnixMilli: o.Now().UnixMilli(), Command: c}
}

func (s *Service) proposal(reason string, c fsm.Command) fsm.Proposal { return s.o.proposal(reason, c) }

// Acknowledge implements fairleadv1connect.AgentServiceHandler. It answers once the acknowledgement, or a newer
// one of the same boot, is committed.
func (s *Service) Acknowledge(ctx context.Context, req *fairleadv1.AcknowledgeRequest) (*fairleadv1.AcknowledgeResponse, error) {
	mark, err := markOf(req)
	if err != nil {
		return nil, &admin.Refusal{Code: admin.Invalid, What: "acknowledge", Why: err.Error(), Remedy: "acknowledge what was carried out"}
	}
	if isHost(ctx) {
		return s.reports.note(mark)
	}
	for _, f := range req.GetFailed() {
		s.log.Warn("address not carried out", "node", req.GetNode(), "vip", f.GetAddress(), "reason", f.GetWhy())
	}
	if err := s.marks.report(ctx, mark); err != nil {
		return nil, fmt.Errorf("acknowledge %s for node %s: %w", mark.Upto, mark.Node, err)
	}
	s.metrics.acknowledged()
	return &fairleadv1.AcknowledgeResponse{}, nil
}

func markOf(req *fairleadv1.AcknowledgeRequest) (fsm.AppliedMark, error) {
	m := fsm.AppliedMark{Node: fsm.NodeID(req.GetNode()), Boot: fsm.BootID(req.GetBoot()), Upto: desired.RevisionOf(req.GetRevision())}
	if m.Node == "" || m.Boot == "" || m.Upto.IsZero() {
		return m, fmt.Errorf("node, boot or revision is missing")
	}
	if len(req.GetFailed()) > maxFailed {
		return m, fmt.Errorf("%d failed addresses, at most %d make sense", len(req.GetFailed()), maxFailed)
	}
	for _, f := range req.GetFailed() {
		prefix, err := netip.ParsePrefix(f.GetAddress())
		if err != nil {
			return m, fmt.Errorf("failed address: %w", err)
		}
		m.Failed = append(m.Failed, prefix)
	}
	return m, nil
}

// report waits until a mark is committed or refused.
func (c *marks) report(ctx context.Context, m fsm.AppliedMark) error {
	p, err := c.add(m)
	if err != nil {
		return err
	}
	select {
	case c.wake <- struct{}{}:
	default: // it is awake already
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// add replaces what waits of the same boot, unless that is newer; both then share one fate.
func (c *marks) add(m fsm.AppliedMark) (*pendingMark, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil, &admin.Refusal{Code: admin.Stopped, What: "acknowledge", Why: "this member is ending", Remedy: "another member is asked next"}
	}
	key := markKey{m.Node, m.Boot}
	p := c.pending[key]
	if p == nil {
		p = &pendingMark{done: make(chan struct{})}
		c.pending[key] = p
	}
	if !m.Upto.Before(p.mark.Upto) {
		p.mark = m
	}
	return p, nil
}

// take removes up to maxMarks of what waits, and up to maxFailedAtOnce failed addresses with them.
func (c *marks) take() []*pendingMark {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*pendingMark
	failed := 0
	for key, p := range c.pending {
		failed += len(p.mark.Failed)
		if len(out) == maxMarks || len(out) > 0 && failed > maxFailedAtOnce {
			break
		}
		delete(c.pending, key)
		out = append(out, p)
	}
	return out
}

// run proposes what waits, one proposal at a time, until ctx ends.
func (c *marks) run(ctx context.Context) error {
	for {
		batch := c.take()
		if len(batch) > 0 {
			c.propose(ctx, batch)
			continue
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
			c.stop(ctx.Err())
			return ctx.Err()
		}
	}
}

func (c *marks) stop(err error) {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	for batch := c.take(); len(batch) > 0; batch = c.take() {
		for _, p := range batch {
			p.finish(err)
		}
	}
}

func (p *pendingMark) finish(err error) {
	p.err = err
	close(p.done)
}

// propose commits a batch in one command. When that is refused for some node, each is asked for by itself, so
// that everybody learns his own outcome: a mark that was taken already is taken again without effect.
func (c *marks) propose(ctx context.Context, batch []*pendingMark) {
	const reason = "carried out"
	ctx, cancel := context.WithTimeout(ctx, proposeWithin)
	defer cancel()
	all := &fsm.Acknowledge{}
	for _, p := range batch {
		all.Marks = append(all.Marks, p.mark)
	}
	outcomes, err := c.proposer.Propose(ctx, cluster.Bulk, c.proposal(reason, all))
	if err == nil && outcomes[0].Reject != fsm.Accepted && len(batch) > 1 {
		var each []fsm.Proposal
		for _, p := range batch {
			each = append(each, c.proposal(reason, &fsm.Acknowledge{Marks: []fsm.AppliedMark{p.mark}}))
		}
		outcomes, err = c.proposer.Propose(ctx, cluster.Bulk, each...)
	}
	for i, p := range batch {
		switch {
		case err != nil:
			p.finish(err)
		case len(outcomes) == 1:
			p.finish(refused(outcomes[0]))
		default:
			p.finish(refused(outcomes[i]))
		}
	}
}

// refused is the error of a mark that the record did not take.
func refused(o fsm.Outcome) error {
	if err := o.Err(); err != nil {
		return connect.NewError(connect.CodeFailedPrecondition, err)
	}
	return nil
}
