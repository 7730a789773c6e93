// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

func byKey(v *fsm.View, table fsm.Table) map[string]fsm.Record {
	out := map[string]fsm.Record{}
	if v == nil {
		return out
	}
	for _, r := range fsm.List[fsm.Record](v, table) {
		out[r.Key()] = r
	}
	return out
}

// Whoever follows the record by its changes has what it has.
func TestPropertyChangesLeadFromOneViewToAnother(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		w := newHistory(t)
		views := []*fsm.View{nil, w.state.Read()}
		for range rapid.IntRange(1, 4).Draw(t, "views") {
			w.run(t, 30, rapid.SampledFrom(themes).Draw(t, "theme"))
			views = append(views, w.state.Read())
		}
		i := rapid.IntRange(0, len(views)-1).Draw(t, "from")
		old, now := views[i], views[rapid.IntRange(max(i, 1), len(views)-1).Draw(t, "to")]
		for _, table := range fsm.Tables() {
			have, want := byKey(old, table), byKey(now, table)
			came := map[string]fsm.Record{}
			fsm.Changes(old, now, table, func(before, after fsm.Record) {
				if before != nil {
					if have[before.Key()] != before {
						t.Fatalf("%s %s: visited a row that was not there", table, before.Key())
					}
					if came[before.Key()] != nil {
						t.Fatalf("%s %s: seen to go after it came back", table, before.Key())
					}
					delete(have, before.Key())
				}
				if after != nil {
					came[after.Key()] = after
				}
			})
			for key, r := range have {
				if want[key] != r {
					t.Fatalf("%s %s: not visited", table, key)
				}
			}
			maps.Copy(have, came)
			if !maps.Equal(have, want) {
				t.Fatalf("%s: leads to %d rows, want %d", table, len(have), len(want))
			}
			for key, r := range came {
				if old != nil && byKey(old, table)[key] == r {
					t.Fatalf("%s %s: visited, and did not change", table, key)
				}
			}
		}
	})
}

// Two rows went and came back, each to the slot that the other one had. Rare in drawn histories, hence told here.
func TestChangesVisitWhatWentBeforeWhatCame(t *testing.T) {
	for _, gone := range [][]string{{"a", "b"}, {"b", "a"}} {
		s := formed(t)
		tell(t, s, putDriver("a"), putDriver("b"))
		old := s.Read()
		tell(t, s, &fsm.DeleteDriver{Name: gone[0]}, &fsm.DeleteDriver{Name: gone[1]}, putDriver("a"), putDriver("b"))
		there := map[string]bool{"a": true, "b": true}
		fsm.Changes(old, s.Read(), fsm.TableDrivers, func(before, after *fsm.Driver) {
			if before != nil {
				there[before.Name] = false
			}
			if after != nil {
				there[after.Name] = true
			}
		})
		if !there["a"] || !there["b"] {
			t.Errorf("%v went and came back, and who follows the changes has %v", gone, there)
		}
	}
}

func putDriver(name string) fsm.Command {
	return &fsm.PutDriver{Driver: fsm.Driver{Name: name, URL: "http://192.0.2.9"}}
}
