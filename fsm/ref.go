// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"fmt"

	"github.com/hashicorp/go-memdb"
)

// tableRefs holds the secondary indexes: a row for each (index, value, record). They are rows of their own,
// because go-memdb rewrites every index of a record whenever the record changes, and most changes touch
// nothing that is indexed. They are derived: neither digest nor snapshot holds them.
const tableRefs Table = "refs"

// index names a secondary index.
type index string

const (
	refAddress  index = "address"  // allocations by address
	refService  index = "service"  // allocations by service
	refSubject  index = "subject"  // bindings by line of operations
	refBalancer index = "balancer" // bindings by balancer
	refAge      index = "age"      // graves, oldest first
)

// ref says that an index holds a record under a value.
type ref struct {
	index index
	value string
	key   string // of the record
}

// Key orders the refs of an index by value, then record.
func (r ref) Key() string { return refPrefix(r.index, r.value) + r.key }

func refPrefix(i index, value string) string { return string(i) + "\x00" + value + "\x00" }

// refsOf lists where a record is indexed; always as many for records of one table.
func refsOf(r Record) []ref {
	switch r := r.(type) {
	case *Allocation:
		return []ref{{refAddress, r.Address.String(), r.Key()}, {refService, string(r.Service), r.Key()}}
	case *Binding:
		return []ref{{refSubject, string(r.Subject()), r.Key()}, {refBalancer, string(r.Balancer), r.Key()}}
	case *Grave:
		return []ref{{refAge, fmt.Sprintf("%016x%016x", uint64(r.At.Epoch), uint64(r.At.Index)), r.Key()}}
	}
	return nil
}

// reindex moves the refs of a record from what it was to what it is; either may be nil.
func (tx *txn) reindex(old, now Record) {
	var was, is []ref
	if old != nil {
		was = refsOf(old)
	}
	if now != nil {
		is = refsOf(now)
	}
	for i := range max(len(was), len(is)) {
		if i < len(was) && i < len(is) && was[i] == is[i] {
			continue
		}
		if i < len(was) {
			must(tx.memdb.Delete(string(tableRefs), was[i]))
		}
		if i < len(is) {
			must(tx.memdb.Insert(string(tableRefs), is[i]))
		}
	}
}

// listRefs reads the records of a table that an index holds under a value, in key order.
func listRefs[R Record](tx *memdb.Txn, t Table, i index, value string) []R {
	it, err := tx.Get(string(tableRefs), indexID+"_prefix", refPrefix(i, value))
	must(err)
	var out []R
	for raw := it.Next(); raw != nil; raw = it.Next() {
		r, _ := find[R](tx, t, raw.(ref).key)
		out = append(out, r)
	}
	return out
}

// firstRef reads the first record of an index whose value begins with the given one.
func firstRef[R Record](tx *memdb.Txn, t Table, prefix string) (R, bool) {
	var none R
	raw, err := tx.First(string(tableRefs), indexID+"_prefix", prefix)
	must(err)
	if raw == nil {
		return none, false
	}
	return find[R](tx, t, raw.(ref).key)
}
