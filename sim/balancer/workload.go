// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
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
	record  func() *fsm.View
	drivers []*Driver
	random  *rand.Rand
	wanted  map[fsm.BindingID]Backend
	made    int // backends that Act made
}

// Backend is what is to be bound: a pod, on a balancer.
type Backend struct {
	Binding  fsm.BindingID
	Balancer string // the object that means it
	Address  string
	// Asked has the driver be asked for the address, as if nobody here knew it.
	Asked  bool
	Weight int
}

// NewWorkload makes a Workload over some drivers, whose balancers it brings into the record as soon as that can hold them.
func NewWorkload(w *engine.World, writer Writer, record func() *fsm.View, drivers []*Driver) *Workload {
	l := &Workload{
		w: w, writer: writer, record: record, drivers: drivers, random: w.Random("workload/bindings"), wanted: map[fsm.BindingID]Backend{},
	}
	l.begin()
	return l
}

func (l *Workload) begin() {
	if !l.able() {
		l.later(l.begin)
		return
	}
	for _, d := range l.drivers {
		for _, object := range objects(d) {
			l.Balance(object, 60)
		}
	}
}

// format is the first one of the record that holds objects which mean a balancer. As every planner, this one proposes
// nothing before: members of the release before cannot even read it.
const format = 2

// able tells whether the record can hold what is wanted.
func (l *Workload) able() bool {
	v := l.record()
	return v != nil && v.Group().Format >= format
}

// too ends the names of objects that mean a balancer which another object means as well.
const too = "/too"

// objects are what users have made of a driver's balancers: two objects mean each of them.
func objects(d *Driver) (out []string) {
	for _, b := range d.Balancers() {
		out = append(out, b, b+too)
	}
	return out
}

// other is the other object that means the same balancer.
func other(object string) string {
	if name, ok := strings.CutSuffix(object, too); ok {
		return name
	}
	return object + too
}

// Balance brings an object into the record that means a balancer, or asks for it with other attributes: a time, in
// seconds, after which it shall end idle flows.
func (l *Workload) Balance(object string, idle int) {
	if !l.able() { // the record was restored from before that format
		return
	}
	name := strings.TrimSuffix(object, too)
	for _, d := range l.drivers {
		if slices.Contains(d.Balancers(), name) {
			l.writer.Do(object, &fsm.PutLoadBalancer{
				ID: fsm.BalancerID(object), Driver: d.Name(), Spec: Info(name), UID: "uid of " + object,
				Attributes: []fsm.KV{{Key: "idle", Value: strconv.Itoa(idle)}},
			}, nil)
		}
	}
}

// Delete no longer wants an object that means a balancer, nor what is to be bound to it. Whoever binds to it again wants it
// again.
func (l *Workload) Delete(object string) {
	for _, id := range l.Wanted() {
		if l.wanted[id].Balancer == object {
			l.Leave(id, false)
		}
	}
	l.writer.Do(object, &fsm.DeleteLoadBalancer{ID: fsm.BalancerID(object)}, nil)
}

// Wanted lists the bindings that are wanted, in order.
func (l *Workload) Wanted() []fsm.BindingID { return slices.Sorted(maps.Keys(l.wanted)) }

// owner is whom bindings are for: nothing that a cluster lists, so that its lists are no evidence that it is gone (S12).
const owner = "Workload/default/users/1"

// Bind wants a backend, or changes what is wanted of it. A binding keeps its balancer and its address.
func (l *Workload) Bind(b Backend) {
	l.wanted[b.Binding] = b
	c := &fsm.PutBinding{
		ID: b.Binding, Balancer: fsm.BalancerID(b.Balancer), Owner: owner, Address: b.Address,
		Parameters: []fsm.KV{{Key: BackendKey, Value: b.Address}, {Key: "weight", Value: strconv.Itoa(b.Weight)}},
	}
	if b.Asked {
		c.Address = ""
	}
	l.writer.Do(string(b.Binding), c, func(o fsm.Outcome) {
		if o.Reject == fsm.RejectNotFound { // the record was restored from before the balancer
			l.Balance(b.Balancer, 60)
		}
		notYet := o.Reject == fsm.RejectWrongState && o.Want == fsm.BalancerReady.String() // it is being created
		if notYet || o.Reject == fsm.RejectNotFound || o.Reject == fsm.RejectOperationOpen {
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
	if !l.able() {
		return
	}
	wanted := l.Wanted()
	if len(wanted) < addresses/2 {
		l.Bind(l.draw())
		return
	}
	id := wanted[l.random.IntN(len(wanted))]
	switch n := l.random.IntN(21); {
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
	case n < 20:
		object := l.wanted[id].Balancer
		l.Delete(object)
		if l.random.IntN(2) == 0 { // whoever else means it gives it up as well: its driver is to delete it
			l.Delete(other(object))
		}
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
	all := objects(l.drivers[l.random.IntN(len(l.drivers))])
	return Backend{
		Binding: l.name(), Balancer: all[l.random.IntN(len(all))],
		Address: l.Address(), Asked: l.random.IntN(2) == 0, Weight: 10,
	}
}
