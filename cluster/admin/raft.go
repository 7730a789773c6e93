// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"log/slog"
	"net"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
)

// RaftService implements fairlead.v1.RaftService over a Group.
type RaftService struct {
	onLeader
	log *slog.Logger

	// changing holds one token: one change of the configuration is judged and made at a time.
	changing chan struct{}
}

var _ fairleadv1connect.RaftServiceHandler = (*RaftService)(nil)

// NewRaftService makes the service of one member.
func NewRaftService(group Group, peers *Peers, log *slog.Logger) *RaftService {
	return &RaftService{onLeader: onLeader{group, peers}, log: log, changing: make(chan struct{}, 1)}
}

// Add implements fairleadv1connect.RaftServiceHandler.
func (s *RaftService) Add(ctx context.Context, req *fairleadv1.AddRequest) (*fairleadv1.AddResponse, error) {
	verb := AddNonvoter
	if req.GetSuffrage() == fairleadv1.Suffrage_SUFFRAGE_VOTER {
		verb = AddVoter
	}
	if err := validateAdd(req); err != nil {
		return nil, err
	}
	return lead(ctx, s.onLeader, string(verb)+" "+req.GetName(), func(ctx context.Context, caller Caller) (*fairleadv1.AddResponse, error) {
		server := Member{ID: req.GetServerId(), Name: req.GetName(), Address: req.GetAddress(), APIAddress: req.GetApiAddress()}
		done, err := s.change(ctx, verb, server.ID, changeOf(caller, req), func(change Change, old Member) error {
			switch {
			case verb == AddVoter:
				return s.group.AddVoter(ctx, server, change)
			case old.Voter:
				return s.group.Demote(ctx, server.ID, change)
			default:
				return s.group.AddNonvoter(ctx, server, change)
			}
		})
		return &fairleadv1.AddResponse{ConfigurationIndex: done.index, Warning: done.warning}, err
	}, func(ctx context.Context, leader *Client) (*fairleadv1.AddResponse, error) {
		return leader.Raft.Add(ctx, req)
	})
}

func validateAdd(req *fairleadv1.AddRequest) error {
	why := ""
	if req.GetName() == "" {
		why = "no name"
	} else if req.GetServerId() == "" {
		why = "no server id"
	} else if _, _, err := net.SplitHostPort(req.GetAddress()); err != nil {
		why = "address " + quote(req.GetAddress()) + " is not host:port"
	} else {
		return nil
	}
	return &Refusal{
		Code: Invalid, What: "add " + quote(req.GetName()), Why: why,
		Remedy: "`fairlead raft status` on the new member shows its id and address",
	}
}

// Remove implements fairleadv1connect.RaftServiceHandler.
func (s *RaftService) Remove(ctx context.Context, req *fairleadv1.RemoveRequest) (*fairleadv1.RemoveResponse, error) {
	return lead(ctx, s.onLeader, "remove "+req.GetServer(), func(ctx context.Context, caller Caller) (*fairleadv1.RemoveResponse, error) {
		target, err := s.resolve(ctx, Remove, req.GetServer())
		if err != nil {
			return nil, err
		}
		done, err := s.change(ctx, Remove, target.ID, changeOf(caller, req), func(change Change, _ Member) error {
			return s.group.Remove(ctx, target.ID, change)
		})
		return &fairleadv1.RemoveResponse{ConfigurationIndex: done.index, Warning: done.warning}, err
	}, func(ctx context.Context, leader *Client) (*fairleadv1.RemoveResponse, error) {
		return leader.Raft.Remove(ctx, req)
	})
}

// Transfer implements fairleadv1connect.RaftServiceHandler.
func (s *RaftService) Transfer(ctx context.Context, req *fairleadv1.TransferRequest) (*fairleadv1.TransferResponse, error) {
	return lead(ctx, s.onLeader, "transfer leadership", func(ctx context.Context, caller Caller) (*fairleadv1.TransferResponse, error) {
		id := ""
		if req.GetServer() != "" {
			target, err := s.resolve(ctx, Transfer, req.GetServer())
			if err != nil {
				return nil, err
			}
			id = target.ID
		}
		_, err := s.change(ctx, Transfer, id, changeOf(caller, req), func(change Change, old Member) error {
			if old.Leader {
				return nil
			}
			return s.group.Transfer(ctx, id, change)
		})
		if err != nil {
			return nil, err
		}
		return &fairleadv1.TransferResponse{Leader: s.newLeader(ctx, id)}, nil
	}, func(ctx context.Context, leader *Client) (*fairleadv1.TransferResponse, error) {
		return leader.Raft.Transfer(ctx, req)
	})
}

// newLeader waits a little until this member, which stepped down, knows who leads now.
func (s *RaftService) newLeader(ctx context.Context, wanted string) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		leader, ok := s.group.Leader()
		if ok && (leader.ID == wanted || wanted == "" && leader.ID != s.group.Self().ID) {
			return leader.Name
		}
		select {
		case <-ctx.Done():
			return leader.Name
		case <-poll.C:
		}
	}
}

// Snapshot implements fairleadv1connect.RaftServiceHandler.
func (s *RaftService) Snapshot(ctx context.Context, req *fairleadv1.SnapshotRequest) (*fairleadv1.SnapshotResponse, error) {
	return lead(ctx, s.onLeader, "take a snapshot", func(ctx context.Context, caller Caller) (*fairleadv1.SnapshotResponse, error) {
		if err := s.mustLead(); err != nil {
			return nil, err
		}
		snapshot, err := s.group.Snapshot(ctx, changeOf(caller, req))
		if err != nil {
			return nil, err
		}
		return &fairleadv1.SnapshotResponse{Id: snapshot.ID, Index: snapshot.Index, Term: snapshot.Term, SizeBytes: snapshot.SizeBytes}, nil
	}, func(ctx context.Context, leader *Client) (*fairleadv1.SnapshotResponse, error) {
		return leader.Raft.Snapshot(ctx, req)
	})
}

// mustLead is asked before work that any member could do, but only the leader shall.
func (s *RaftService) mustLead() error {
	if leader, ok := s.group.Leader(); !ok || leader.ID != s.group.Self().ID {
		return NotLeader
	}
	return nil
}

type changed struct {
	index   uint64
	warning string
}

// change judges and makes one change of the configuration. Only the leader knows who is healthy, so only it judges.
func (s *RaftService) change(ctx context.Context, verb Verb, id string, change Change, do func(Change, Member) error,
) (changed, error) {
	select {
	case s.changing <- struct{}{}:
		defer func() { <-s.changing }()
	case <-ctx.Done():
		return changed{}, &Refusal{
			Code: Busy, What: string(verb) + " " + id, Why: "another change of the configuration is under way",
			Remedy: "try again when it is done",
		}
	}
	servers, index, err := s.judged(ctx)
	if err != nil {
		return changed{}, err
	}
	verdict := Judge(servers, verb, id, change.Force)
	if verdict.Refusal != nil {
		return changed{}, verdict.Refusal
	}
	change.Index = index
	old, _ := find(servers, id)
	if err := do(change, old); err != nil {
		return changed{}, err
	}
	s.log.Info("configuration changed", "verb", string(verb), "server", id, "actor", change.Actor,
		"reason", change.Reason, "force", change.Force, "warning", verdict.Warning)
	// The change is made, so failing to read the index back is no error.
	if _, index, err = s.configuration(ctx); err != nil {
		index = 0
	}
	return changed{index: index, warning: verdict.Warning}, nil
}

// judged is configuration with what all members say of themselves: one whose disk hangs, or whose record is another, is not healthy either.
func (s *RaftService) judged(ctx context.Context) ([]Member, uint64, error) {
	servers, index, err := s.configuration(ctx)
	if err != nil {
		return nil, 0, err
	}
	status, err := s.Status(ctx, &fairleadv1.StatusRequest{})
	if err != nil {
		return nil, 0, err
	}
	for i := range servers {
		if member := findMember(status, servers[i].ID); member != nil && !member.GetHealthy() {
			servers[i].Healthy, servers[i].Unhealthy = false, member.GetUnhealthy()
		}
	}
	return servers, index, nil
}

// configuration is the leader's view; elsewhere it is NotLeader.
func (s *RaftService) configuration(ctx context.Context) ([]Member, uint64, error) {
	if err := s.mustLead(); err != nil {
		return nil, 0, err
	}
	status, err := s.group.Status(ctx)
	if err != nil {
		return nil, 0, err
	}
	servers := make([]Member, len(status.Members))
	for i, member := range status.Members {
		servers[i] = member.Member
	}
	return servers, status.Configuration, nil
}

func (s *RaftService) resolve(ctx context.Context, verb Verb, wanted string) (Member, error) {
	servers, _, err := s.configuration(ctx)
	if err != nil {
		return Member{}, err
	}
	return Resolve(servers, verb, wanted)
}

// changeOf takes the actor from the certificate and the rest from the request.
func changeOf(caller Caller, req interface {
	GetForce() bool
	GetReason() string
}) Change {
	return Change{Actor: caller.Signature(), Reason: req.GetReason(), Force: req.GetForce()}
}
