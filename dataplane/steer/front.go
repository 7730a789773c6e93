// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/api/desired"
)

// The kernel asks rules in the order of their priorities. Those of others that stand in front of ours may send packets to
// service addresses elsewhere: it depends on what is in the tables that they name.

// localTable is the kernel's table of the addresses that this host has: what is found in it is delivered.
const localTable = 255

// anyTaken tells whether a prefix has any of some addresses, which are in order.
func anyTaken(p netip.Prefix, addresses []desired.Address) bool {
	at, _ := slices.BinarySearchFunc(addresses, p.Masked().Addr(), func(a desired.Address, first netip.Addr) int {
		return a.Prefix.Addr().Compare(first)
	})
	return at < len(addresses) && p.Contains(addresses[at].Prefix.Addr())
}

// front tells whether a rule stands in front of ours and may take packets to a wanted address, whoever sends them. Rules
// with conditions that nobody can judge beforehand, as that of an interface, are left aside.
func (q Query) front(r Rule) bool {
	return !r.ours() && r.Other == "" && r.Priority < q.Priority && r.Table != localTable && !r.From.IsValid() &&
		q.Mark&r.Mask == r.Mark && anyTaken(cmp.Or(r.To, everything(r.V6)), q.Addresses)
}

// Tables lists the tables that rules of others lead packets to wanted addresses to, in front of ours.
func (q Query) Tables(rules Lot[Rule]) map[uint32]bool {
	out := map[uint32]bool{}
	for r := range rules.All() {
		if q.front(r) {
			out[r.Table] = true
		}
	}
	return out
}

// Concerns tells which routes a view has. Tables are those that Tables gave for its rules.
func (q Query) Concerns(r Route, tables map[uint32]bool) bool {
	return r.ours() || r.Table == q.InTable || r.Table == q.OutTable || r.Table == mainTable && r.isDefault() ||
		tables[r.Table] && anyTaken(r.To, q.Addresses)
}

// forestalled fails the addresses whose packets a rule of others takes before they meet ours.
func (f *family) forestalled() {
	q := Query{Addresses: f.want.Addresses, Priority: f.o.PriorityIn, Mark: f.o.MarkIn}
	var fronts []Rule
	routes := map[uint32][]Route{}
	for r := range f.have.Rules.All() {
		if r.V6 == f.v6 && q.front(r) && !slices.Contains(f.goal.OldRules, r) {
			fronts = append(fronts, r)
			routes[r.Table] = nil
		}
	}
	if len(fronts) == 0 {
		return
	}
	for _, of := range []Lot[Route]{f.goal.Routes, f.have.Routes} {
		for r := range of.All() {
			if _, asked := routes[r.Table]; asked && r.v6() == f.v6 && (f.goal.Routes.Has(r) || !r.ours()) && !slices.Contains(f.goal.OldRoutes, r) {
				routes[r.Table] = append(routes[r.Table], r)
			}
		}
	}
	slices.SortFunc(fronts, compareRules)
	for _, a := range f.addresses {
		for _, rule := range fronts {
			way, found := lookup(routes[rule.Table], a)
			if rule.To.IsValid() && !rule.To.Contains(a) || !found {
				continue
			}
			if !way.Local {
				f.goal.Failed[a] = fmt.Sprintf("a rule that is not ours takes its packets before ours do: %s, where there is %s; delete either, or give ours lower priorities", rule, way)
			}
			break
		}
	}
}

// lookup finds the route with the longest prefix, of these the one with the least metric.
func lookup(routes []Route, to netip.Addr) (best Route, found bool) {
	for _, r := range routes {
		if r.To.Contains(to) && (!found || cmp.Or(cmp.Compare(best.To.Bits(), r.To.Bits()), cmp.Compare(r.Metric, best.Metric)) < 0) {
			best, found = r, true
		}
	}
	return best, found
}
