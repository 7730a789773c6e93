// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/fsm"
)

// joiner answers members that found a group, want to join it, or tell how far they are.
type joiner struct {
	node  *cluster.Node
	state *fsm.State
	self  admin.Member
}

var _ admin.Joiner = (*joiner)(nil)

func (j *joiner) Confirm(_ context.Context, token string, members []admin.Founder) (admin.Confirmation, error) {
	request := cluster.ConfirmRequest{Token: token}
	for _, m := range members {
		request.Members = append(request.Members, cluster.Peer{Name: m.Name, Address: m.Address})
	}
	c, err := j.node.Confirm(request)
	return admin.Confirmation{ServerID: c.ServerID, Empty: c.Empty}, refusal("confirm bootstrap", err)
}

func (j *joiner) Join(ctx context.Context, r admin.Joining) (admin.Joined, error) {
	if err := ofName("join "+r.ID, r.Member); err != nil {
		return admin.Joined{}, err
	}
	if _, _, format := j.state.Identity(); r.Format < format { // it could not read what it would be sent
		return admin.Joined{}, &admin.Refusal{
			Code: admin.Invalid, What: "join " + r.ID,
			Why:    fmt.Sprintf("its release %s knows formats of the record up to %d, and this group's is %d", r.Version, r.Format, format),
			Remedy: "upgrade that member",
		}
	}
	if refusal := j.barred(r); refusal != nil {
		return admin.Joined{}, refusal
	}
	err := j.node.Admit(ctx, cluster.JoinRequest{ServerID: r.ID, Address: r.Address, Last: fsm.Index(r.Last)})
	if err != nil {
		return admin.Joined{}, refusal("join "+r.ID, err)
	}
	group, epoch, _ := j.state.Identity()
	leader, _ := j.node.Leader()
	return admin.Joined{Group: string(group), Epoch: uint64(epoch), Leader: leader.Name}, nil
}

// barred refuses a server of a member that an operator removed, unless it was added since. One that belonged before is told
// by Admit that it never will again.
func (j *joiner) barred(r admin.Joining) error {
	if _, removed := j.state.Read().Revoked(fsm.RevokedMembership, r.Name); !removed || r.Last > 0 || j.has(r.ID) {
		return nil
	}
	return &admin.Refusal{
		// All of it is in why: that is what its log tells (clusterError).
		Code: admin.NotReady, What: "join " + r.ID, Why: "an operator removed member " + r.Name + " from the group, and it comes back by `fairlead raft add " +
			r.ID + " " + r.Address + " --api-address " + r.APIAddress + "` alone",
	}
}

// has tells whether a server is in the newest configuration.
func (j *joiner) has(id string) bool {
	return slices.ContainsFunc(j.node.Peers(), func(p cluster.PeerStatus) bool { return p.ID == id })
}

// Report answers with the committed format. What a member says of itself it proposes (report.go), so that it is
// agreed on like everything else.
func (j *joiner) Report(_ context.Context, r admin.Report) (uint32, error) {
	_, _, format := j.state.Identity()
	if j.node.LeadingTerm() == 0 {
		return format, refusal("report of "+r.ID, cluster.ErrNotLeader)
	}
	return format, nil
}

// Remember gives what this member remembers of a server.
func (j *joiner) Remember(server admin.Member) admin.Remembered {
	k := j.node.Remembers(server.ID)
	return admin.Remembered{Term: k.Term, Voted: k.Voted, LastTerm: k.Last.Term, LastIndex: k.Last.Index, HeldTerm: k.Held.Term, HeldIndex: k.Held.Index}
}

// others are the members that a member knows from its configuration, by name.
type others struct {
	clients *admin.Peers
	// apiOf tells where a member's API is, "" if nobody knows.
	apiOf func(name string) string
	names []string
}

// confirm asks another first member on behalf of a founder.
func (o *others) confirm(ctx context.Context, member cluster.Peer, request cluster.ConfirmRequest) (cluster.Confirmation, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	wire := &fairleadv1.ConfirmRequest{Token: request.Token}
	for _, m := range request.Members {
		wire.Members = append(wire.Members, &fairleadv1.FoundingMember{Name: m.Name, Address: m.Address})
	}
	answer, err := o.clients.Client(o.apiOf(member.Name)).Join.Confirm(ctx, wire)
	if err != nil {
		return cluster.Confirmation{}, clusterError(err)
	}
	return cluster.Confirmation{ServerID: answer.GetServerId(), Empty: answer.GetEmpty()}, nil
}

// recall asks a member what it remembers of this one. One of an older release has no such call, and remembers nothing.
func (o *others) recall(self admin.Member) func(context.Context, cluster.Peer) (cluster.Known, error) {
	return func(ctx context.Context, other cluster.Peer) (cluster.Known, error) {
		at := o.apiOf(other.Name)
		if at == "" {
			return cluster.Known{}, fmt.Errorf("the address of the API of %s is not known; list it in members", other.Name)
		}
		answer, err := o.clients.Client(at).Join.Remember(ctx, &fairleadv1.RememberRequest{Name: self.Name, ServerId: self.ID})
		if connect.CodeOf(err) == connect.CodeUnimplemented {
			return cluster.Known{}, nil
		}
		if err != nil {
			return cluster.Known{}, clusterError(err)
		}
		return cluster.Known{
			Term: answer.GetTerm(), Voted: answer.GetVoted(), Last: store.Position{Term: answer.GetLastTerm(), Index: answer.GetLastIndex()},
			Held: store.Position{Term: answer.GetHeldTerm(), Index: answer.GetHeldIndex()},
		}, nil
	}
}

// join asks every other member in turn to be taken in; whoever does not lead hands the request on.
func (o *others) join(self admin.Member, version string) func(context.Context, cluster.JoinRequest) error {
	return func(ctx context.Context, r cluster.JoinRequest) error {
		return o.ask(ctx, self, func(ctx context.Context, c *admin.Client) error {
			_, err := c.Join.Join(ctx, &fairleadv1.JoinRequest{
				Name: self.Name, ServerId: r.ServerID, Address: r.Address, ApiAddress: self.APIAddress,
				Last: uint64(r.Last), Format: fsm.NewestFormat, Version: version,
			})
			return err
		})
	}
}

// ask asks the other members in turn, until one does what is asked or tells what is for good. Otherwise it gives what a member
// answered, if any did: that another one cannot be reached, or knows nobody who leads, says less.
func (o *others) ask(ctx context.Context, self admin.Member, do func(context.Context, *admin.Client) error) error {
	why := cluster.ErrNotReady
	answered := false
	for _, name := range o.names {
		if name == self.Name {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := do(asking, o.clients.Client(o.apiOf(name)))
		cancel()
		if err == nil {
			return nil
		}
		told := clusterError(err)
		if errors.Is(told, cluster.ErrRemoved) || errors.Is(told, cluster.ErrRolledBack) {
			return told
		}
		if says := answers(err); says || !answered {
			why, answered = told, says
		}
	}
	return why
}

// answers tells whether an error is what the leader says of the question, and not why nobody was there to say it.
func answers(err error) bool {
	var r *admin.Refusal
	return errors.As(err, &r) && r.Code != admin.NotLeader && r.Code != admin.Stopped
}
