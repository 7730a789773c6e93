// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"

	"connectrpc.com/connect"
)

// onLeader runs a request where it can be done: here, and if this member does not lead, on the one that does.
// A request that was handed to us is not handed on again: two members that take each other for the leader
// would play it back and forth.
type onLeader struct {
	group Group
	peers *Peers
}

func lead[T any](ctx context.Context, l onLeader, what string,
	here func(context.Context, Caller) (T, error), there func(context.Context, *Client) (T, error),
) (T, error) {
	caller, _ := CallerFrom(ctx)
	result, err := here(ctx, caller)
	if !errors.Is(err, NotLeader) {
		return result, err
	}
	client, refusal := l.client(caller, what)
	if refusal != nil {
		return result, refusal
	}
	result, err = there(forwarding(ctx, l.group.Self().Name, caller), client)
	return result, handedOn(what, err)
}

// handedOn says for whom the leader did not answer what an error of the way there means.
func handedOn(what string, err error) error {
	var refusal *Refusal
	if err == nil || errors.As(err, &refusal) || connect.IsWireError(err) {
		return err
	}
	if errors.Is(err, Unreachable) {
		return &Refusal{
			Code: Unreachable, What: what, Why: "hand on to the leader: " + err.Error(),
			Remedy: "try again in a moment, or ask another member",
		}
	}
	return &Refusal{
		Code: UnknownOutcome, What: what, Why: "the leader did not answer: " + err.Error(),
		Remedy: "it may be done: look with `fairlead raft status` before you try again",
	}
}

// client gives the way to the leader, if there is one and the request may take it.
func (l onLeader) client(caller Caller, what string) (*Client, *Refusal) {
	leader, ok := l.group.Leader()
	refusal := &Refusal{
		Code: NotLeader, What: what, Leader: leader.Name,
		Remedy: "try again in a moment; `fairlead raft status` tells more if it stays so",
	}
	self := l.group.Self()
	switch {
	case !ok:
		refusal.Why, refusal.Remedy = l.group.Leaderless().Tell()
	case caller.ForwardedBy != "":
		refusal.Why = caller.ForwardedBy + " took " + self.Name + " for the leader, which it is not"
	case leader.ID == self.ID:
		refusal.Why = self.Name + " is about to lead, or just ceased to"
	case leader.APIAddress == "":
		refusal.Why = "the API address of the leader " + leader.Name + " is not known"
	default:
		return l.peers.Client(leader.APIAddress), nil
	}
	return nil, refusal
}
