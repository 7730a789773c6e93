// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"net/netip"
	"slices"
	"strings"
)

// span is a range of addresses of one family; without an end it goes up to the last address.
type span struct {
	first netip.Addr
	after netip.Addr // first that is outside again; invalid if there is none
}

// spans are the ranges that prefixes cover, in order, apart from each other: neighbours are joined, because the ends
// of one range and the beginning of the next cannot stand side by side.
func spans(f family, prefixes []netip.Prefix) []span {
	prefixes = slices.DeleteFunc(slices.Clone(prefixes), func(p netip.Prefix) bool {
		return !p.IsValid() || familyOf(p.Addr()) != f
	})
	for i, p := range prefixes {
		prefixes[i] = p.Masked()
	}
	slices.SortFunc(prefixes, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	var out []span
	for _, p := range prefixes {
		next := span{p.Addr(), lastOf(p).Next()}
		if n := len(out); n > 0 && (!out[n-1].after.IsValid() || next.first.Compare(out[n-1].after) <= 0) {
			out[n-1].after = later(out[n-1].after, next.after)
			continue
		}
		out = append(out, next)
	}
	return out
}

// without are spans less a range of their family, which does not end with the last address.
func without(all []span, hole netip.Prefix) (out []span) {
	first, after := hole.Addr(), lastOf(hole).Next()
	for _, s := range all {
		if s.after.IsValid() && s.after.Compare(first) <= 0 || after.Compare(s.first) <= 0 {
			out = append(out, s)
			continue
		}
		if s.first.Less(first) {
			out = append(out, span{s.first, first})
		}
		if !s.after.IsValid() || after.Less(s.after) {
			out = append(out, span{after, s.after})
		}
	}
	return out
}

// later is the later of two ends.
func later(a, b netip.Addr) netip.Addr {
	if !a.IsValid() || !b.IsValid() {
		return netip.Addr{}
	}
	if a.Less(b) {
		return b
	}
	return a
}

func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(b)*8; bit++ {
		b[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(b)
	return last
}

// intervals are the elements by which a set covers prefixes.
func intervals(set string, f family, prefixes []netip.Prefix) []Element {
	return ends(set, spans(f, prefixes))
}

// ends are the elements by which a set covers spans.
func ends(set string, of []span) []Element {
	var out []Element
	for _, s := range of {
		out = append(out, Element{set, string(s.first.AsSlice()), ""})
		if s.after.IsValid() {
			out = append(out, Element{set, string(s.after.AsSlice()), intervalEnd})
		}
	}
	return out
}

// allowance is who may use a service address: one set and one chain for each different list of source ranges, named
// by what is in them, so that they never change.
func (c Config) allowance(f family, ranges []netip.Prefix) piece {
	own := slices.ContainsFunc(c.NodeAddresses, func(a netip.Addr) bool {
		return familyOf(a) == f && slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(a.Unmap()) })
	})
	elements := intervals("", f, ranges)
	var content strings.Builder
	for _, e := range elements {
		content.WriteString(e.Data + e.Key)
	}
	if own {
		content.WriteString("own")
	}
	name := f.name("allow") + "-" + shortHash(content.String())
	rules := []Rule{{Load{f.source, 0}, Member{name, 0}, Verdict{VerdictReturn}}}
	if own {
		// The source of what this node sends may be the service address itself, instead of one of its own.
		rules = append(rules, Rule{Load{Inbound, 0}, Match{Register: 0, Value: word(0)}, Verdict{VerdictReturn}})
	}
	for i := range elements {
		elements[i].Set = name
	}
	return piece{
		name:     name,
		sets:     []Set{{Name: name, Key: []Type{f.addressType}, Interval: true}},
		chains:   []Chain{newChain(name, append(rules, Rule{Verdict{goTo(chainSource)}})...)},
		elements: elements,
	}
}
