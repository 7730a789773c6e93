// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"time"

	"fairlead.io/fairlead/fsm"
)

// Driver calls the webhook of one kind of outside load balancer. Its methods may be called from any goroutine.
type Driver interface {
	// Terms are what calls to the driver keep to.
	Terms() Terms
	// Call does one thing outside. It looks at r.Deadline just before it writes the request, and answers
	// ResultFailed without writing it when that has passed. It returns soon after ctx has ended. ResultFailed and
	// ResultSucceeded are claims about the outside; whoever cannot be sure answers ResultUnknown.
	Call(ctx context.Context, action fsm.Action, r Request) Answer
}

// Terms are what calls to a driver keep to. Zero fields take their default.
type Terms struct {
	// Timeout is the whole budget of a call, from before its attempt is proposed. Default 10 s.
	Timeout time.Duration
	// Settle is how long after its end a call of unknown outcome may still take effect. Default: Timeout.
	Settle time.Duration
	// Concurrent is how many calls may be in flight at once. Default 16.
	Concurrent int
}

func (t Terms) withDefaults() Terms {
	if t.Timeout == 0 {
		t.Timeout = 10 * time.Second
	}
	if t.Settle == 0 {
		t.Settle = t.Timeout
	}
	if t.Concurrent == 0 {
		t.Concurrent = 16
	}
	return t
}

// Request is what a call is about. What it refers to belongs to the record and must not be changed.
type Request struct {
	Balancer *fsm.LoadBalancer
	Binding  *fsm.Binding // nil for calls about the balancer itself
	// Attempt is the committed attempt: the idempotency key of the call, and newer than that of any call before.
	Attempt fsm.Revision
	// Deadline is the reading of Config.Clock after which nothing of the request may be written any more.
	Deadline time.Duration
}

// Answer is how a call ended.
type Answer struct {
	Result   fsm.Result
	Message  string
	Address  string   // of a successful ActionAddress
	Returned []fsm.KV // what calls to come shall carry
	// RetryAfter is the driver's own word on when to ask again; zero if it has none.
	RetryAfter time.Duration
}
