// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// What is read of a view stays as it was, in both orders of a table and by both, whatever comes and goes afterwards.
func TestPropertyFrozenTablesStay(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		live, model := newRows(), map[string]*Allocation{}
		type copied struct {
			rows  *rows
			model map[string]*Allocation
		}
		var copies []copied
		services := []ServiceID{"a/a", "a/a-b", "a/b", "b/a"}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			a := &Allocation{
				Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(8, 12).Draw(t, "address"))}),
				Service: rapid.SampledFrom(services).Draw(t, "service"),
			}
			table := live.tables[TableAllocations]
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				copies = append(copies, copied{live.freeze(nil, nil), maps.Clone(model)})
			case 1:
				if have, there := model[a.Key()]; there {
					table.remove(have)
					delete(model, a.Key())
				}
			default:
				table.put(a)
				model[a.Key()] = a
			}
		}
		for i, c := range append(copies, copied{live, model}) {
			all := slices.SortedFunc(maps.Values(c.model), func(a, b *Allocation) int { return cmp.Compare(a.Key(), b.Key()) })
			same := func(what string, have, want []*Allocation) {
				if !slices.Equal(have, want) {
					t.Fatalf("copy %d of %d, %s: %v, want %v", i, len(copies), what, keysOf(have), keysOf(want))
				}
			}
			same("all", list[*Allocation](c.rows, TableAllocations), all)
			for _, s := range services {
				own := slices.DeleteFunc(slices.Clone(all), func(a *Allocation) bool { return a.Service != s })
				same("of "+string(s), allocationsOf(c.rows, s), own)
			}
			for _, a := range all {
				owners := slices.DeleteFunc(slices.Clone(all), func(o *Allocation) bool { return o.Address != a.Address })
				same("of "+a.Address.String(), ownersOf(c.rows, a.Address.String()), owners)
				if have, found := find[*Allocation](c.rows, TableAllocations, a.Key()); !found || have != a {
					t.Fatalf("copy %d of %d, %s: %v", i, len(copies), a.Key(), have)
				}
			}
		}
	})
}

func keysOf(list []*Allocation) (out []string) {
	for _, a := range list {
		out = append(out, fmt.Sprintf("%q", a.Key()))
	}
	return out
}
