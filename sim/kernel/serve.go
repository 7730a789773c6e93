// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"slices"
	"time"

	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/kernel/message"
	"fairlead.io/fairlead/sim/network"
)

// client is a process that has the kernel open.
type client struct {
	k       *Kernel
	conn    *network.Conn
	decoder message.Decoder
	watches bool
}

// call is a request that waits for its turn.
type call struct {
	from    *client
	request message.Request
}

func (k *Kernel) accept(c *network.Conn) {
	if c.Peer() != k.o.Node || !k.up {
		c.Reset()
		return
	}
	one := &client{k: k, conn: c}
	k.conns = append(k.conns, one)
	c.Handle(one.data, func(bool) {
		c.End()
		k.conns = slices.DeleteFunc(k.conns, func(o *client) bool { return o == one })
		k.queue = slices.DeleteFunc(k.queue, func(o call) bool { return o.from == one })
	})
}

func (c *client) data(b []byte) {
	if !c.k.up {
		c.conn.Reset()
		return
	}
	c.decoder.Add(b)
	for {
		var r message.Request
		ok, err := c.decoder.Next(&r)
		if err != nil {
			c.k.refuse("a frame", err.Error())
			c.conn.Reset()
			return
		}
		if !ok {
			break
		}
		c.k.queue = append(c.k.queue, call{c, r})
	}
	c.k.next()
}

// next does the calls that wait, one after the other, each after the time that it takes now.
func (k *Kernel) next() {
	if k.busy || len(k.queue) == 0 {
		return
	}
	k.busy = true
	k.world.After(k.slow, func() {
		k.busy = false
		if len(k.queue) > 0 { // its process may have ended
			one := k.queue[0]
			k.queue = k.queue[1:]
			one.from.conn.Send(message.Encode(k.do(one)))
		}
		k.next()
	})
}

// do is one system call.
func (k *Kernel) do(c call) message.Answer {
	r := c.request
	if name := k.fails(r); name != "" {
		if r.Sockets != nil {
			k.part(*r.Sockets)
		}
		return message.Answer{Error: name}
	}
	switch {
	case r.Sockets != nil:
		return k.socket(*r.Sockets)
	case r.Tunnel != nil:
		return k.tunnelling(*r.Tunnel, r.Delete, true)
	case r.Dump != nil:
		return k.dump(*r.Dump)
	case r.Watch:
		c.from.watches = true
	case r.Rule != nil:
		return message.Answer{Error: k.setRule(*r.Rule, !r.Delete, true)}
	case r.Route != nil:
		return message.Answer{Error: k.setRoute(*r.Route, r, true)}
	case r.Table != nil:
		return message.Answer{Error: k.transact(r.Table, true)}
	case !r.Flows:
		return message.Answer{Error: k.refuse("a request", "it asks for nothing")}
	}
	return message.Answer{Boot: k.boot}
}

// invalid is the errno of calls that make no sense.
const invalid = "EINVAL"

// refuse publishes that a process asked for what no process should.
func (k *Kernel) refuse(what, why string) string {
	k.world.Publish(event.Refused{Model: "kernel of " + k.o.Node, By: k.o.Node, What: what, Why: why})
	return invalid
}

// tell lets watchers know of a change.
func (k *Kernel) tell(e message.Event) {
	for _, c := range k.conns {
		if c.watches {
			c.conn.Send(message.Encode(message.Answer{Event: &e}))
		}
	}
}

// Slow makes each call take a while longer, until the function that it returns is called.
func (k *Kernel) Slow(d time.Duration) (heal func()) {
	k.slow += d
	return func() { k.slow -= d }
}
