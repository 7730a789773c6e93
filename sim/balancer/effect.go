// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/balancer/message"
	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
)

// BackendKey is the parameter by which a backend is known to a driver that is asked for its address.
const BackendKey = "backend"

// TokenKey is what a driver returns of what it put on a balancer, and wants to hear when it is to take it off.
const TokenKey = "token"

// carryOut does what a call asks for, now, and gives what there is to answer.
func (d *Driver) carryOut(c *call) message.Answer {
	b := d.balancers[c.Balancer]
	switch c.action {
	case fsm.ActionAddress:
		return addressOf(c.Backend)
	case fsm.ActionEnsureBalancer:
		d.publish(c, "effect", "")
		b.made, b.ever = true, true
	case fsm.ActionCreateBalancer:
		d.publish(c, "effect", "")
		b.made, b.ever = true, true
		return message.Answer{Result: message.Succeeded, Returned: Info(c.Balancer)}
	case fsm.ActionDeleteBalancer:
		return d.end(b, c)
	case fsm.ActionEnsure:
		answer := d.put(b, c)
		if c.whole && answer.Result == message.Succeeded {
			d.clear(b, c)
		}
		return answer
	case fsm.ActionDeregister:
		d.take(b, c)
	}
	return message.Answer{Result: message.Succeeded}
}

// end deletes a balancer. Who does not know yet what it is means what its Spec says, whoever else asked for that.
func (d *Driver) end(b *held, c *call) message.Answer {
	for _, e := range d.Entries(c.Balancer) {
		if e.Ours {
			return failed(e.Address + " is on it")
		}
	}
	d.publish(c, "effect", "")
	b.made = false
	return message.Answer{Result: message.Succeeded}
}

func failed(why string) message.Answer { return message.Answer{Result: message.Failed, Message: why} }

func addressOf(b *message.Backend) message.Answer {
	if b.Pod != "" {
		return message.Answer{Result: message.Succeeded, Address: b.Pod}
	}
	for _, p := range b.Parameters {
		if p.Key == BackendKey && p.Value != "" {
			return message.Answer{Result: message.Succeeded, Address: p.Value}
		}
	}
	return failed("there is no such backend")
}

// put puts a backend on a balancer.
func (d *Driver) put(b *held, c *call) message.Answer {
	if !b.made {
		return failed("the balancer was deleted")
	}
	address := c.Backend.Address
	was, there := b.entries[address]
	if there && !was.Ours {
		return failed("somebody else put " + address + " there")
	}
	d.publish(c, "effect", "")
	b.entries[address] = Entry{
		Address: address, Ours: true, Binding: c.Backend.Binding, Parameters: c.Backend.Parameters, Attempt: c.Attempt,
	}
	if !there {
		d.w.Publish(event.Entry{Balancer: c.Balancer, Address: address, Owner: ours, Present: true, By: byDriver})
	}
	return message.Answer{Result: message.Succeeded, Returned: []fsm.KV{{Key: TokenKey, Value: address}}}
}

// clear takes everything off a balancer that a call which sets the whole of it does not name.
func (d *Driver) clear(b *held, c *call) {
	for _, e := range d.Entries(c.Balancer) {
		if slices.Contains(c.All, e.Address) {
			continue
		}
		if !e.Ours {
			d.w.Publish(event.Foreign{Where: c.Balancer + " " + e.Address, By: c.from, What: "taken off by a call that sets the whole balancer"})
		}
		delete(b.entries, e.Address)
		d.w.Publish(event.Entry{Balancer: c.Balancer, Address: e.Address, Owner: e.owner(), By: byDriver})
	}
}

// take takes a backend off a balancer, if it is ours.
func (d *Driver) take(b *held, c *call) {
	d.publish(c, "effect", "")
	address := c.Backend.Address
	if !b.entries[address].Ours {
		return
	}
	delete(b.entries, address)
	d.w.Publish(event.Entry{Balancer: c.Balancer, Address: address, Owner: ours, By: byDriver})
}

// job is what a driver is at for longer than a call lasts. One that is asked for the contrary drops it.
type job struct {
	call  *call
	timer *engine.Timer
}

// soonest is when a driver wants to be asked again at the earliest.
const soonest = 200 * time.Millisecond

// running is the answer as long as the job lasts.
func (j *job) running(now time.Duration) message.Answer {
	return message.Answer{
		Result: message.Running, Message: "it is being done", RetryAfter: max(soonest, (j.timer.When()-now)/2),
	}
}

// begin begins a job that takes a while.
func (d *Driver) begin(c *call, takes time.Duration) *job {
	j := &job{call: c}
	j.timer = d.w.After(d.inTime(c, takes), func() {
		delete(d.jobs, c.subject)
		d.carryOut(j.call)
	})
	d.jobs[c.subject] = j
	return j
}
