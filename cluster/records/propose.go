// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"fmt"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/wire"
)

// Propose implements fairleadv1connect.RecordServiceHandler: the leader's end of Forward.
func (s *Service) Propose(ctx context.Context, req *fairleadv1.ProposeRequest) (*fairleadv1.ProposeResponse, error) {
	const what = "propose"
	proposals, err := s.decode(req.GetProposals())
	if err != nil {
		return nil, &admin.Refusal{Code: admin.Invalid, What: what, Why: err.Error(), Remedy: "run releases that know each other on all members"}
	}
	if caller, ok := admin.CallerFrom(ctx); ok {
		for i := range proposals {
			proposals[i].Actor = byWayOf(caller, proposals[i].Actor)
		}
	}
	term := s.o.Leader.LeadingTerm()
	outcomes := s.unfounded(proposals)
	if outcomes == nil {
		if outcomes, err = s.o.Leader.ProposeLocal(ctx, urgency(req.GetLane()), proposals...); err != nil {
			return nil, remote(what, err)
		}
	}
	out := &fairleadv1.ProposeResponse{Revision: desired.RevisionMessage(s.o.Record.Read().Revision()), Term: term}
	for i := range outcomes {
		b, err := wire.Append(nil, &outcomes[i])
		if err != nil {
			return nil, fmt.Errorf("encode outcome: %w", err) // committed, but the caller will not know
		}
		out.Outcomes = append(out.Outcomes, b)
	}
	return out, nil
}

// byWayOf has histories tell which member handed a proposal on of somebody else: the leader has only its word for who that was.
func byWayOf(caller admin.Caller, actor string) string {
	if actor == caller.Actor() {
		return actor
	}
	return actor + " (by way of " + caller.Identity.Name + ")"
}

// decode reads proposals, all of this group's present epoch.
func (s *Service) decode(entries [][]byte) ([]fsm.Proposal, error) {
	if len(entries) == 0 || len(entries) > cluster.MaxProposals {
		return nil, fmt.Errorf("%d commands; 1 to %d are allowed", len(entries), cluster.MaxProposals)
	}
	ours := s.o.Record.Read().Group().Epoch
	proposals := make([]fsm.Proposal, 0, len(entries))
	for _, entry := range entries {
		epoch, one, err := fsm.DecodeEntry(entry)
		if err != nil {
			return nil, err
		}
		if epoch != ours || len(one) != 1 {
			return nil, fmt.Errorf("%d commands of epoch %d, ours is %d", len(one), epoch, ours)
		}
		proposals = append(proposals, one[0])
	}
	return proposals, nil
}

func urgency(lane fairleadv1.Lane) cluster.Urgency {
	if lane == fairleadv1.Lane_LANE_URGENT {
		return cluster.Urgent
	}
	return cluster.Bulk
}

// CheckLeader implements fairleadv1connect.RecordServiceHandler.
func (s *Service) CheckLeader(ctx context.Context, _ *fairleadv1.CheckLeaderRequest) (*fairleadv1.CheckLeaderResponse, error) {
	const what = "check leader"
	term := s.o.Leader.LeadingTerm()
	if term == 0 {
		return nil, &admin.Refusal{Code: admin.NotLeader, What: what, Why: "this member does not lead", Remedy: "ask the leader"}
	}
	commit := s.o.Leader.Contact().Commit // before the quorum is asked: whoever leads instead came later
	if err := s.o.Leader.VerifyLeader(ctx); err != nil {
		return nil, remote(what, err)
	}
	epoch := s.o.Record.Read().Group().Epoch
	return &fairleadv1.CheckLeaderResponse{
		Leader: s.o.Member, Term: term, Commit: desired.RevisionMessage(fsm.Revision{Epoch: epoch, Index: commit}),
	}, nil
}

// Forward carries proposals to the leader, whose API client reaches. Errors keep their meaning, as
// cluster.Forwarder wants it.
func Forward(ctx context.Context, client fairleadv1connect.RecordServiceClient, epoch fsm.Epoch, u cluster.Urgency, proposals []fsm.Proposal) ([]fsm.Outcome, error) {
	req := &fairleadv1.ProposeRequest{Lane: fairleadv1.Lane_LANE_BULK}
	if u == cluster.Urgent {
		req.Lane = fairleadv1.Lane_LANE_URGENT
	}
	for i := range proposals {
		entry, err := fsm.EncodeEntry(epoch, proposals[i:i+1])
		if err != nil {
			return nil, fmt.Errorf("hand proposals to the leader: %w", err)
		}
		req.Proposals = append(req.Proposals, entry)
	}
	answer, err := client.Propose(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("hand proposals to the leader: %w", local(err))
	}
	if len(answer.GetOutcomes()) != len(proposals) {
		return nil, fmt.Errorf("hand proposals to the leader: %w: %d commands gave %d outcomes", cluster.ErrUnknownOutcome, len(proposals), len(answer.GetOutcomes()))
	}
	outcomes := make([]fsm.Outcome, len(proposals))
	for i, b := range answer.GetOutcomes() {
		if err := wire.Decode(b, &outcomes[i]); err != nil {
			return nil, fmt.Errorf("hand proposals to the leader: %w: %w", cluster.ErrUnknownOutcome, err)
		}
	}
	return outcomes, nil
}

// Follower is what a Barrier needs of the member; *cluster.Node is one.
type Follower interface {
	Leader() (cluster.Peer, bool)
	AwaitApplied(ctx context.Context, index fsm.Index) error
}

// NewBarrier makes the Barrier of a member: it asks the leader, who may be this member, what is committed, and
// waits until that is applied here. reach gives the API of a member.
func NewBarrier(member Follower, reach func(cluster.Peer) (fairleadv1connect.RecordServiceClient, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		leader, ok := member.Leader()
		if !ok {
			return fmt.Errorf("nobody leads at present: %w", cluster.ErrNotLeader)
		}
		client, err := reach(leader)
		if err != nil {
			return fmt.Errorf("reach the leader %s: %w", leader.Name, err)
		}
		answer, err := client.CheckLeader(ctx, &fairleadv1.CheckLeaderRequest{})
		if err != nil {
			return fmt.Errorf("ask the leader %s what is committed: %w", leader.Name, err)
		}
		return member.AwaitApplied(ctx, fsm.Index(answer.GetCommit().GetIndex()))
	}
}
