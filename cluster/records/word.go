// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"errors"
	"fmt"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/fsm"
)

// Proposer hands proposals to the leader, whoever that is; *cluster.Node is one.
type Proposer interface {
	Propose(ctx context.Context, u cluster.Urgency, proposals ...fsm.Proposal) ([]fsm.Outcome, error)
}

// ReleaseHold implements fairleadv1connect.RecordServiceHandler.
func (s *Service) ReleaseHold(ctx context.Context, req *fairleadv1.ReleaseHoldRequest) (*fairleadv1.ReleaseHoldResponse, error) {
	err := s.word(ctx, "holds release "+req.GetId(), "`fairlead holds list` shows what is held", req.GetReason(),
		&fsm.ReleaseHold{ID: fsm.HoldID(req.GetId())})
	return &fairleadv1.ReleaseHoldResponse{}, err
}

// Drain implements fairleadv1connect.RecordServiceHandler.
func (s *Service) Drain(ctx context.Context, req *fairleadv1.DrainRequest) (*fairleadv1.DrainResponse, error) {
	of, name := fsm.DrainOf(req.GetOf()), req.GetName()
	what := "drain " + req.GetOf() + " " + name
	if of != fsm.DrainNode && of != fsm.DrainService && of != fsm.DrainMember {
		return nil, &admin.Refusal{Code: admin.Invalid, What: what, Why: "a " + req.GetOf() + " cannot be drained", Remedy: "drain a node, a service or a member"}
	}
	if have := s.o.Record.Read().Group().Format; have < fsm.FormatDrains {
		return nil, &admin.Refusal{
			Code: admin.Invalid, What: what, Why: fmt.Sprintf("the group's format is %d, and members of it cannot read drains, which came with %d", have, fsm.FormatDrains),
			Remedy: "run this release on every member, then `fairlead raft finalize`",
		}
	}
	var c fsm.Command = &fsm.BeginDrain{Of: of, Name: name}
	if req.GetUndo() {
		c = &fsm.EndDrain{Of: of, Name: name}
	}
	outcome, err := s.commit(ctx, what, req.GetReason(), c)
	if err != nil {
		return nil, err
	}
	if err := outcome.Err(); err != nil {
		return nil, &admin.Refusal{Code: admin.Invalid, What: what, Why: err.Error(), Remedy: drainRemedy(of, outcome)}
	}
	return &fairleadv1.DrainResponse{}, nil
}

// drainRemedy tells what to do about a drain that the record refused.
func drainRemedy(of fsm.DrainOf, o fsm.Outcome) string {
	switch {
	case o.Reject == fsm.RejectInUse:
		return "a majority of members stays, or one of two: `fairlead get drains` lists those that are drained already, and --undo ends a drain"
	case of == fsm.DrainMember:
		return "name a member as the column MEMBER of `fairlead get members` does, not its server"
	case of == fsm.DrainService:
		return "name a Service as NAMESPACE/NAME: `fairlead get services` lists what there is"
	}
	return "`fairlead get nodes` lists what there is"
}

// word commits an operator's word, in the name that the certificate proves.
func (s *Service) word(ctx context.Context, what, remedy, reason string, c fsm.Command) error {
	outcome, err := s.commit(ctx, what, reason, c)
	if err != nil {
		return err
	}
	if err := outcome.Err(); err != nil {
		return &admin.Refusal{Code: admin.Invalid, What: what, Why: err.Error(), Remedy: remedy}
	}
	return nil
}

// commit has the group decide on an operator's word, and gives what the record made of it.
//
// Of several commands, which go into one entry, it is the outcome of the first one.
func (s *Service) commit(ctx context.Context, what, reason string, commands ...fsm.Command) (fsm.Outcome, error) {
	caller, _ := admin.CallerFrom(ctx)
	proposals := each(commands, func(c fsm.Command) fsm.Proposal {
		return fsm.Proposal{Actor: caller.Signature(), Reason: reason, AtUnixMilli: time.Now().UnixMilli(), Command: c}
	})
	outcomes, err := s.insist(ctx, proposals)
	if err != nil {
		return fsm.Outcome{}, s.refused(what, err)
	}
	return outcomes[0], nil
}

// A word waits for patience while nobody leads, which is longer than an election, and is tried again every tryAgain.
const (
	patience = 5 * time.Second
	tryAgain = 100 * time.Millisecond
)

// insist proposes, again as long as nobody leads who could have taken it in.
func (s *Service) insist(ctx context.Context, proposals []fsm.Proposal) ([]fsm.Outcome, error) {
	for until := time.Now().Add(patience); ; {
		outcomes, err := s.o.Proposer.Propose(ctx, cluster.Urgent, proposals...)
		if !errors.Is(err, cluster.ErrNotLeader) || time.Now().After(until) {
			return outcomes, err
		}
		select {
		case <-time.After(tryAgain):
		case <-ctx.Done():
			return nil, err
		}
	}
}
