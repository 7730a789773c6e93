// SPDX-License-Identifier: Apache-2.0

package fsm

import "fmt"

// index names a secondary index.
type index string

const (
	refAddress  index = "address"  // allocations by address
	refService  index = "service"  // allocations by service
	refSubject  index = "subject"  // bindings by line of operations
	refBalancer index = "balancer" // bindings by balancer
	refAge      index = "age"      // graves, oldest first
)

// refPrefix begins the composite key of every record that an index holds under a value; the record's key ends it.
func refPrefix(i index, value string) string { return string(i) + "\x00" + value + "\x00" }

// refsOf lists the composite keys under which a record is indexed.
func refsOf(r Record) []string {
	switch r := r.(type) {
	case *Allocation:
		return []string{refPrefix(refAddress, r.Address.String()) + r.Key(), refPrefix(refService, string(r.Service)) + r.Key()}
	case *Binding:
		return []string{refPrefix(refSubject, string(r.Subject())) + r.Key(), refPrefix(refBalancer, string(r.Balancer)) + r.Key()}
	case *Grave:
		return []string{refPrefix(refAge, fmt.Sprintf("%016x%016x", uint64(r.At.Epoch), uint64(r.At.Index))) + r.Key()}
	}
	return nil
}

// sameRefs tells, without making them, that two versions of a record are indexed alike.
func sameRefs(old, now Record) bool {
	switch old := old.(type) {
	case *Allocation:
		return true // address and service are its key
	case *Binding:
		now := now.(*Binding)
		return old.Balancer == now.Balancer && old.Address == now.Address
	case *Grave:
		return old.At == now.(*Grave).At
	}
	return true
}

// reindex moves a record's refs from what it was to what it is; either may be nil.
func (t *table) reindex(slot uint32, old, now Record) {
	if old != nil && now != nil && sameRefs(old, now) {
		return
	}
	if old != nil {
		for _, ref := range refsOf(old) {
			t.refs.Delete(ref)
		}
	}
	if now != nil {
		for _, ref := range refsOf(now) {
			t.refs.Set(ref, slot)
		}
	}
}
