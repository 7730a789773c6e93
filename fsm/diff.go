// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"reflect"
	"slices"
	"strings"
)

// Difference is one record that two copies do not agree on.
type Difference struct {
	Table Table
	Key   string
	// Change is "added", "removed" or "changed", going from the first copy to the second.
	Change string

	old, now Record // of one that changed
}

// String is one line for people, such as "service shop/web: changed (ports, version)".
func (d Difference) String() string {
	text := d.Table.one() + " " + d.Key + ": " + d.Change
	if d.Table == TableGroup { // there is one
		text = string(TableGroup) + ": " + d.Change
	}
	if d.old == nil {
		return text
	}
	return text + " (" + strings.Join(fieldsChanged(d.old, d.now), ", ") + ")"
}

// one is what a record of a table is called.
func (t Table) one() string {
	if many, ok := strings.CutSuffix(string(t), "ies"); ok {
		return many + "y"
	}
	return strings.TrimSuffix(string(t), "s")
}

// fieldsChanged names the fields, as in JSON, in which two rows of a table differ. The history is named only where nothing else is.
func fieldsChanged(old, now Record) (names []string) {
	was, is := reflect.ValueOf(old).Elem(), reflect.ValueOf(now).Elem()
	for i := range was.NumField() {
		name, _, _ := strings.Cut(was.Type().Field(i).Tag.Get("json"), ",")
		if name != "" && !reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()) {
			names = append(names, name)
		}
	}
	if len(names) > 1 {
		names = slices.DeleteFunc(names, func(n string) bool { return n == "history" })
	}
	return names
}

// Diff lists what changes when a becomes b, by table and key, at most limit entries, and counts the rest. That copies were compared since is no
// change.
func Diff(a, b *View, limit int) (listed []Difference, more int) {
	for _, t := range Tables() {
		say := func(d Difference) {
			if d.Table = t; len(listed) < limit {
				listed = append(listed, d)
				return
			}
			more++
		}
		old, now := list[Record](a.rows, t), list[Record](b.rows, t)
		for len(old) > 0 || len(now) > 0 {
			switch {
			case len(now) == 0 || len(old) > 0 && old[0].Key() < now[0].Key():
				say(Difference{Key: old[0].Key(), Change: "removed"})
				old = old[1:]
			case len(old) == 0 || now[0].Key() < old[0].Key():
				say(Difference{Key: now[0].Key(), Change: "added"})
				now = now[1:]
			default:
				if old[0].sealed().sum != now[0].sealed().sum && (t != TableGroup || !a.Group().Alike(b.Group())) {
					say(Difference{Key: now[0].Key(), Change: "changed", old: old[0], now: now[0]})
				}
				old, now = old[1:], now[1:]
			}
		}
	}
	return listed, more
}
