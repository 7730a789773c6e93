// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/network"
	"fairlead.io/fairlead/sim/network/httpd"
)

// Options describe a driver.
type Options struct {
	Driver    string   // its name
	Known     string   // what the record knows it by; its name if empty
	Balancers []string // the identities of those it looks after
	// Time is how long a call takes on average, half of it until it takes effect. Default 20 ms.
	Time time.Duration
	// Settle bounds how long after its caller gave up a call takes effect: what members believe of the driver. Default 10 s.
	Settle time.Duration
}

// Driver is a driver with its balancers.
type Driver struct {
	w      *engine.World
	n      *network.Network
	o      Options
	random *rand.Rand

	balancers map[string]*held
	attempts  map[fsm.Subject]fsm.Revision // the newest that came in
	jobs      map[fsm.Subject]*job
	faults    []*fault
	closed    int // faults that have nobody listen
	back      int
}

// held is what is on a balancer.
type held struct {
	made    bool         // somebody asked for it, and nobody for its end since
	ever    bool         // somebody has asked for it
	newest  fsm.Revision // of the calls about it, whatever object or identity they named
	entries map[string]Entry
}

// Entry is a backend on a balancer.
type Entry struct {
	Address    string
	Ours       bool
	Binding    string // who asked for it last; of ours
	Parameters []fsm.KV
	Attempt    fsm.Revision
}

// New makes a driver that answers on its machine, start.Driver of its name.
func New(w *engine.World, n *network.Network, o Options) *Driver {
	if o.Time == 0 {
		o.Time = 20 * time.Millisecond
	}
	if o.Settle == 0 {
		o.Settle = 10 * time.Second
	}
	d := &Driver{
		w: w, n: n, o: o, random: w.Random("driver/" + o.Driver), balancers: map[string]*held{},
		attempts: map[fsm.Subject]fsm.Revision{}, jobs: map[fsm.Subject]*job{},
	}
	for _, b := range o.Balancers {
		d.balancers[b] = &held{entries: map[string]Entry{}}
	}
	d.open()
	return d
}

func (d *Driver) open() { httpd.Serve(d.n, d.Machine(), start.DriverPort, d.receive) }

// Name is the driver's name.
func (d *Driver) Name() string { return d.o.Driver }

// Known is what the record knows the driver by.
func (d *Driver) Known() string { return cmp.Or(d.o.Known, d.o.Driver) }

// Machine is where it runs.
func (d *Driver) Machine() string { return start.Driver(d.o.Driver) }

// Balancers are the identities of its balancers.
func (d *Driver) Balancers() []string { return d.o.Balancers }

// infoKey is the key of what a driver knows a balancer by.
const infoKey = "id"

// Info is what a driver knows a balancer by, and what is asked for before it is created.
func Info(balancer string) []fsm.KV { return []fsm.KV{{Key: infoKey, Value: balancer}} }

// Identity is what the record knows a balancer of a driver by.
func Identity(driver, balancer string) fsm.Identity { return fsm.IdentityOf(driver, Info(balancer)) }

// Made tells whether anybody has asked for a balancer.
func (d *Driver) Made(balancer string) bool {
	b := d.balancers[balancer]
	return b != nil && b.made
}

// Entries lists what is on a balancer, sorted by address.
func (d *Driver) Entries(balancer string) []Entry {
	b := d.balancers[balancer]
	if b == nil {
		return nil
	}
	out := make([]Entry, 0, len(b.entries))
	for _, address := range slices.Sorted(maps.Keys(b.entries)) {
		out = append(out, b.entries[address])
	}
	return out
}

// Back counts the calls whose attempt was older than that of one before about the same.
func (d *Driver) Back() int { return d.back }

// AddByHand has somebody else put a backend on a balancer. It tells whether the address was free.
func (d *Driver) AddByHand(balancer, address string) bool {
	b := d.balancers[balancer]
	if b == nil {
		return false
	}
	if _, taken := b.entries[address]; taken {
		return false
	}
	b.entries[address] = Entry{Address: address}
	d.w.Publish(event.Entry{Balancer: balancer, Address: address, Owner: foreign, Present: true, By: byHand})
	return true
}

// RemoveByHand has somebody take a backend off a balancer, whoever put it there. It tells whether there was one.
func (d *Driver) RemoveByHand(balancer, address string) bool {
	b := d.balancers[balancer]
	if b == nil {
		return false
	}
	e, ok := b.entries[address]
	if !ok {
		return false
	}
	delete(b.entries, address)
	d.w.Publish(event.Entry{Balancer: balancer, Address: address, Owner: e.owner(), By: byHand})
	return true
}

// Inherit has another controller, which ours is to take over from, put a backend on a balancer, anew if it was there.
func (d *Driver) Inherit(balancer, address string) {
	b := d.balancers[balancer]
	if b == nil {
		return
	}
	if e := b.entries[address]; e.Address != "" {
		if !e.Ours {
			return
		}
		d.w.Publish(event.Entry{Balancer: balancer, Address: address, Owner: ours, By: byRival})
	}
	b.made, b.ever = true, true
	b.entries[address] = Entry{Address: address, Ours: true}
	d.w.Publish(event.Entry{Balancer: balancer, Address: address, Owner: ours, Present: true, By: byRival})
}

// Disinherit has that controller take such a backend off.
func (d *Driver) Disinherit(balancer, address string) {
	b := d.balancers[balancer]
	if b == nil || !b.entries[address].Ours {
		return
	}
	delete(b.entries, address)
	d.w.Publish(event.Entry{Balancer: balancer, Address: address, Owner: ours, By: byRival})
}

// Who owns entries, and who changes them, in events.
const (
	ours     = "fairlead"
	foreign  = "foreign"
	byDriver = "driver"
	byHand   = "hand"
	byRival  = "rival"
)

func (e Entry) owner() string {
	if e.Ours {
		return ours
	}
	return foreign
}
