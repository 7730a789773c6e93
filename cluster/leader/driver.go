// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"context"
	"time"

	"fairlead.io/fairlead/fsm"
)

// Driver calls the webhooks of one kind of outside load balancer. Its methods may be called from any goroutine.
type Driver interface {
	// Terms are what calls for an action keep to.
	Terms(a fsm.Action) Terms
	// Call does one thing outside. It looks at r.Deadline just before it writes the request, and answers
	// ResultFailed without writing it when that has passed. It returns soon after ctx has ended. ResultFailed and
	// ResultSucceeded are claims about the outside; whoever cannot be sure answers ResultUnknown.
	Call(ctx context.Context, a fsm.Action, r Request) Answer
}

// Silencer is a Driver that knows when its program does not answer. Such a driver gets one call at a time.
type Silencer interface {
	// Silence is why the driver is left alone at present; nil if it is not.
	Silence() error
}

// Terms are what calls to a driver keep to. Zero fields take their default.
type Terms struct {
	// Timeout is the whole budget of a call, from before its attempt is proposed. Default 10 s.
	Timeout time.Duration
	// Settle is how long after its end a call of unknown outcome may still take effect. Default: Timeout.
	Settle time.Duration
	// Concurrent is how many calls to the driver may be in flight at once, whatever for. Default DefaultConcurrent.
	Concurrent int
}

// DefaultConcurrent is how many calls to one driver may be in flight at once: as many as its client lets through
// (dataplane/driver), where it is told why.
const DefaultConcurrent = 64

func (t Terms) withDefaults() Terms {
	t.Timeout = cmp.Or(t.Timeout, 10*time.Second)
	t.Settle = cmp.Or(t.Settle, t.Timeout)
	t.Concurrent = cmp.Or(t.Concurrent, DefaultConcurrent)
	return t
}

// longestSettle is how long any call to a driver may still take effect: which of them an unknown outcome was of is not
// always known.
func longestSettle(d Driver) time.Duration {
	var longest time.Duration
	for a := fsm.ActionAddress; a <= fsm.ActionCreateBalancer; a++ {
		if a != fsm.ActionAddress { // which changes nothing outside
			longest = max(longest, d.Terms(a).withDefaults().Settle)
		}
	}
	return longest
}

// Request is what a call is about. What it refers to belongs to the record and must not be changed.
type Request struct {
	Balancer *fsm.LoadBalancer
	Binding  *fsm.Binding // nil for calls about the balancer itself
	// Attempt is the committed attempt: the idempotency key of the call, and newer than that of any call before.
	Attempt fsm.Revision
	// Deadline is the reading of Config.Clock after which nothing of the request may be written any more.
	Deadline time.Duration
	// DryRun asks what the call would do: nothing may be changed, and a driver that cannot tell is not called. There is no Attempt.
	DryRun bool
}

// Answer is how a call ended.
type Answer struct {
	Result  fsm.Result
	Message string
	Address string // of a successful ActionAddress
	// Returned is what calls to come shall carry; of a successful ActionCreateBalancer, the balancer's identity.
	Returned []fsm.KV
	// Refused tells of ResultFailed that the driver itself said no.
	Refused bool
	// RetryAfter is the driver's own word on when to ask again; zero if it has none.
	RetryAfter time.Duration
	// Held tells of ResultFailed that the driver was not asked because it does not answer, or is full: nobody asks it
	// anything before RetryAfter, and it is no failure of what the call was about.
	Held bool
}

// hint is what of an answer's RetryAfter is the driver's word.
func (a Answer) hint() time.Duration {
	if a.Held || a.Result != fsm.ResultFailed && a.Result != fsm.ResultRunning {
		return 0
	}
	return a.RetryAfter
}
