// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/fsm"
)

// adminGroup shows the Raft node and the record to the operator's API.
type adminGroup struct {
	node    *cluster.Node
	state   *fsm.State
	self    admin.Member
	version string
	config  *config.Controller
	// apiOf tells where a member's API is, by its name.
	apiOf func(name string) string
	// doubts tells what is wrong with a server's record, as far as this member compared it.
	doubts func(id string) string
}

var _ admin.Group = (*adminGroup)(nil)

func (g *adminGroup) Self() admin.Member { return g.self }

func (g *adminGroup) Leader() (admin.Member, bool) {
	p, ok := g.node.Leader()
	return admin.Member{ID: p.ID, Name: p.Name, Address: p.Address, APIAddress: g.apiOf(p.Name), Leader: true, Voter: true}, ok
}

func (g *adminGroup) Leaderless() admin.Leaderless {
	raft := g.node.Status()
	return leaderlessOf(g.config, &raft, time.Now())
}

func (g *adminGroup) Status(context.Context) (admin.Status, error) {
	view := g.state.Read()
	group := view.Group()
	raft := g.node.Status()
	out := admin.Status{
		Group: string(group.ID), Epoch: uint64(group.Epoch), Format: group.Format,
		Term: raft.Contact.Term, Configuration: uint64(g.node.ConfigurationIndex()), Former: raft.Former,
	}
	for _, p := range raft.Peers {
		out.Members = append(out.Members, g.memberStatus(p, raft, view))
	}
	return out, nil
}

func (g *adminGroup) memberStatus(p cluster.PeerStatus, raft cluster.Status, view *fsm.View) admin.MemberStatus {
	m := admin.MemberStatus{Member: admin.Member{
		ID: p.ID, Name: p.Name, Address: p.Address, APIAddress: g.apiOf(p.Name),
		Voter: p.Voter, Leader: p.Leads, Healthy: p.Answer && p.Behind == "", Unhealthy: ails(p, raft.Contact),
	}}
	if why := g.doubts(p.ID); why != "" && raft.Contact.Leads {
		m.Healthy, m.Unhealthy = false, why
	}
	if known, ok := fsm.Get[*fsm.Member](view, fsm.TableMembers, p.ID); ok {
		m.Format, m.Version = known.Format, known.Version
		m.Announced = admin.Revision{Epoch: uint64(known.Announced.Epoch), Index: uint64(known.Announced.Index)}
	}
	if !p.Self {
		m.Applied = uint64(p.Last)
		return m
	}
	c := raft.Contact
	group, epoch, _ := g.state.Identity()
	m.State, m.Term, m.Applied, m.Commit = raft.State, c.Term, uint64(c.Applied), uint64(c.Commit)
	m.Group, m.Epoch = string(group), uint64(epoch)
	m.ReachedAt = g.self.Address
	m.Digest, m.DigestAt, m.Writing = view.Digest().String(), uint64(view.Applied()), raft.Contact.Writing
	m.Format, m.Version = fsm.NewestFormat, g.version
	if m.Heard = !c.At.IsZero(); m.Heard && !c.Leads {
		m.LastContact = time.Since(c.At)
	}
	return m
}

// DigestAt implements admin.Group.
func (g *adminGroup) DigestAt(ctx context.Context, index uint64) (string, bool) {
	if g.node.AwaitApplied(ctx, cluster.Index(index)) != nil {
		return "", false
	}
	digest, known := g.state.DigestAt(fsm.Index(index))
	return digest.String(), known
}

// ails is what is wrong with a server, as a leader finds; nothing elsewhere.
func ails(p cluster.PeerStatus, c cluster.Contact) string {
	if c.Leads && !p.Answer {
		return "does not answer"
	}
	return p.Behind
}

func (g *adminGroup) AddVoter(ctx context.Context, s admin.Member, change admin.Change) error {
	if err := g.AddNonvoter(ctx, s, change); err != nil {
		return err
	}
	return refusal("promote "+s.ID, g.node.Promote(ctx, s.ID))
}

// AddNonvoter takes a server in. Its member may join again by itself from then on, if it was removed: with an empty disk, say.
func (g *adminGroup) AddNonvoter(ctx context.Context, s admin.Member, change admin.Change) error {
	if err := g.node.Add(ctx, s.ID, s.Address); err != nil {
		return refusal("add "+s.ID, err)
	}
	return g.mayJoin(ctx, cluster.NameOf(s.ID), change)
}

// mayJoin takes back that a member was removed, if it was.
func (g *adminGroup) mayJoin(ctx context.Context, member string, change admin.Change) error {
	if _, removed := g.state.Read().Revoked(fsm.RevokedMembership, member); !removed {
		return nil
	}
	return propose(ctx, g.node, change, "let "+member+" join again", &fsm.EndRevocation{Of: fsm.RevokedMembership, Name: member})
}

// mayNotJoin commits that a member was removed, before it is: its machine would come back at once, as a new server. Members of
// format 1 cannot read it.
func (g *adminGroup) mayNotJoin(ctx context.Context, member string, change admin.Change) error {
	if _, _, format := g.state.Identity(); format < fsm.FormatRevocations {
		return nil
	}
	return propose(ctx, g.node, change, "keep "+member+" from joining again", &fsm.Revoke{Of: fsm.RevokedMembership, Name: member})
}

func (g *adminGroup) Demote(ctx context.Context, id string, change admin.Change) error {
	return voteRefusal("demote "+id, g.node.Demote(ctx, id, change.Force))
}

// Remove takes a server out of the configuration. The record names it until no switch can hold a path of it: until it
// took leave (leave.go), or for as long as switches keep paths of a lost session (cluster/leader).
func (g *adminGroup) Remove(ctx context.Context, id string, change admin.Change) error {
	member := cluster.NameOf(id)
	others := slices.ContainsFunc(g.node.Peers(), func(p cluster.PeerStatus) bool { return p.Name == member && p.ID != id })
	if !others { // of two servers of a member one may go
		if err := g.mayNotJoin(ctx, member, change); err != nil {
			return err
		}
	}
	err := g.node.Remove(ctx, id, change.Force)
	if err != nil && !others && !errors.Is(err, cluster.ErrUnknownOutcome) {
		if undone := g.mayJoin(ctx, member, change); undone != nil {
			err = errors.Join(err, undone)
		}
	}
	return voteRefusal("remove "+id, err)
}

func (g *adminGroup) Transfer(ctx context.Context, id string, _ admin.Change) error {
	return refusal("transfer leadership", g.node.Transfer(ctx, id))
}

func (g *adminGroup) Snapshot(ctx context.Context, _ admin.Change) (admin.Snapshot, error) {
	s, err := g.node.Snapshot(ctx)
	return admin.Snapshot{ID: s.ID, Index: uint64(s.Index), Term: s.Term, SizeBytes: uint64(s.Bytes)}, refusal("snapshot", err)
}

// Finalize raises the committed format.
func (g *adminGroup) Finalize(ctx context.Context, format uint32, change admin.Change) (uint32, error) {
	if _, _, have := g.state.Identity(); format <= have {
		return have, nil
	}
	return format, propose(ctx, g.node, change, "finalize", &fsm.RaiseFormat{Format: format})
}

// propose commits one command in somebody's name. A member that is not known to the record is none to remove.
func propose(ctx context.Context, node *cluster.Node, change admin.Change, what string, c fsm.Command) error {
	out, err := node.Propose(ctx, cluster.Urgent, fsm.Proposal{
		Actor: change.Actor, Reason: change.Reason, AtUnixMilli: time.Now().UnixMilli(), Command: c,
	})
	if err != nil {
		return refusal(what, err)
	}
	if o := out[0]; o.Reject != fsm.Accepted && o.Reject != fsm.RejectNotFound {
		return &admin.Refusal{Code: admin.Invalid, What: what, Why: o.Err().Error()}
	}
	return nil
}

// refusal puts errors of the Raft node into the words of the API, where a code says what to do.
func refusal(what string, err error) error {
	if err == nil {
		return nil
	}
	codes := []struct {
		is   error
		code admin.Code
	}{
		{cluster.ErrNotLeader, admin.NotLeader}, {cluster.ErrUnknownOutcome, admin.UnknownOutcome},
		{cluster.ErrBusy, admin.Busy}, {cluster.ErrStopped, admin.Stopped}, {cluster.ErrRemoved, admin.Removed},
		{cluster.ErrRolledBack, admin.RolledBack}, {cluster.ErrNotReady, admin.NotReady},
		{cluster.ErrUnknownServer, admin.UnknownServer}, {cluster.ErrBootstrapMismatch, admin.BootstrapMismatch},
	}
	for _, c := range codes {
		if errors.Is(err, c.is) {
			return &admin.Refusal{Code: c.code, What: what, Why: err.Error()}
		}
	}
	return err
}

// voteRefusal is that of a vote that is to be taken.
func voteRefusal(what string, err error) error {
	if errors.Is(err, cluster.ErrNotReady) {
		return &admin.Refusal{
			Code: admin.NotReady, What: what, Why: err.Error(), ForceOverrides: true,
			Remedy: "start those that do not answer, or remove them first, or force it",
		}
	}
	return refusal(what, err)
}

// clusterError is the inverse: what a member was told over the API, with the identity that cluster knows.
func clusterError(err error) error {
	var r *admin.Refusal
	if !errors.As(err, &r) {
		return err
	}
	known := map[admin.Code]error{
		admin.NotLeader: cluster.ErrNotLeader, admin.UnknownOutcome: cluster.ErrUnknownOutcome, admin.Busy: cluster.ErrBusy,
		admin.Stopped: cluster.ErrStopped, admin.Removed: cluster.ErrRemoved, admin.RolledBack: cluster.ErrRolledBack,
		admin.NotReady: cluster.ErrNotReady, admin.BootstrapMismatch: cluster.ErrBootstrapMismatch,
	}[r.Code]
	if known == nil {
		return err
	}
	return fmt.Errorf("%s: %w", r.Why, known)
}
