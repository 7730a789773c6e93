// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/compare"
	"fairlead.io/fairlead/fsm"
)

const (
	// detachWithin bounds how long a member takes to leave its BGP sessions for a while.
	detachWithin = 3 * time.Second
	// leaveWithin bounds how long one that was removed takes to withdraw its paths and to tell the group.
	leaveWithin = 10 * time.Second
)

// leave is what a member owes that ends, for why. As a rule it comes back, and switches keep its paths meanwhile. One that
// the group has removed never does: it withdraws everything, and tells the group, which otherwise waits until no switch can
// hold a path of it. One whose record is another one than the group's withdraws everything, too.
func (m *Member) leave(ctx context.Context, why error) {
	switch {
	case errors.Is(why, cluster.ErrRemoved):
		m.leaveForGood(ctx)
	case errors.Is(why, compare.ErrDiffers):
		m.leaveDiffering(ctx, why)
	case m.speaker != nil:
		m.detach(ctx)
	}
}

func (m *Member) leaveForGood(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaveWithin)
	defer cancel()
	err := m.withdraw(ctx)
	// Before the group forgets this server, the folder must know: it would announce again what it announced last.
	if folderErr := m.folder.SetRemoved(true); folderErr != nil {
		err = errors.Join(err, folderErr)
	}
	if err == nil {
		err = m.others.leave(ctx, m.self)
	}
	if err != nil {
		m.log.Warn("group not told that this server has left", "server", m.self.ID, "err", err)
	}
}

// leaveDiffering is what a member owes whose record is not the group's: what it announces may be wrong, and it does not come back by itself.
func (m *Member) leaveDiffering(ctx context.Context, why error) {
	ctx, cancel := context.WithTimeout(ctx, leaveWithin)
	defer cancel()
	var differs *compare.DiffersError
	if errors.As(why, &differs) {
		if err := m.folder.SetDiffers(differs.Found); err != nil {
			m.log.Error("data folder does not remember that its record is not the group's", "err", err)
		}
	}
	if err := m.withdraw(ctx); err != nil {
		m.log.Warn("paths not withdrawn in order", "err", err)
	}
}

// withdraw takes all paths of this member off the switches, and leaves them.
func (m *Member) withdraw(ctx context.Context) error {
	if m.speaker == nil {
		return nil
	}
	err := m.announcer.Leave(ctx)
	if drainErr := m.speaker.Drain(ctx); drainErr != nil {
		err = errors.Join(err, drainErr)
	}
	return err
}

func (m *Member) detach(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, detachWithin)
	defer cancel()
	if err := m.speaker.Detach(ctx); err != nil {
		m.log.Warn("BGP sessions not left in order", "err", err)
	}
}

// leave tells the leader, through whoever answers, that a removed server is on no switch any more.
func (o *others) leave(ctx context.Context, self admin.Member) error {
	return o.ask(ctx, self, func(ctx context.Context, c *admin.Client) error {
		_, err := c.Join.Leave(ctx, &fairleadv1.LeaveRequest{Name: self.Name, ServerId: self.ID})
		return err
	})
}

// Leave implements admin.Joiner: the leader forgets the server.
func (j *joiner) Leave(ctx context.Context, server admin.Member) error {
	what := "let " + server.ID + " leave"
	if err := ofName(what, server); err != nil {
		return err
	}
	if j.node.LeadingTerm() == 0 {
		return refusal(what, cluster.ErrNotLeader)
	}
	if j.has(server.ID) {
		return &admin.Refusal{Code: admin.Invalid, What: what, Why: "it belongs to the group", Remedy: "remove it first: `fairlead raft remove`"}
	}
	return propose(ctx, j.node, admin.Change{Actor: "member/" + server.Name, Reason: "removed, and on no switch any more"}, what,
		&fsm.RemoveMember{Server: fsm.ServerID(server.ID)})
}

// ofName refuses a server that is not the caller's: the name is the certificate's.
func ofName(what string, server admin.Member) error {
	if cluster.NameOf(server.ID) == server.Name {
		return nil
	}
	return &admin.Refusal{
		Code: admin.Forbidden, What: what, Why: fmt.Sprintf("the server id is not one of member %s", server.Name),
		Remedy: "give the member a certificate of its own name",
	}
}
