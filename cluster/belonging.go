// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// JoinRequest is what a member says of itself when it asks to belong to the group.
type JoinRequest struct {
	ServerID string
	Address  string
	Last     Index // newest index that it holds, 0 for a new server
}

const (
	// keepEvery is how often a member looks whether it still belongs.
	keepEvery = 250 * time.Millisecond
	// lonelyBeats is for how many heartbeat timeouts a member that belongs hears nothing before it asks whether it
	// still does.
	lonelyBeats = 20
)

// runBelonging gets this member into a group, and notices when it is no longer part of one: the library tells a
// removed server nothing.
func (n *Node) runBelonging(ctx context.Context) {
	founding := n.o.Bootstrap != nil && n.o.Bootstrap.founder() == n.o.Name && n.found.Empty()
	begin, asked := time.Now(), time.Time{}
	lonelyAfter := lonelyBeats * n.o.Tuning.Heartbeat
	for {
		if n.fsm.removed() {
			n.fail(ErrRemoved)
			return
		}
		member := inConfiguration(n.raft.GetConfiguration().Configuration(), n.id)
		switch {
		case member:
			founding = false
			n.obstacle.Store(nil)
			heard := n.Contact().At
			if heard.Before(begin) {
				heard = begin
			}
			if time.Since(heard) > lonelyAfter && time.Since(asked) > lonelyAfter {
				n.askToJoin(ctx)
				asked = time.Now()
			}
		case founding:
			done, err := n.tryFound(ctx)
			if err != nil && ctx.Err() == nil {
				n.obstructed(err)
				n.complain("group not founded yet", err)
			}
			founding = !done
		case time.Since(asked) > retryAfter:
			n.askToJoin(ctx)
			asked = time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(keepEvery):
		}
	}
}

// former tells whether this server belonged to the group and does not any more: the newest configuration that it knows lacks it, or
// the leader told it so.
func (n *Node) former() bool {
	select {
	case <-n.failed:
		if errors.Is(n.failure, ErrRemoved) {
			return true
		}
	default:
	}
	return n.fsm.belongedBefore(n.raft.GetConfiguration().Configuration())
}

// askToJoin asks whoever leads to take this member in. What cannot be mended by asking again ends the member.
func (n *Node) askToJoin(ctx context.Context) {
	if n.o.Join == nil || n.raft.State() == raft.Leader {
		return
	}
	err := n.o.Join(ctx, JoinRequest{
		ServerID: string(n.id), Address: string(n.o.Transport.LocalAddr()), Last: Index(n.raft.LastIndex()),
	})
	switch {
	case err == nil:
	case errors.Is(err, ErrRemoved), errors.Is(err, ErrRolledBack):
		n.fail(err)
	default:
		if ctx.Err() == nil {
			n.obstructed(err)
			n.complain("not joined yet", err)
		}
	}
}

// obstructed keeps what was in the way, for those who ask why there is no group.
func (n *Node) obstructed(err error) {
	text := err.Error()
	n.obstacle.Store(&text)
}

// complain logs what is tried again and again, as often as a person wants to read it.
func (n *Node) complain(msg string, err error) {
	if _, ok := n.calm.say(msg); ok {
		n.log.Warn(msg, "server", n.id, "error", err)
	}
}

// Admit takes a server in, as the leader's end of Options.Join. A new server becomes a non-voter, to be promoted once
// it caught up; the former instance of the same member is removed first, because a configuration holds no address
// twice and because a lost server only weakens the quorum. A server that belongs already is told so, and its address
// is brought up to date.
//
// Errors: ErrNotLeader; ErrRemoved or ErrRolledBack for a server that can never belong again; ErrNotReady while the
// former instance still answers, or while removing it would leave the group without a quorum.
func (n *Node) Admit(ctx context.Context, r JoinRequest) error {
	if n.LeadingTerm() == 0 {
		return fmt.Errorf("admit %s: %w", r.ServerID, ErrNotLeader)
	}
	n.admitting <- struct{}{}
	defer func() { <-n.admitting }()
	id, address := raft.ServerID(r.ServerID), raft.ServerAddress(r.Address)
	// By itself what it says shows nothing: a request may be a minute old by the time that it gets here.
	if n.seen.distrusted(id) != "" && uint64(r.Last) < n.seen.memory.of(id).Last.Index {
		return fmt.Errorf("admit %s: %w", id, ErrRolledBack)
	}
	servers := n.raft.GetConfiguration().Configuration().Servers
	for _, s := range servers {
		if s.ID == id {
			return n.leaderError("new address", n.readdress(ctx, s.ID, address))
		}
	}
	if r.Last > 0 {
		// What the server hears is for good, and the newest configuration may come to nothing: it has to be committed.
		if err := n.Barrier(ctx); err != nil {
			return fmt.Errorf("admit %s: %w", id, err)
		}
		return fmt.Errorf("admit %s: %w", id, ErrRemoved)
	}
	for _, s := range servers {
		if NameOf(string(s.ID)) == NameOf(r.ServerID) {
			if err := n.retire(ctx, s); err != nil {
				return fmt.Errorf("admit %s: %w", id, err)
			}
		} else if s.Address == address {
			return fmt.Errorf("admit %s: its address %s belongs to %s; give it another one or remove that server: %w",
				id, address, s.ID, ErrNotReady)
		}
	}
	n.log.Info("server joins", "server", id, "address", address)
	return n.Add(ctx, r.ServerID, r.Address)
}

// readdress brings the address of a member up to date.
func (n *Node) readdress(ctx context.Context, id raft.ServerID, address raft.ServerAddress) error {
	s, at, err := n.look(string(id))
	switch {
	case err != nil || s.Address == address:
		return err
	case s.Suffrage == raft.Voter:
		return n.await(ctx, n.raft.AddVoter(s.ID, address, at, changeTimeout))
	default:
		return n.await(ctx, n.raft.AddNonvoter(s.ID, address, at, changeTimeout))
	}
}

// retire removes a former instance of a member.
func (n *Node) retire(ctx context.Context, s raft.Server) error {
	if n.answers(s.ID) {
		return fmt.Errorf("%w: its former instance %s still answers; stop that one first", ErrNotReady, s.ID)
	}
	if err := n.Remove(ctx, string(s.ID), false); err != nil {
		return err
	}
	n.log.Info("former instance removed", "server", s.ID)
	return nil
}

// answers tells whether a server answered this leader lately.
func (n *Node) answers(id raft.ServerID) bool {
	if id == n.id {
		return true
	}
	p, ok := n.seen.seen(id, n.raft.CurrentTerm())
	return ok && time.Since(p.at) < n.lately()
}

// lately is for how long an answer says that a server is there.
func (n *Node) lately() time.Duration { return 3 * n.o.Tuning.Heartbeat }

// expel takes a server out whose disk is an older one: what was committed with its help may stand on fewer disks than it should, and its next
// vote could go to a leader that lacks it. It is called on goroutines of the library, which must not wait for a change of membership.
func (n *Node) expel(id raft.ServerID, why string) {
	n.metrics.expelled.Inc()
	n.log.Error("server "+string(id)+" "+why, "server", id)
	n.expelling(id)
}

// expelling has a server removed that is not counted any more. It is asked for again for as long as that one is a member.
func (n *Node) expelling(id raft.ServerID) {
	go func() {
		if err := n.removeOlder(id); err != nil {
			n.complain("server with a disk that was rolled back is not removed", err)
		}
	}()
}

// removeOlder removes a server with an older disk, if this member leads and changes nothing else.
func (n *Node) removeOlder(id raft.ServerID) error {
	select {
	case n.admitting <- struct{}{}:
		defer func() { <-n.admitting }()
	default:
		return nil
	}
	if n.raft.State() != raft.Leader || !inConfiguration(n.raft.GetConfiguration().Configuration(), id) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), changeTimeout)
	defer cancel()
	return n.Remove(ctx, string(id), false)
}

func inConfiguration(c raft.Configuration, id raft.ServerID) bool {
	for _, s := range c.Servers {
		if s.ID == id {
			return true
		}
	}
	return false
}
