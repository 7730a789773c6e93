// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"encoding/json"
	"fmt"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/balancer"
	"fairlead.io/fairlead/sim/balancer/message"
	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/network"
	"fairlead.io/fairlead/sim/network/head"
	"fairlead.io/fairlead/sim/network/httpd"
)

// bench is a driver d1 with two balancers, and a member m1 that calls it.
type bench struct {
	*balancer.Driver
	w       *engine.World
	n       *network.Network
	heard   []event.Stamped // all but messages
	attempt fsm.Index
}

// settle is what members believe of the driver, and within how long they wait for an answer.
const (
	settle = 4 * time.Second
	within = 3 * time.Second
)

func newBench(seed uint64) *bench {
	b := &bench{w: engine.New(seed)}
	b.n = network.New(b.w, network.Options{})
	b.w.Hear(func(e event.Stamped) {
		if _, ok := e.Event.(event.Message); !ok {
			b.heard = append(b.heard, e)
		}
	})
	b.Driver = balancer.New(b.w, b.n, balancer.Options{Driver: "d1", Balancers: []string{"lb1", "lb2"}, Settle: settle})
	return b
}

// ask makes a call with the next attempt, and tells how it ended for its caller.
func (b *bench) ask(a fsm.Action, m message.Request, then func(status int, answer message.Answer, err error)) {
	if m.Attempt.IsZero() && a != fsm.ActionAddress {
		b.attempt++
		m.Attempt = fsm.Revision{Epoch: 1, Index: b.attempt}
	}
	if m.Within == 0 {
		m.Within = within
	}
	h := head.Request{Method: "POST", Target: message.Path(a)}
	httpd.Call(b.w, b.n, "m1", b.Machine(), start.DriverPort, h, message.Encode(m), m.Within, func(r httpd.Response, err error) {
		var answer message.Answer
		if err == nil && r.Status == 200 {
			err = json.Unmarshal(r.Body, &answer)
		}
		then(r.Status, answer, err)
	})
}

// wait lets time pass.
func (b *bench) wait(d time.Duration) {
	if err := b.w.Run(b.w.Now() + d); err != nil {
		panic(err)
	}
}

func about(name, binding, address string) message.Request {
	return message.Request{Balancer: name, Info: balancer.Info(name), Backend: &message.Backend{Binding: binding, Address: address}}
}

// line writes what an event says of balancers, if it does.
func line(e event.Stamped) string {
	switch x := e.Event.(type) {
	case event.Drive:
		return fmt.Sprintf("%s %s %s %s %s", x.Phase, x.Action, x.Binding, x.Address, x.Result)
	case event.Entry:
		there := "is gone"
		if x.Present {
			there = "is there"
		}
		return fmt.Sprintf("%s of %s %s, by %s", x.Address, x.Owner, there, x.By)
	case event.Refused:
		return "refused: " + x.Why
	}
	return ""
}
