// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"cmp"
	"fmt"
	"slices"
)

// load puts a record of a snapshot, which holds the records of a table in key order. The secondary indexes wait for
// loaded: in order they are built in half the time.
func (tx *txn) load(r Record) error {
	name, key := r.Table(), r.Key()
	t := tx.rows.tables[name]
	if _, exists := t.slot(key); exists {
		return fmt.Errorf("%s %s comes twice", name, key)
	}
	tx.state.alike.same(r)
	r.sealed().sum, tx.buf = sumOf(r, tx.buf)
	tx.state.digest.add(r.sealed().sum)
	if name == TableGraves {
		tx.state.graves++
	}
	t.seat(key, r)
	return nil
}

// loaded makes the secondary indexes of a table after the last load.
func (t *table) loaded() {
	type place struct {
		key  string
		slot uint32
	}
	var places []place
	t.order.each(nil, func(slot uint32) bool {
		r := t.records.at(slot)
		for _, ref := range refsOf(r) {
			places = append(places, place{refPrefix(ref.index, ref.value) + r.Key(), slot})
			t.crowds.enter(ref.index, ref.value)
		}
		t.recount(nil, r)
		return true
	})
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.key, b.key) })
	for _, p := range places {
		t.refs.Load(p.key, p.slot)
	}
}
