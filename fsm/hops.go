// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

func compareHops(a, b NextHop) int { return compareSpecs(a.spec(), b.spec()) }

func compareSpecs(a, b HopSpec) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), a.Address.Compare(b.Address))
}

func (n NextHop) spec() HopSpec { return HopSpec(n.hop()) }

// wanted are the hops of the command, in order and each once.
func (c *SetRoute) wanted() []HopSpec {
	return slices.Compact(slices.SortedStableFunc(slices.Values(c.Hops), compareSpecs))
}

// merge gives the hops that there are once others are wanted. Both are in order and have each hop once, and so has what comes out.
func merge(have []NextHop, want []HopSpec, now Revision) []NextHop {
	out := make([]NextHop, 0, max(len(have), len(want)))
	beside := func(h NextHop, s HopSpec) int { return compareSpecs(h.spec(), s) }
	pairs(have, want, beside, func(had *NextHop, wanted *HopSpec) {
		if had == nil {
			out = append(out, NextHop{Hop: &Hop{wanted.Node, wanted.Address}, Since: now})
			return
		}
		h := *had
		if keep := wanted != nil; keep == h.Withdrawing {
			h.Withdrawing, h.Since = !keep, now // it turned round
		}
		out = append(out, h)
	})
	return out
}

// pairs visits in order what is in either of two lists, with nil for what the other one lacks. Both are in order and have nothing twice,
// so that one walk along them is enough: compare is asked once for each visit at most.
func pairs[A, B any](as []A, bs []B, compare func(A, B) int, visit func(*A, *B)) {
	for len(as) > 0 && len(bs) > 0 {
		switch side := compare(as[0], bs[0]); {
		case side < 0:
			visit(&as[0], nil)
			as = as[1:]
		case side > 0:
			visit(nil, &bs[0])
			bs = bs[1:]
		default:
			visit(&as[0], &bs[0])
			as, bs = as[1:], bs[1:]
		}
	}
	for i := range as {
		visit(&as[i], nil)
	}
	for i := range bs {
		visit(nil, &bs[i])
	}
}

// formatShortSteps is the first format in which a step of a history is bounded. Before it a step of a route names all its hops.
const formatShortSteps uint32 = 2

// hopsInStep is how many next hops one step names.
const hopsInStep = 8

// hopsTold is how many next hops a step names in the group's format, negative for all of them.
func (tx *txn) hopsTold() int {
	if tx.group().Format < formatShortSteps {
		return -1
	}
	return hopsInStep
}

// hopChange tells in words what differs between the next hops that were and those that merge made of them. It names no more of them than
// told and counts the others; all of them where told is negative.
func hopChange(old, next []NextHop, told int) string {
	var what []string
	more := 0
	pairs(old, next, compareHops, func(was, is *NextHop) {
		verb := verbOf(was, is)
		if verb == "" {
			return
		}
		text := verb + " " + string(is.Node()) + " " + is.Address().String()
		if told >= 0 && len(what) >= told && utf8.ValidString(text) { // what no record can hold is refused, wherever it stands
			more++
			return
		}
		what = append(what, text)
	})
	if more > 0 {
		what = append(what, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(what, ", ")
}

// verbOf is what became of a next hop, empty for nothing; was is nil for one that came.
func verbOf(was, is *NextHop) string {
	switch {
	case is == nil || was != nil && was.Withdrawing == is.Withdrawing:
		return ""
	case was == nil:
		return "want"
	case is.Withdrawing:
		return "withdraw"
	}
	return "want again"
}
