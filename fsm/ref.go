// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"fmt"
	"hash/maphash"
	"strings"
)

// index names a secondary index.
type index string

const (
	refSubject  index = "subject"  // bindings and balancers by line of operations
	refDriver   index = "driver"   // balancers by driver
	refSpec     index = "spec"     // balancers by driver and what they are to be
	refBalancer index = "balancer" // bindings by balancer
	refAge      index = "age"      // graves, oldest first
	refNumber   index = "number"   // policies, nodes, and numbers that hosts may hold, by number
	refHop      index = "hop"      // next hops of routes, by node: they are counted alone (see countedOf)
)

// refPrefix begins the composite key of every record that an index holds under a value; the record's key ends it.
func refPrefix(i index, value string) string { return string(i) + "\x00" + value + "\x00" }

// ref is one place of a record in an index.
type ref struct {
	index index
	value string
}

// refsOf lists the places of a record.
func refsOf(r Record) []ref {
	switch r := r.(type) {
	case *Binding:
		return []ref{{refSubject, string(r.Subject())}, {refBalancer, string(r.Balancer)}}
	case *LoadBalancer:
		return []ref{{refSubject, string(r.Subject())}, {refDriver, r.Driver}, {refSpec, r.wish()}}
	case *Policy:
		return []ref{{refNumber, utoa(uint64(r.Number))}}
	case *Number:
		return []ref{{refNumber, utoa(uint64(r.Number))}}
	case *Node:
		if r.Number != 0 {
			return []ref{{refNumber, utoa(uint64(r.Number))}}
		}
	case *Grave:
		return []ref{{refAge, fmt.Sprintf("%016x%016x", uint64(r.At.Epoch), uint64(r.At.Index))}}
	}
	return nil
}

// countedOf lists what of a record is counted by crowds and has no place in an index: there are as many next hops as routes and nodes
// together make, and who asks for them by node mostly wants to hear that there is none.
func countedOf(r Record, visit func(ref)) {
	if r, ok := r.(*Route); ok {
		for _, h := range r.NextHops {
			visit(ref{refHop, string(h.Node())})
		}
	}
}

// recount moves a record's share of what is counted from what it was to what it is; either may be nil.
func (t *table) recount(old, now Record) {
	if old, ok := old.(*Route); ok {
		if now, ok := now.(*Route); ok && sameList(old.NextHops, now.NextHops) {
			return
		}
	}
	if now != nil {
		countedOf(now, func(r ref) { t.crowds.enter(r.index, r.value) })
	}
	if old != nil {
		countedOf(old, func(r ref) { t.crowds.leave(r.index, r.value) })
	}
}

// sameList tells, without looking at what is in them, that two lists are one in memory. It may miss that they are equal.
func sameList[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// sameRefs tells, without making them, that two versions of a record are indexed alike.
func sameRefs(old, now Record) bool {
	switch old := old.(type) {
	case *Binding:
		now := now.(*Binding)
		return old.Balancer == now.Balancer && old.Address == now.Address && old.Identity == now.Identity
	case *LoadBalancer:
		return old.Identity == now.(*LoadBalancer).Identity // driver and spec stay
	case *Policy:
		return old.Number == now.(*Policy).Number
	case *Node:
		return old.Number == now.(*Node).Number
	case *Grave:
		return old.At == now.(*Grave).At
	}
	return true
}

// reindex moves a record's refs from what it was to what it is; either may be nil.
func (t *table) reindex(slot uint32, old, now Record) {
	t.recount(old, now)
	if old != nil && now != nil && sameRefs(old, now) {
		return
	}
	if old != nil {
		for _, ref := range refsOf(old) {
			t.refs.Delete(refPrefix(ref.index, ref.value) + old.Key())
			t.crowds.leave(ref.index, ref.value)
		}
	}
	if now != nil {
		for _, ref := range refsOf(now) {
			t.refs.Set(refPrefix(ref.index, ref.value)+now.Key(), slot)
			t.crowds.enter(ref.index, ref.value)
		}
	}
}

// crowds counts the records that an index holds under a value. Values are kept as hashes, so that a million of them
// is nothing to the garbage collector; two of one hash count as one, which may make a crowd look larger than it is,
// never smaller.
type crowds struct {
	seed  maphash.Seed
	sizes map[uint64]uint32
}

func newCrowds() *crowds { return &crowds{seed: maphash.MakeSeed(), sizes: map[uint64]uint32{}} }

func (c *crowds) hash(i index, value string) uint64 {
	return maphash.String(c.seed, string(i)) ^ maphash.String(c.seed, value)
}

// none tells, on the side that is written to, that nothing is counted under a value. It may miss that.
func (t *table) none(i index, value string) bool { return t.crowds.sizes[t.crowds.hash(i, value)] == 0 }

func (c *crowds) enter(i index, value string) { c.sizes[c.hash(i, value)]++ }

func (c *crowds) leave(i index, value string) {
	h := c.hash(i, value)
	if c.sizes[h]--; c.sizes[h] == 0 {
		delete(c.sizes, h)
	}
}

// regrouped is by what the records of a table are in a second order, if they are: allocations by service, of which there are as many as
// addresses. It is part of their keys, so that records stay where they are as long as they are there.
func regrouped(r Record) (value string, ok bool) {
	if a, ok := r.(*Allocation); ok {
		return string(a.Service), true
	}
	return "", false
}

// besideRegrouped tells where the record of a slot is in that order beside a value and a key: before (negative), there (0), or after.
func (t *table) besideRegrouped(value, key string, slot uint32) int {
	own, _ := regrouped(t.records.at(slot))
	if c := strings.Compare(own, value); c != 0 {
		return c
	}
	return t.beside(key, slot)
}

// eachRegrouped visits, in key order, the records of a value until visit says no.
func (t *table) eachRegrouped(of string, visit func(Record) bool) {
	t.second.each(func(slot uint32) int { return t.besideRegrouped(of, "", slot) }, func(slot uint32) bool {
		r := t.records.at(slot)
		value, _ := regrouped(r)
		return value == of && visit(r)
	})
}
