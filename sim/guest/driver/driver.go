// SPDX-License-Identifier: Apache-2.0

// Package driver is a member's way to the drivers of outside load balancers in a simulated world: a leader.Driver that
// calls the endpoints of sim/balancer.
//
// It knows how a call goes out and what its end says of the outside: only an answer, or a connection that nobody
// accepted, is taken for certain. It tells the world when a call leaves and when its caller has heard enough. It builds
// for guests and natively. Start reading at Driver.Call.
package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/balancer/message"
	"fairlead.io/fairlead/sim/guest/fact"
	"fairlead.io/fairlead/sim/guest/port"
)

// Options is what a Driver is made of. All fields are required.
type Options struct {
	Name  string // of the driver
	URL   string // of its endpoint
	Terms leader.Terms
	HTTP  http.RoundTripper
	// Now is the clock of deadlines.
	Now func() time.Duration
	// Tell lets the world know of a call.
	Tell func(fact.Drive)
}

// Driver calls one driver. Its methods may be called from any goroutine.
type Driver struct{ o Options }

var _ leader.Driver = (*Driver)(nil)

// New makes a Driver.
func New(o Options) *Driver { return &Driver{o} }

// Terms implements leader.Driver.
func (d *Driver) Terms(fsm.Action) leader.Terms { return d.o.Terms }

// Call implements leader.Driver.
func (d *Driver) Call(ctx context.Context, action fsm.Action, r leader.Request) leader.Answer {
	left := r.Deadline - d.o.Now()
	if left <= 0 {
		return leader.Answer{Result: fsm.ResultFailed, Message: "not sent: the deadline has passed"}
	}
	body := bytes.NewReader(message.Encode(request(r, left)))
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, d.o.URL+message.Path(action), body)
	if err != nil {
		return leader.Answer{Result: fsm.ResultFailed, Message: "not sent: " + err.Error()}
	}
	post.Header.Set("Content-Type", "application/json")
	step := stepOf(d.o.Name, action, r)
	step.Phase = "sent"
	d.o.Tell(step)
	answer := d.ask(post)
	step.Phase, step.Result = "heard", heard(answer.Result)
	d.o.Tell(step)
	return answer
}

// stepOf is what the steps of a call have in common.
func stepOf(driver string, action fsm.Action, r leader.Request) fact.Drive {
	s := fact.Drive{
		Driver: driver, Action: action.String(), Balancer: name(r.Balancer), Binding: object(r.Balancer),
		Epoch: uint64(r.Attempt.Epoch), Index: uint64(r.Attempt.Index),
	}
	if b := r.Binding; b != nil {
		s.Address, s.Binding = b.Address, string(b.ID)
	}
	return s
}

func request(r leader.Request, within time.Duration) message.Request {
	out := message.Request{
		Balancer: name(r.Balancer), Object: object(r.Balancer), Info: r.Balancer.Info, Attributes: r.Balancer.Attributes, Attempt: r.Attempt, Within: within,
	}
	if b := r.Binding; b != nil {
		out.Backend = &message.Backend{Binding: string(b.ID), Address: b.Address, Parameters: b.Parameters, Returned: b.Returned}
		if pod := b.Backend; b.Address == "" && pod.Kind == "Pod" { // it stands for generateBackendAddr, which is given the pod
			out.Backend.Pod = net.JoinHostPort(pod.Target, strconv.Itoa(int(pod.Port)))
		}
	}
	return out
}

// name is what everybody outside calls a balancer: what the driver knows it by, or what is asked for.
func name(l *fsm.LoadBalancer) string {
	for _, kv := range append(slices.Clone(l.Info), l.Spec...) {
		return kv.Value
	}
	return ""
}

// object is which object it is about, as long as the record has no identity.
func object(l *fsm.LoadBalancer) string {
	if l.Identity == "" {
		return string(l.ID)
	}
	return ""
}

// ask makes the call. The request is written at once: whoever looked at the deadline just before may do so.
func (d *Driver) ask(r *http.Request) leader.Answer {
	response, err := d.o.HTTP.RoundTrip(r)
	switch {
	case errors.Is(err, port.ErrRefused):
		return leader.Answer{Result: fsm.ResultFailed, Message: err.Error()} // nobody has seen it
	case err != nil:
		return unknown(err)
	}
	defer func() { _ = response.Body.Close() }() // it was read to its end, or nobody waits for it
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return unknown(err)
	}
	if response.StatusCode != http.StatusOK {
		return unknown(fmt.Errorf("the driver answered %d", response.StatusCode))
	}
	return answer(body)
}

// maxAnswer bounds what is read of an answer, bytes.
const maxAnswer = 1 << 20

func unknown(err error) leader.Answer {
	return leader.Answer{Result: fsm.ResultUnknown, Message: err.Error()}
}

func answer(body []byte) leader.Answer {
	var m message.Answer
	if err := json.Unmarshal(body, &m); err != nil {
		return unknown(fmt.Errorf("the driver's answer: %w", err))
	}
	results := map[string]fsm.Result{
		message.Succeeded: fsm.ResultSucceeded, message.Failed: fsm.ResultFailed, message.Running: fsm.ResultRunning,
	}
	result, ok := results[m.Result]
	if !ok {
		return unknown(fmt.Errorf("the driver answered %q", m.Result))
	}
	return leader.Answer{
		Result: result, Message: m.Message, Address: m.Address, Returned: m.Returned, RetryAfter: m.RetryAfter,
		Refused: result == fsm.ResultFailed,
	}
}

// heard is what a caller knows of the outside.
func heard(r fsm.Result) string {
	switch r {
	case fsm.ResultSucceeded:
		return message.Succeeded
	case fsm.ResultRunning:
		return message.Running
	case fsm.ResultUnknown:
		return "lost"
	default:
		return message.Failed
	}
}
