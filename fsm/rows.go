// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"strings"

	"github.com/tidwall/btree"
)

// rows are the tables and their secondary indexes, in copy-on-write B-trees: a copy costs the same however many
// records there are, and writing to one side of it leaves the other as it was.
//
// Measured with 100,000 bindings on one core, go-memdb's radix trees spent 55 us on a command of two writes:
// each write copied a node, with its watch channel, for every few bytes of the key.
type rows struct {
	tables map[Table]*btree.Map[string, Record]
	// refs are the secondary indexes: composite keys (see ref.go) to the keys of records. They are derived:
	// neither digest nor snapshot holds them.
	refs map[Table]*btree.Map[string, string]
}

func newRows() *rows {
	r := &rows{tables: map[Table]*btree.Map[string, Record]{}, refs: map[Table]*btree.Map[string, string]{}}
	for _, t := range Tables() {
		r.tables[t], r.refs[t] = new(btree.Map[string, Record]), new(btree.Map[string, string])
	}
	return r
}

// freeze gives rows that no longer change; of before, those are taken over whose tables were not touched since.
func (r *rows) freeze(before *rows, touched map[Table]bool) *rows {
	out := &rows{tables: make(map[Table]*btree.Map[string, Record], len(r.tables)), refs: make(map[Table]*btree.Map[string, string], len(r.refs))}
	for t := range r.tables {
		if before != nil && !touched[t] {
			out.tables[t], out.refs[t] = before.tables[t], before.refs[t]
			continue
		}
		out.tables[t], out.refs[t] = r.tables[t].Copy(), r.refs[t].Copy()
	}
	return out
}

// find reads one record by its key.
func find[R Record](r *rows, t Table, key string) (R, bool) {
	var none R
	rec, ok := r.tables[t].Get(key)
	if !ok {
		return none, false
	}
	unchanged(rec)
	return rec.(R), true
}

// list reads a whole table, in key order.
func list[R Record](r *rows, t Table) []R {
	out := make([]R, 0, r.tables[t].Len())
	r.tables[t].Scan(func(_ string, rec Record) bool {
		unchanged(rec)
		out = append(out, rec.(R))
		return true
	})
	return out
}

// listRefs reads the records of a table that an index holds under a value, in key order.
func listRefs[R Record](r *rows, t Table, i index, value string) []R {
	var out []R
	prefix := refPrefix(i, value)
	r.refs[t].Ascend(prefix, func(ref, key string) bool {
		if !strings.HasPrefix(ref, prefix) {
			return false
		}
		rec, _ := find[R](r, t, key)
		out = append(out, rec)
		return true
	})
	return out
}

// firstRef reads the first record of those whose composite key begins with prefix.
func firstRef[R Record](r *rows, t Table, prefix string) (R, bool) {
	var out R
	var found bool
	r.refs[t].Ascend(prefix, func(ref, key string) bool {
		if strings.HasPrefix(ref, prefix) {
			out, found = find[R](r, t, key)
		}
		return false
	})
	return out, found
}
