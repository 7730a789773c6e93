// SPDX-License-Identifier: Apache-2.0

package fsm

// Changes visits the rows of a table that differ between two views of one State: before is the zero R for a row that
// came, after for one that went. One that went and came back may be visited as both, first as gone, or at once with what it
// was and what it is: all of it but its key may be another's. Otherwise the order means nothing. Pages that both views share
// are passed over, so that it costs what changed and next to nothing for the rest, whatever the size of the table. A nil old
// view has no rows.
func Changes[R Record](old, now *View, t Table, visit func(before, after R)) {
	var was vector
	if old != nil {
		if old.rows.tables[t] == now.rows.tables[t] {
			return
		}
		was = old.rows.tables[t].records
	}
	var came []R // that are visited when all that went were
	is := now.rows.tables[t].records
	for i := range max(len(was.blocks), len(is.blocks)) {
		b, a := blockAt(was, i), blockAt(is, i)
		if b == a {
			continue
		}
		for j := range blockSize {
			if before, after := b.page(j), a.page(j); before != after {
				came = changesOfPage(before, after, visit, came)
			}
		}
	}
	var none R
	for _, r := range came {
		visit(none, r)
	}
}

// Differ tells whether any of the tables was written to between two views of one State. It compares no rows.
func Differ(old, now *View, tables ...Table) bool {
	for _, t := range tables {
		if old.rows.tables[t] != now.rows.tables[t] {
			return true
		}
	}
	return false
}

func blockAt(v vector, i int) *block {
	if i >= len(v.blocks) {
		return nil
	}
	return v.blocks[i]
}

func (b *block) page(i int) *page {
	if b == nil {
		return nil
	}
	return b.pages[i]
}

// changesOfPage visits all but those that came, which it adds to came.
func changesOfPage[R Record](was, is *page, visit func(before, after R), came []R) []R {
	var none R
	for i := range pageSize {
		var before, after Record
		if was != nil {
			before = was.records[i]
		}
		if is != nil {
			after = is.records[i]
		}
		switch {
		case before == after:
		case before == nil:
			came = append(came, after.(R))
		case after == nil:
			visit(before.(R), none)
		case before.Key() != after.Key(): // the slot was given to another row
			visit(before.(R), none)
			came = append(came, after.(R))
		default:
			visit(before.(R), after.(R))
		}
	}
	return came
}
