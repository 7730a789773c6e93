// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"
)

// Plan lists the changes that lead from what the kernel has to a goal that Aim set for it, in the order in which they
// are to be made. Whoever carries it out may stop anywhere and plan anew, and note in have what was done. What there is
// to do is known when Plan returns; its changes are made as they are asked for, since there may be as many as addresses.
//
// At every step an address that was steered and stays wanted is steered, and what is delivered here is filtered.
// Connections under way keep the way of their answers, also when the packet marks change: first there are ip rules for
// the new mark, then connections get it with their next packet, then the idle ones do, then the former mark goes.
func Plan(have *View, goal Goal) iter.Seq[Change] {
	p := planner{
		have: have, goal: goal, edited: have.Filter,
		newRules: sortedRules(goal.Rules.without(have.Rules)), oldRules: sortedRules(have.Rules.without(goal.Rules)),
		newRoutes: goal.Routes.without(have.Routes).sorted(compareRoutes), oldRoutes: have.Routes.without(goal.Routes).sorted(compareRoutes),
		newElements: goal.Elements.without(have.Elements).sorted(compareElements), oldElements: have.Elements.without(goal.Elements).sorted(compareElements),
	}
	p.settings()
	p.followMarks()
	p.filter()
	p.addRoutes()
	p.addRules()
	p.takeDefault()
	p.settleMarks()
	p.removeRules()
	p.removeRoutes()
	p.removeElements()
	p.restoreSettings()
	return func(yield func(Change) bool) {
		for _, part := range p.changes {
			for c := range part {
				if !yield(c) {
					return
				}
			}
		}
	}
}

type planner struct {
	have    *View
	goal    Goal
	edited  string // the nftables table's rules, as the changes leave them
	changes []iter.Seq[Change]

	// What is wanted and missing, and what is there and not wanted, others' included.
	newRules, oldRules       []Rule
	newRoutes, oldRoutes     List[Route]
	newElements, oldElements List[Element]
}

func (p *planner) add(c ...Change) { p.changes = append(p.changes, slices.Values(c)) }

// each adds a change for each route of a list.
func (p *planner) each(routes List[Route], change func(Route) Change) {
	p.changes = append(p.changes, func(yield func(Change) bool) {
		for r := range routes.All() {
			if !yield(change(r)) {
				return
			}
		}
	})
}

func (p *planner) settings() {
	values := map[Setting]string{}
	for s, value := range p.goal.Settings {
		if p.have.Settings[s] != value {
			values[s] = value
		}
	}
	if len(values) > 0 {
		p.add(SetSettings{values})
	}
}

// followMarks has the rules of marks that go apply to those of now as well, before the nftables table sets these: to
// stay, or until other rules have taken their place.
func (p *planner) followMarks() {
	m, ok := marksOf(p.goal.Filter)
	if !ok {
		return
	}
	var follow Lot[Rule]
	for _, old := range p.oldRules {
		if r := m.follow(old, p.have.Filter); old.ours() && r != old && !p.have.has(r) {
			follow.Add(r)
		}
	}
	for _, r := range sortedRules(follow) {
		p.add(AddRule{r})
		if !p.goal.Rules.Has(r) {
			p.oldRules = append(p.oldRules, r)
		}
	}
	p.newRules = slices.DeleteFunc(p.newRules, func(r Rule) bool { return follow.Has(r) })
}

// filter makes the nftables table, or adds what is missing in it. Ports of an address that stays are changed in the
// same transaction. While connections may bear a former mark, the table's rules give them that of now.
func (p *planner) filter() {
	if p.goal.Filter == "" {
		return
	}
	filter := p.goal.Filter
	if m, ok := marksOf(filter); ok {
		filter = m.after(p.have.Filter).filter()
	}
	if p.have.Filter != filter {
		p.reset(filter)
		return
	}
	edit := EditFilter{Filter: filter, Add: p.newElements, Remove: p.oldElements.only(func(e Element) bool {
		return e.Port.Protocol != 0 && p.goal.Elements.Has(AddressElement(e.Address))
	})}
	if edit.Add.Len()+edit.Remove.Len() > 0 {
		p.add(edit)
	}
}

// reset makes the nftables table anew. What is not wanted any more stays in it until the rules for it have gone.
func (p *planner) reset(filter string) {
	var all Lot[Element]
	all.put(p.goal.Elements)
	all.put(p.have.Elements)
	p.add(EditFilter{Filter: filter, Reset: true, Add: all.sorted(compareElements)})
	p.edited = filter
}

// settleMarks ends the time in which connections may bear a former mark.
func (p *planner) settleMarks() {
	if m, ok := marksOf(p.edited); p.goal.Filter != "" && ok && m.former != 0 {
		p.add(Remark{From: m.former, To: m.out})
		p.reset(p.goal.Filter)
	}
}

// addRoutes adds routes of our tables, over what is at their places.
func (p *planner) addRoutes() {
	over := p.occupied()
	p.each(p.newRoutes.only(func(r Route) bool { return r.Table != mainTable }), func(r Route) Change {
		return PutRoute{Route: r, Over: over[r.place()]}
	})
}

// occupied tells which routes stand where new ones go.
func (p *planner) occupied() map[place]Route {
	out := map[place]Route{}
	if p.newRoutes.Len() == 0 {
		return out
	}
	for r := range p.oldRoutes.All() { // what stays is at no new route's place
		if o, there := out[r.place()]; !there || r.ours() && !o.ours() {
			out[r.place()] = r
		}
	}
	return out
}

func (p *planner) addRules() {
	for _, r := range p.newRules {
		p.add(AddRule{r})
	}
}

// takeDefault takes the node's default route over.
func (p *planner) takeDefault() {
	over := p.occupied()
	p.each(p.newRoutes.only(func(r Route) bool { return r.Table == mainTable }), func(r Route) Change {
		return TakeDefault{Route: r, Over: over[r.place()]}
	})
}

func (p *planner) removeRules() {
	for _, r := range p.oldRules {
		if r.ours() {
			p.add(DeleteRule{r})
		}
	}
	for _, r := range slices.SortedFunc(slices.Values(p.goal.OldRules), compareRules) {
		p.add(DeleteRule{r})
	}
}

// removeRoutes removes routes that were not replaced.
func (p *planner) removeRoutes() {
	if p.oldRoutes.Len() == 0 {
		return
	}
	replaced := map[place]bool{}
	for r := range p.newRoutes.All() {
		replaced[r.place()] = true
	}
	p.each(p.oldRoutes.only(func(r Route) bool {
		return !replaced[r.place()] && (r.ours() || slices.Contains(p.goal.OldRoutes, r))
	}), func(r Route) Change {
		if r.ours() && r.Table == mainTable {
			return GiveDefault{r}
		}
		return DeleteRoute{r}
	})
}

// removeElements comes after the rules of the addresses have gone: until then packets to them are delivered here, and
// have to be filtered.
func (p *planner) removeElements() {
	if p.goal.Filter == "" {
		if p.have.Filter != "" {
			p.add(DropFilter{})
		}
		return
	}
	edit := EditFilter{Filter: p.edited, Remove: p.oldElements.only(func(e Element) bool {
		early := p.have.Filter == p.edited && e.Port.Protocol != 0 && p.goal.Elements.Has(AddressElement(e.Address))
		return !early
	})}
	if edit.Remove.Len() > 0 {
		p.add(edit)
	}
}

func (p *planner) restoreSettings() {
	var back []Setting
	for s := range p.have.Changed {
		if _, wanted := p.goal.Settings[s]; !wanted {
			back = append(back, s)
		}
	}
	if len(back) > 0 {
		slices.SortFunc(back, func(a, b Setting) int { return cmp.Compare(a.Path(), b.Path()) })
		p.add(RestoreSettings{back})
	}
}

func sortedRules(rules Lot[Rule]) []Rule { return slices.Collect(rules.sorted(compareRules).All()) }

func compareRules(a, b Rule) int {
	return cmp.Or(
		cmp.Compare(a.Priority, b.Priority), comparePrefixes(a.To, b.To), comparePrefixes(a.From, b.From),
		cmp.Compare(a.Table, b.Table), cmp.Compare(a.Mark, b.Mark), cmp.Compare(a.Protocol, b.Protocol),
		cmp.Compare(a.Other, b.Other),
	)
}

func compareRoutes(a, b Route) int {
	return cmp.Or(
		cmp.Compare(a.Table, b.Table), comparePrefixes(a.To, b.To), cmp.Compare(a.Metric, b.Metric),
		cmp.Compare(a.Protocol, b.Protocol), a.Gateway.Compare(b.Gateway), cmp.Compare(a.Device, b.Device),
		cmp.Compare(a.Other, b.Other),
	)
}

func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}

func compareElements(a, b Element) int {
	return cmp.Or(
		cmp.Compare(a.Set, b.Set), a.Address.Compare(b.Address), cmp.Compare(a.Port.Protocol, b.Port.Protocol),
		cmp.Compare(a.Port.Number, b.Port.Number), cmp.Compare(a.Interface, b.Interface),
	)
}
