// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/store"
)

// Bootstrap is the explicit wish to make a new group. Every listed member gets the same one. The member whose name
// sorts first makes the group, once all others confirmed that they are empty and want the same; if any of them is
// not, there is a group already and it asks to join that one instead. Leaving it configured later is harmless.
type Bootstrap struct {
	Token   string
	Members []Peer // names and addresses of all first members, this one too; server ids are found out
	// Confirm asks another member for its Node.Confirm.
	Confirm func(ctx context.Context, member Peer, request ConfirmRequest) (Confirmation, error)
}

// ConfirmRequest is what the founding member asks the others.
type ConfirmRequest struct {
	Token   string
	Members []Peer
}

// Confirmation is a member's answer.
type Confirmation struct {
	ServerID string
	Empty    bool // nothing was ever kept there
}

// ErrBootstrapMismatch says that two members were told to found different groups.
var ErrBootstrapMismatch = errors.New("token or list of members differ; give every first member the same ones")

// retryAfter is how long to wait between attempts to found or join a group.
const retryAfter = 250 * time.Millisecond

func (b *Bootstrap) validate(self, address string) error {
	names := map[string]bool{}
	for _, m := range b.Members {
		if m.Name == "" || m.Address == "" {
			return fmt.Errorf("bootstrap: member %q at %q needs a name and an address", m.Name, m.Address)
		}
		if names[m.Name] {
			return fmt.Errorf("bootstrap: member %s is listed twice", m.Name)
		}
		if m.Name == self && m.Address != address {
			return fmt.Errorf("bootstrap: this member, %s, is listed at %s and reachable at %s; make them the same", self, m.Address, address)
		}
		names[m.Name] = true
	}
	switch {
	case b.Token == "":
		return errors.New("bootstrap: no token; draw one and give it to every first member")
	case !names[self]:
		return fmt.Errorf("bootstrap: this member, %s, is not in the list", self)
	case len(names) > 1 && b.Confirm == nil:
		return errors.New("bootstrap: no way to ask the other members")
	}
	return nil
}

func (b *Bootstrap) request() ConfirmRequest {
	members := make([]Peer, 0, len(b.Members))
	for _, m := range b.Members {
		members = append(members, Peer{Name: m.Name, Address: m.Address})
	}
	slices.SortStableFunc(members, func(x, y Peer) int { return cmp.Compare(x.Name, y.Name) })
	return ConfirmRequest{Token: b.Token, Members: members}
}

// founder is the member that makes the group.
func (b *Bootstrap) founder() string { return b.request().Members[0].Name }

// Confirm is this member's answer to a founder. A member that holds anything says so, whatever it was asked; an empty
// one confirms only what it was told itself.
//
// Errors: ErrBootstrapMismatch.
func (n *Node) Confirm(request ConfirmRequest) (Confirmation, error) {
	answer := Confirmation{ServerID: string(n.id), Empty: n.raft.LastIndex() == 0}
	if !answer.Empty {
		return answer, nil
	}
	if n.o.Bootstrap == nil {
		return Confirmation{}, fmt.Errorf("confirm bootstrap: member %s was given no token: %w", n.o.Name, ErrBootstrapMismatch)
	}
	mine := n.o.Bootstrap.request()
	if subtle.ConstantTimeCompare([]byte(mine.Token), []byte(request.Token)) != 1 || !slices.Equal(mine.Members, request.Members) {
		return Confirmation{}, fmt.Errorf("confirm bootstrap: member %s: %w", n.o.Name, ErrBootstrapMismatch)
	}
	return answer, nil
}

// tryFound makes the group if this member is to, and everybody else confirms. It tells whether there is anything left to
// try: not when the group is made, or another one was found.
func (n *Node) tryFound(ctx context.Context) (done bool, err error) {
	configuration, exists, err := n.askFirstMembers(ctx)
	if exists || err != nil {
		return exists, err
	}
	err = n.await(ctx, n.raft.BootstrapCluster(configuration))
	if errors.Is(err, raft.ErrCantBootstrap) {
		return true, nil // a leader came first
	}
	if err != nil {
		return false, fmt.Errorf("bootstrap: %w", err)
	}
	n.log.Info("group founded", "server", n.id, "members", len(configuration.Servers))
	return true, nil
}

// askFirstMembers asks every other first member whether it is empty, and gives the group that they would be. One that holds
// something says that there is a group, whatever the others answer, or whether they do: a group lives on a majority.
func (n *Node) askFirstMembers(ctx context.Context) (group raft.Configuration, exists bool, err error) {
	b := n.o.Bootstrap
	request := b.request()
	for _, m := range request.Members {
		id := string(n.id)
		if m.Name != n.o.Name {
			c, problem := b.Confirm(ctx, m, request)
			switch {
			case problem != nil:
				err = cmp.Or(err, fmt.Errorf("bootstrap: ask %s at %s: %w", m.Name, m.Address, problem))
			case !c.Empty:
				n.log.Info("group exists, asking to join it", "member", m.Name)
				return raft.Configuration{}, true, nil
			case NameOf(c.ServerID) != m.Name:
				err = cmp.Or(err, fmt.Errorf("bootstrap: %s answers at %s where %s was expected", c.ServerID, m.Address, m.Name))
			}
			id = c.ServerID
		}
		group.Servers = append(group.Servers, raft.Server{
			Suffrage: raft.Voter, ID: raft.ServerID(id), Address: raft.ServerAddress(m.Address),
		})
	}
	return group, false, err
}

// undoHalfBootstrap makes a folder empty again whose bootstrap was interrupted between keeping its first term and
// writing its first entry. Nothing but a bootstrap keeps term 1: an election begins with term 2.
func (n *Node) undoHalfBootstrap() error {
	if !n.found.Empty() || n.found.Term != 1 {
		return nil
	}
	voted, err := n.stores.Stable.GetUint64([]byte("LastVoteTerm"))
	if err != nil && !store.NotFound(err) {
		return err
	}
	if voted > 0 {
		return nil
	}
	n.found.Term = 0
	return n.stores.Stable.SetUint64([]byte("CurrentTerm"), 0)
}
