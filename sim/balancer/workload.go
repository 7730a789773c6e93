// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/engine"
)

// Writer has commands committed, in order; *client.Hand is one.
type Writer interface {
	Do(key string, c fsm.Command, then func(fsm.Outcome))
}

// Workload is what users want to be on outside load balancers, written to the record as a planner of theirs would.
type Workload struct {
	w       *engine.World
	writer  Writer
	drivers []*Driver
	random  *rand.Rand
	wanted  map[fsm.BindingID]Backend
	made    int // backends that Act made
}

// Backend is what is to be bound: a pod, on a balancer.
type Backend struct {
	Binding  fsm.BindingID
	Balancer string
	Address  string
	// Asked has the driver be asked for the address, as if nobody here knew it.
	Asked  bool
	Weight int
}

// NewWorkload makes a Workload over some drivers, whose balancers it brings into the record.
func NewWorkload(w *engine.World, writer Writer, drivers []*Driver) *Workload {
	l := &Workload{
		w: w, writer: writer, drivers: drivers, random: w.Random("workload/bindings"), wanted: map[fsm.BindingID]Backend{},
	}
	for _, d := range drivers {
		for _, b := range d.Balancers() {
			l.Balance(b, 60)
		}
	}
	return l
}

// Balance brings a balancer into the record, or asks for it with other attributes: a time, in seconds, after which it
// shall end idle flows.
func (l *Workload) Balance(id string, idle int) {
	for _, d := range l.drivers {
		if slices.Contains(d.Balancers(), id) {
			l.writer.Do(id, &fsm.PutLoadBalancer{
				ID: fsm.BalancerID(id), Driver: d.Name(), Info: []fsm.KV{{Key: "id", Value: id}},
				Attributes: []fsm.KV{{Key: "idle", Value: strconv.Itoa(idle)}},
			}, nil)
		}
	}
}

// Wanted lists the bindings that are wanted, in order.
func (l *Workload) Wanted() []fsm.BindingID { return slices.Sorted(maps.Keys(l.wanted)) }

// Bind wants a backend, or changes what is wanted of it. A binding keeps its balancer and its address.
func (l *Workload) Bind(b Backend) {
	l.wanted[b.Binding] = b
	c := &fsm.PutBinding{
		ID: b.Binding, Balancer: fsm.BalancerID(b.Balancer), Owner: "Pod/default/" + string(b.Binding), Address: b.Address,
		Parameters: []fsm.KV{{Key: BackendKey, Value: b.Address}, {Key: "weight", Value: strconv.Itoa(b.Weight)}},
	}
	if b.Asked {
		c.Address = ""
	}
	l.writer.Do(string(b.Binding), c, func(o fsm.Outcome) {
		if o.Reject == fsm.RejectNotFound { // the record was restored from before the balancer
			l.Balance(b.Balancer, 60)
		}
		if o.Reject == fsm.RejectNotFound || o.Reject == fsm.RejectOperationOpen {
			l.later(func() {
				if is, ok := l.wanted[b.Binding]; ok && is == b {
					l.Bind(b)
				}
			})
		}
	})
}

// Change gives a wanted backend another weight. It tells whether it is wanted.
func (l *Workload) Change(id fsm.BindingID, weight int) bool {
	b, ok := l.wanted[id]
	if ok {
		b.Weight = weight
		l.Bind(b)
	}
	return ok
}

// drainTime is how long a backend that leaves may end what it has begun.
const drainTime = 2 * time.Second

// Leave no longer wants a backend; with drain it stays for a while.
func (l *Workload) Leave(id fsm.BindingID, drain bool) {
	delete(l.wanted, id)
	l.leave(id, drain)
}

func (l *Workload) leave(id fsm.BindingID, drain bool) {
	l.writer.Do(string(id), &fsm.RemoveBinding{ID: id, Drain: drain}, func(o fsm.Outcome) {
		switch {
		case o.Reject == fsm.RejectQuarantine:
			l.later(func() { l.unless(id, func() { l.leave(id, drain) }) })
		case o.Reject == fsm.Accepted && drain:
			l.w.After(drainTime, func() {
				l.unless(id, func() { l.writer.Do(string(id), &fsm.Drained{ID: id}, nil) })
			})
		}
	})
}

// Replace has a new backend take the place of another one, address and all: a pod ends, and the next one is given its
// address. The new one is wanted before the old one leaves, or after.
func (l *Workload) Replace(old, by fsm.BindingID, before bool) {
	b, ok := l.wanted[old]
	if !ok {
		return
	}
	b.Binding = by
	if before {
		l.Bind(b)
		l.Leave(old, false)
		return
	}
	l.Leave(old, false)
	l.Bind(b)
}

// Forget has an operator say that a binding needs no deregistration.
func (l *Workload) Forget(id fsm.BindingID) {
	delete(l.wanted, id)
	l.writer.Do(string(id), &fsm.Forget{ID: id}, nil)
}

// soon is when to try again what the record cannot do yet.
const soon = 500 * time.Millisecond

func (l *Workload) later(do func()) { l.w.After(soon, do) }

// unless does something unless a binding is wanted again.
func (l *Workload) unless(id fsm.BindingID, do func()) {
	if _, wanted := l.wanted[id]; !wanted {
		do()
	}
}

// addresses is how many addresses pods have on a balancer: few, so that they come back soon.
const addresses = 6

// Act does something that users do, at random: most often they replace one backend by another at the same address.
func (l *Workload) Act() {
	wanted := l.Wanted()
	if len(wanted) < addresses/2 {
		l.Bind(l.draw())
		return
	}
	id := wanted[l.random.IntN(len(wanted))]
	switch n := l.random.IntN(20); {
	case n < 5:
		l.Bind(l.draw())
	case n < 9:
		l.Change(id, l.random.IntN(100))
	case n < 12:
		l.Leave(id, l.random.IntN(2) == 0)
	case n < 18:
		l.Replace(id, l.name(), l.random.IntN(2) == 0)
	case n < 19:
		l.Balance(l.wanted[id].Balancer, l.random.IntN(100))
	default:
		l.Forget(id)
	}
}

// Address draws an address that a pod may have.
func (l *Workload) Address() string {
	return fmt.Sprintf("10.244.0.%d:8080", l.random.IntN(addresses)+1)
}

func (l *Workload) name() fsm.BindingID {
	l.made++
	return fsm.BindingID(fmt.Sprintf("default/b%d", l.made))
}

// draw makes a backend up. Its address may be another one's as well: two objects may mean one balancer.
func (l *Workload) draw() Backend {
	d := l.drivers[l.random.IntN(len(l.drivers))]
	return Backend{
		Binding: l.name(), Balancer: d.Balancers()[l.random.IntN(len(d.Balancers()))],
		Address: l.Address(), Asked: l.random.IntN(2) == 0, Weight: 10,
	}
}
