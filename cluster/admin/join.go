// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
)

// maxFounders bounds the list of founding members.
const maxFounders = 64

// JoinService implements fairlead.v1.JoinService over a Joiner.
type JoinService struct {
	onLeader
	joiner Joiner
}

var _ fairleadv1connect.JoinServiceHandler = (*JoinService)(nil)

// NewJoinService makes the service of one member.
func NewJoinService(group Group, joiner Joiner, peers *Peers) *JoinService {
	return &JoinService{onLeader: onLeader{group, peers}, joiner: joiner}
}

// Confirm implements fairleadv1connect.JoinServiceHandler.
func (s *JoinService) Confirm(ctx context.Context, req *fairleadv1.ConfirmRequest) (*fairleadv1.ConfirmResponse, error) {
	if len(req.GetMembers()) > maxFounders || req.GetToken() == "" {
		return nil, &Refusal{
			Code: Invalid, What: "confirm the bootstrap", Why: "no token, or too many members",
			Remedy: "give every first member the same token and list",
		}
	}
	founders := make([]Founder, len(req.GetMembers()))
	for i, member := range req.GetMembers() {
		founders[i] = Founder{Name: member.GetName(), Address: member.GetAddress()}
	}
	confirmation, err := s.joiner.Confirm(ctx, req.GetToken(), founders)
	if err != nil {
		return nil, err
	}
	return &fairleadv1.ConfirmResponse{ServerId: confirmation.ServerID, Empty: confirmation.Empty}, nil
}

// Join implements fairleadv1connect.JoinServiceHandler.
func (s *JoinService) Join(ctx context.Context, req *fairleadv1.JoinRequest) (*fairleadv1.JoinResponse, error) {
	return lead(ctx, s.onLeader, "take in "+req.GetServerId(), func(ctx context.Context, _ Caller) (*fairleadv1.JoinResponse, error) {
		joined, err := s.joiner.Join(ctx, Joining{
			Member: Member{ID: req.GetServerId(), Name: req.GetName(), Address: req.GetAddress(), APIAddress: req.GetApiAddress()},
			Last:   req.GetLast(), Format: req.GetFormat(), Version: req.GetVersion(),
		})
		if err != nil {
			return nil, err
		}
		return &fairleadv1.JoinResponse{Group: joined.Group, Epoch: joined.Epoch, Leader: joined.Leader}, nil
	}, func(ctx context.Context, leader *Client) (*fairleadv1.JoinResponse, error) {
		return leader.Join.Join(ctx, req)
	})
}

// Report implements fairleadv1connect.JoinServiceHandler.
func (s *JoinService) Report(ctx context.Context, req *fairleadv1.ReportRequest) (*fairleadv1.ReportResponse, error) {
	return lead(ctx, s.onLeader, "take note of "+req.GetServerId(), func(ctx context.Context, _ Caller) (*fairleadv1.ReportResponse, error) {
		format, err := s.joiner.Report(ctx, Report{
			Member: Member{ID: req.GetServerId(), Name: req.GetName(), APIAddress: req.GetApiAddress()},
			Format: req.GetFormat(), Version: req.GetVersion(),
			Applied: fromRevision(req.GetApplied()), Announced: fromRevision(req.GetAnnounced()),
		})
		return &fairleadv1.ReportResponse{Format: format}, err
	}, func(ctx context.Context, leader *Client) (*fairleadv1.ReportResponse, error) {
		return leader.Join.Report(ctx, req)
	})
}

// Leave implements fairleadv1connect.JoinServiceHandler.
func (s *JoinService) Leave(ctx context.Context, req *fairleadv1.LeaveRequest) (*fairleadv1.LeaveResponse, error) {
	return lead(ctx, s.onLeader, "let "+req.GetServerId()+" leave", func(ctx context.Context, _ Caller) (*fairleadv1.LeaveResponse, error) {
		err := s.joiner.Leave(ctx, Member{ID: req.GetServerId(), Name: req.GetName()})
		return &fairleadv1.LeaveResponse{}, err
	}, func(ctx context.Context, leader *Client) (*fairleadv1.LeaveResponse, error) {
		return leader.Join.Leave(ctx, req)
	})
}

// Remember implements fairleadv1connect.JoinServiceHandler.
func (s *JoinService) Remember(_ context.Context, req *fairleadv1.RememberRequest) (*fairleadv1.RememberResponse, error) {
	r := s.joiner.Remember(Member{ID: req.GetServerId(), Name: req.GetName()})
	return &fairleadv1.RememberResponse{Term: r.Term, Voted: r.Voted, LastTerm: r.LastTerm, LastIndex: r.LastIndex, HeldTerm: r.HeldTerm, HeldIndex: r.HeldIndex}, nil
}
