// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// TableName is the table, of family inet, that is ours.
const TableName = "fairlead-nat"

// Set is a named set or map. Keys and data are in bytes.
type Set struct {
	Name      string
	Key, Data []Type // what they are made of; no Data for a set
	Verdict   bool   // a map whose data are verdicts
	Interval  bool   // elements are ends of ranges
	// Dynamic sets are filled by packets. Their elements are no part of a Ruleset.
	Dynamic bool
	Size    uint32 // most elements, of dynamic sets
}

// Type is a part of a key or of data.
type Type uint8

// Types of parts. Each takes whole registers.
const (
	Address4 Type = iota + 1
	Address6
	ProtocolNumber
	PortNumber
	Word // 32 bits without a meaning to others
)

// Chain is a named list of rules. Packets enter by one that has a Hook.
type Chain struct {
	Name     string
	Hook     Hook
	Priority int32
	Rules    []Rule // of a Ruleset that was read back there are none, only their tags
	Tags     []string
}

func newChain(name string, rules ...Rule) Chain {
	c := Chain{Name: name, Rules: rules}
	for _, r := range rules {
		c.Tags = append(c.Tags, r.Tag())
	}
	return c
}

// Hook is where the kernel enters a chain.
type Hook uint8

// Hooks, for the first packet of each connection.
const (
	NoHook Hook = iota
	Prerouting
	Output
	Postrouting
)

// Element is an entry of a set. Key and Data are bytes as the kernel has them; of maps of verdicts Data is as in
// Verdict, of intervals it is intervalEnd for the first key that is outside again.
type Element struct{ Set, Key, Data string }

const intervalEnd = "end"

// Ruleset is everything in the table, as plain values.
type Ruleset struct {
	Sets     map[string]Set
	Chains   map[string]Chain
	Elements map[string]map[string]string // by set and key; of sets that are not dynamic
}

func newRuleset() Ruleset {
	return Ruleset{Sets: map[string]Set{}, Chains: map[string]Chain{}, Elements: map[string]map[string]string{}}
}

// put adds elements.
func (r Ruleset) put(elements []Element) {
	for _, e := range elements {
		m := r.Elements[e.Set]
		if m == nil {
			m = map[string]string{}
			r.Elements[e.Set] = m
		}
		m[e.Key] = e.Data
	}
}

// size is how many elements there are.
func (r Ruleset) size() (n int) {
	for _, elements := range r.Elements {
		n += len(elements)
	}
	return n
}

// Change leads from one Ruleset to another. It is carried out in the order of its fields, in one transaction; but see
// Split.
type Change struct {
	AddSets    []Set
	AddChains  []Chain
	Refill     []Chain // whose rules are replaced
	Remove     []Element
	Add        []Element
	DropChains []string
	DropSets   []string
}

// Empty tells whether nothing changes.
func (c Change) Empty() bool {
	return len(c.AddSets)+len(c.AddChains)+len(c.Refill)+len(c.Remove)+len(c.Add)+len(c.DropChains)+len(c.DropSets) == 0
}

// Split gives what can be done beforehand, because nothing leads to it yet, and the rest. A packet that is on its way
// through the table while a transaction ends may find a new element but no rule yet in the new chain that it names, and
// would leave untranslated; it finds them if the chain is there before.
func (c Change) Split() (before, rest Change) {
	fresh := map[string]bool{}
	for _, s := range c.AddSets {
		fresh[s.Name] = true
	}
	before, rest = Change{AddSets: c.AddSets, AddChains: c.AddChains}, c
	rest.AddSets, rest.AddChains, rest.Add = nil, nil, nil
	for _, e := range c.Add {
		if fresh[e.Set] {
			before.Add = append(before.Add, e)
		} else {
			rest.Add = append(rest.Add, e)
		}
	}
	return before, rest
}

// Compatible tells whether a Change leads from a table to another: sets and entered chains cannot be altered once
// they are there. If not, the table has to be replaced as a whole.
func Compatible(from, to Ruleset) bool {
	for name, have := range from.Sets {
		if want, ok := to.Sets[name]; ok && !sameSet(have, want) {
			return false
		}
	}
	for name, have := range from.Chains {
		if want, ok := to.Chains[name]; ok && (have.Hook != want.Hook || have.Priority != want.Priority) {
			return false
		}
	}
	return true
}

func sameSet(a, b Set) bool {
	return slices.Equal(a.Key, b.Key) && slices.Equal(a.Data, b.Data) && a.Verdict == b.Verdict &&
		a.Interval == b.Interval && a.Dynamic == b.Dynamic && a.Size == b.Size
}

// Diff is the Change from one Ruleset to another that is Compatible.
func Diff(from, to Ruleset) Change {
	var c Change
	for _, name := range slices.Sorted(maps.Keys(to.Sets)) {
		if _, ok := from.Sets[name]; !ok {
			c.AddSets = append(c.AddSets, to.Sets[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(to.Chains)) {
		want := to.Chains[name]
		have, ok := from.Chains[name]
		switch {
		case !ok:
			c.AddChains = append(c.AddChains, want)
		case !slices.Equal(have.Tags, want.Tags):
			c.Refill = append(c.Refill, want)
		}
	}
	for name := range from.Chains {
		if _, ok := to.Chains[name]; !ok {
			c.DropChains = append(c.DropChains, name)
		}
	}
	for name := range from.Sets {
		if _, ok := to.Sets[name]; !ok {
			c.DropSets = append(c.DropSets, name)
		}
	}
	c.elements(from, to)
	c.sort()
	return c
}

// elements compares those of sets that stay, and adds those of new ones. A set that goes takes its own along, but before
// it chains go, and a chain cannot while a verdict names it.
func (c *Change) elements(from, to Ruleset) {
	for set, have := range from.Elements {
		want := to.Elements[set]
		was, known := from.Sets[set]
		if _, stays := to.Sets[set]; known && !stays && !was.Verdict {
			continue
		}
		for key, data := range have {
			if now, ok := want[key]; !ok || now != data {
				c.Remove = append(c.Remove, Element{set, key, data})
			}
		}
	}
	for set, want := range to.Elements {
		have := from.Elements[set]
		for key, data := range want {
			if was, ok := have[key]; !ok || was != data {
				c.Add = append(c.Add, Element{set, key, data})
			}
		}
	}
}

// sort makes Changes that are equal look equal.
func (c *Change) sort() {
	byKey := func(a, b Element) int { return cmp.Or(strings.Compare(a.Set, b.Set), strings.Compare(a.Key, b.Key)) }
	slices.SortFunc(c.Remove, byKey)
	slices.SortFunc(c.Add, byKey)
	slices.Sort(c.DropChains)
	slices.Sort(c.DropSets)
}
