// SPDX-License-Identifier: Apache-2.0

package fsm

// Difference is one record that two copies do not agree on.
type Difference struct {
	Table Table
	Key   string
	// Change is "added", "removed" or "changed", going from the first copy to the second.
	Change string
}

// String is one line for people.
func (d Difference) String() string { return string(d.Table) + " " + d.Key + ": " + d.Change }

// Diff lists what changes when a becomes b, by table and key, at most limit entries, and counts the rest.
func Diff(a, b *View, limit int) (listed []Difference, more int) {
	for _, t := range Tables() {
		say := func(key, change string) {
			if len(listed) < limit {
				listed = append(listed, Difference{t, key, change})
				return
			}
			more++
		}
		old, now := list[Record](a.rows, t), list[Record](b.rows, t)
		for len(old) > 0 || len(now) > 0 {
			switch {
			case len(now) == 0 || len(old) > 0 && old[0].Key() < now[0].Key():
				say(old[0].Key(), "removed")
				old = old[1:]
			case len(old) == 0 || now[0].Key() < old[0].Key():
				say(now[0].Key(), "added")
				now = now[1:]
			default:
				if old[0].sealed().sum != now[0].sealed().sum {
					say(now[0].Key(), "changed")
				}
				old, now = old[1:], now[1:]
			}
		}
	}
	return listed, more
}
