// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
)

// askWithin bounds how long Status waits for the other members.
const askWithin = time.Second

// Status implements fairleadv1connect.RaftServiceHandler. Each member knows itself best, so all are asked, at
// the same time; who does not answer is shown as its neighbours know it, with the reason. It works without a
// leader and without a quorum: that is when it is needed most.
func (s *RaftService) Status(ctx context.Context, req *fairleadv1.StatusRequest) (*fairleadv1.StatusResponse, error) {
	own, err := s.group.Status(ctx)
	if err != nil {
		return nil, err
	}
	response := s.toStatus(own)
	if at := req.GetDigestAt(); at != 0 {
		s.tellDigest(ctx, response, at)
	}
	var leader *fairleadv1.StatusResponse
	if !req.GetLocal() {
		leader = merge(response, s.ask(ctx, response.GetMembers()))
	}
	if response.GetFormer() {
		believe(response, leader)
	}
	doubt(response)
	summarize(response)
	if response.GetVoters() == 0 && !response.GetFormer() {
		why, remedy := s.group.Leaderless().Tell()
		response.Advice = why + "; " + remedy
	}
	return response, nil
}

// tellDigest puts the digest of this member's record at an index in place of the present one, or none if it does not know.
func (s *RaftService) tellDigest(ctx context.Context, response *fairleadv1.StatusResponse, at uint64) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	itself := findMember(response, response.GetAnsweredBy())
	if itself == nil {
		return // it does not know yet that it belongs
	}
	digest, known := s.group.DigestAt(ctx, at)
	if !known {
		at = 0
	}
	itself.Digest, itself.DigestAt = digest, at
}

// Peers implements fairleadv1connect.RaftServiceHandler.
func (s *RaftService) Peers(ctx context.Context, _ *fairleadv1.PeersRequest) (*fairleadv1.PeersResponse, error) {
	own, err := s.group.Status(ctx)
	if err != nil {
		return nil, err
	}
	response := &fairleadv1.PeersResponse{ConfigurationIndex: own.Configuration}
	for _, member := range own.Members {
		response.Members = append(response.Members, memberToWire(member.Member))
		if member.Leader {
			response.Leader = member.Name
		}
	}
	sortMembers(response.GetMembers())
	return response, nil
}

// answer is what another member said about the group, or why it did not.
type answer struct {
	server string // id
	status *fairleadv1.StatusResponse
	err    error
}

func (s *RaftService) ask(ctx context.Context, members []*fairleadv1.Member) []answer {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	self := s.group.Self().ID
	answers := make([]answer, len(members))
	var asking sync.WaitGroup
	for i, member := range members {
		if member.GetServerId() == self {
			continue
		}
		answers[i].server = member.GetServerId()
		if member.GetApiAddress() == "" {
			answers[i].err = errNoAddress
			continue
		}
		asking.Go(func() {
			client := s.peers.Client(member.GetApiAddress())
			answers[i].status, answers[i].err = client.Raft.Status(ctx, &fairleadv1.StatusRequest{Local: true})
		})
	}
	asking.Wait()
	return slices.DeleteFunc(answers, func(a answer) bool { return a.server == "" })
}

// merge puts what each member says of itself in place of what we knew of it, and what the leader says of the
// others' health in place of our guess, which is whether they answered. It returns what the leader said, if it did.
func merge(response *fairleadv1.StatusResponse, answers []answer) (leader *fairleadv1.StatusResponse) {
	reached := map[string]bool{response.GetAnsweredBy(): true}
	if findMember(response, response.GetAnsweredBy()).GetLeader() {
		leader = response
	}
	for _, answer := range answers {
		known, itself := findMember(response, answer.server), findMember(answer.status, answer.server)
		switch {
		case answer.err != nil:
			known.Unreachable = answer.err.Error()
		case itself == nil: // another instance is there, or this one does not know yet that it belongs
			known.Unreachable = "at its address answers " + answer.status.GetAnsweredBy() + ", which does not know that it belongs"
		default:
			reached[answer.server] = true
			adopt(known, itself)
			if itself.GetLeader() && (leader == nil || answer.status.GetTerm() > leader.GetTerm()) {
				leader = answer.status
			}
		}
	}
	if leader != nil {
		follow(response, leader)
		return leader
	}
	for _, member := range response.GetMembers() {
		member.Healthy = reached[member.GetServerId()]
	}
	return nil
}

// adopt takes over what only the member itself can know.
func adopt(known, itself *fairleadv1.Member) {
	known.State, known.Term, known.Applied, known.Commit = itself.GetState(), itself.GetTerm(), itself.GetApplied(), itself.GetCommit()
	known.LastContactMs, known.Format, known.Version = itself.LastContactMs, itself.GetFormat(), itself.GetVersion()
	known.Group, known.Epoch, known.Digest = itself.GetGroup(), itself.GetEpoch(), itself.GetDigest()
	known.Announced, known.Unreachable = itself.GetAnnounced(), ""
	known.DigestAt, known.WritingMs, known.ReachedAt = itself.GetDigestAt(), itself.GetWritingMs(), itself.GetReachedAt()
}

// follow takes over what the leader can tell best.
func follow(response, leader *fairleadv1.StatusResponse) {
	response.Leader, response.Term = leader.GetLeader(), leader.GetTerm()
	for _, judged := range leader.GetMembers() {
		if member := findMember(response, judged.GetServerId()); member != nil {
			member.Healthy, member.Unhealthy, member.Leader = judged.GetHealthy(), judged.GetUnhealthy(), judged.GetLeader()
		}
	}
}

func (s *RaftService) toStatus(own Status) *fairleadv1.StatusResponse {
	self := s.group.Self()
	response := &fairleadv1.StatusResponse{
		Group: own.Group, Epoch: own.Epoch, Format: own.Format, Term: own.Term,
		ConfigurationIndex: own.Configuration, AnsweredBy: self.ID, Former: own.Former,
	}
	for _, member := range own.Members {
		wire := statusToWire(member)
		if member.ID != self.ID {
			wire.Unreachable = "not asked"
		}
		if member.Leader {
			response.Leader = member.Name
		}
		response.Members = append(response.Members, wire)
	}
	sortMembers(response.GetMembers())
	return response
}

func memberToWire(member Member) *fairleadv1.Member {
	suffrage := fairleadv1.Suffrage_SUFFRAGE_NONVOTER
	if member.Voter {
		suffrage = fairleadv1.Suffrage_SUFFRAGE_VOTER
	}
	return &fairleadv1.Member{
		Name: member.Name, ServerId: member.ID, Address: member.Address, ApiAddress: member.APIAddress,
		Suffrage: suffrage, Leader: member.Leader, Healthy: member.Healthy, Unhealthy: member.Unhealthy,
	}
}

func statusToWire(member MemberStatus) *fairleadv1.Member {
	wire := memberToWire(member.Member)
	wire.State, wire.Term, wire.Applied, wire.Commit = member.State, member.Term, member.Applied, member.Commit
	wire.Format, wire.Version, wire.Group, wire.Epoch = member.Format, member.Version, member.Group, member.Epoch
	wire.Digest, wire.DigestAt, wire.WritingMs = member.Digest, member.DigestAt, member.Writing.Milliseconds()
	wire.ReachedAt = member.ReachedAt
	wire.Announced = toRevision(member.Announced)
	if member.Heard {
		ms := member.LastContact.Milliseconds()
		wire.LastContactMs = &ms
	}
	return wire
}

func toRevision(r Revision) *fairleadv1.Revision {
	return &fairleadv1.Revision{Epoch: r.Epoch, Index: r.Index}
}

func fromRevision(r *fairleadv1.Revision) Revision {
	return Revision{Epoch: r.GetEpoch(), Index: r.GetIndex()}
}

func findMember(status *fairleadv1.StatusResponse, id string) *fairleadv1.Member {
	for _, member := range status.GetMembers() {
		if member.GetServerId() == id {
			return member
		}
	}
	return nil
}

func sortMembers(members []*fairleadv1.Member) {
	slices.SortStableFunc(members, func(a, b *fairleadv1.Member) int {
		return cmp.Or(cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetServerId(), b.GetServerId()))
	})
}
