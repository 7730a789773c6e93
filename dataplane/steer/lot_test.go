// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/testkit"
)

var lotAddresses = []netip.Addr{
	netip.IPv4Unspecified(), netip.MustParseAddr("198.51.100.10"), netip.MustParseAddr("198.51.100.11"), netip.IPv6Unspecified(),
	netip.MustParseAddr("2001:db8:e1::10"), netip.MustParseAddr("::ffff:198.51.100.10"), netip.MustParseAddr("::198.51.100.10"),
}

func drawPrefix(t *rapid.T, label string) netip.Prefix {
	a := rapid.SampledFrom(append(lotAddresses, netip.Addr{})).Draw(t, label)
	if !a.IsValid() {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(a, rapid.SampledFrom([]int{a.BitLen(), a.BitLen(), 24, 0}).Draw(t, label+" bits"))
}

func drawRule(t *rapid.T) Rule {
	return Rule{
		V6: rapid.Bool().Draw(t, "v6"), Priority: rapid.Uint32Range(1, 2).Draw(t, "priority"), To: drawPrefix(t, "to"), From: drawPrefix(t, "from"),
		Other: rapid.SampledFrom([]string{"", "iif eth0"}).Draw(t, "other"),
	}
}

func drawRoute(t *rapid.T) Route {
	return Route{
		Table: rapid.Uint32Range(1, 2).Draw(t, "table"), To: drawPrefix(t, "to"), Local: rapid.Bool().Draw(t, "local"),
		Gateway: drawPrefix(t, "gateway").Addr(),
	}
}

func drawElement(t *rapid.T) Element {
	a := drawPrefix(t, "address").Addr()
	if a.Is6() && rapid.IntRange(0, 3).Draw(t, "zone") == 0 {
		a = a.WithZone("eth0")
	}
	return Element{
		Set: rapid.SampledFrom([]Set{SetAddresses4, SetPorts6, SetInterfaces}).Draw(t, "set"), Address: a,
		Port: desired.Port{Protocol: 6, Number: rapid.Uint16Range(80, 81).Draw(t, "port")}, Interface: rapid.SampledFrom([]string{"", "eth0"}).Draw(t, "interface"),
	}
}

// For any history a Lot has what a map of the same has, differs from another one by the same, and lists that in order.
func TestPropertyLotsAreSets(t *testing.T) {
	t.Run("rules", func(t *testing.T) { lotsAreSets(t, drawRule, compareRules) })
	t.Run("routes", func(t *testing.T) { lotsAreSets(t, drawRoute, compareRoutes) })
	t.Run("elements", func(t *testing.T) { lotsAreSets(t, drawElement, compareElements) })
}

func lotsAreSets[T piece[T]](t *testing.T, draw func(*rapid.T) T, compare func(a, b T) int) {
	testkit.Check(t, func(t *rapid.T) {
		var lots [2]Lot[T]
		models := [2]map[T]bool{{}, {}}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			p, i := draw(t), rapid.IntRange(0, 1).Draw(t, "which")
			if known := slices.Collect(lots[i].All()); len(known) > 0 && rapid.Bool().Draw(t, "known") {
				slices.SortFunc(known, func(a, b T) int { return cmp.Or(compare(a, b), strings.Compare(spelled(a), spelled(b))) })
				p = rapid.SampledFrom(known).Draw(t, "known one")
			}
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				lots[i].Remove(p)
				delete(models[i], p)
			case 1:
				lots[i].put(lots[1-i])
				maps.Copy(models[i], models[1-i])
			default:
				lots[i].Add(p)
				models[i][p] = true
			}
			if lots[i].Has(p) != models[i][p] || lots[i].Len() != len(models[i]) {
				t.Fatalf("%+v is there: %v; %d pieces; want %v", p, lots[i].Has(p), lots[i].Len(), models[i])
			}
		}
		less := maps.Clone(models[0])
		maps.DeleteFunc(less, func(p T, _ bool) bool { return models[1][p] })
		listed(t, lots[0], models[0], compare)
		listed(t, lots[0].without(lots[1]), less, compare)
	})
}

// spelled is all that is in a piece, of which compare leaves some out.
func spelled(piece any) string {
	data, err := json.Marshal(piece)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func listed[T piece[T]](t *rapid.T, l Lot[T], model map[T]bool, compare func(a, b T) int) {
	list := l.sorted(compare)
	got := slices.Collect(list.All())
	if !maps.Equal(setOf(got), model) || len(got) != len(model) || list.Len() != len(model) || !slices.IsSortedFunc(got, compare) {
		t.Fatalf("listed %+v, want %+v", got, model)
	}
	if all := slices.Collect(l.All()); len(all) != len(model) || !maps.Equal(setOf(all), model) {
		t.Fatalf("all are %+v, want %+v", all, model)
	}
	test := func(p T) bool { _, a, split := p.split(); return split && a.Is4() }
	few := slices.Collect(list.only(test).All())
	if want := slices.DeleteFunc(slices.Clone(got), func(p T) bool { return !test(p) }); !slices.Equal(few, want) {
		t.Fatalf("only some: %+v, want %+v", few, want)
	}
}

func setOf[T comparable](list []T) map[T]bool {
	out := map[T]bool{}
	for _, p := range list {
		out[p] = true
	}
	return out
}
