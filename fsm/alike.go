// SPDX-License-Identifier: Apache-2.0

package fsm

import "slices"

// alike holds what many records say in the same way, so that they share one copy of it: decoding gives each its own. It is this
// member's own memory, no part of the record, and nothing depends on what it has forgotten.
type alike struct {
	words  map[string]string
	hops   map[Hop]*Hop
	lists  map[hopsMark][]NextHop
	offers map[offerMark]*Offer
	causes map[Cause]*Cause
	claims map[claimMark]*Claim
}

// alikeAtMost is how many of each are remembered: there are more nodes in few clusters. When there are more, it begins anew.
const alikeAtMost = 4096

// hopsMark is that of lists of next hops that may well be equal.
type hopsMark struct {
	first, last hopMark
	len         int
}

// hopMark is what a next hop says, which can be compared.
type hopMark struct {
	Hop
	since       Revision
	withdrawing bool
}

func markOf(n NextHop) hopMark { return hopMark{n.hop(), n.Since, n.Withdrawing} }

// portsAtMost is how many ports have what is alike shared: few Services have more.
const portsAtMost = 4

// offerMark is that of offers with no more ports, and one hint or none, which are equal then.
type offerMark struct {
	ports [portsAtMost]EndpointPort
	many  int
	hints int
	hint  Hint
}

// claimMark is that of claims to no more ports, which are equal then.
type claimMark struct {
	pool  PoolName
	key   string
	ports [portsAtMost]Port
	many  int
}

// kept gives what m holds under k, and holds v from now on if that is nothing.
func kept[K comparable, V any](m *map[K]V, k K, v V) V {
	if have, ok := (*m)[k]; ok {
		return have
	}
	if *m == nil || len(*m) >= alikeAtMost {
		*m = map[K]V{}
	}
	(*m)[k] = v
	return v
}

// word gives a copy of s that others have too.
func word[S ~string](a *alike, s S) S { return S(kept(&a.words, string(s), string(s))) }

// sameHops gives a list equal to list, which is the caller's own.
func (a *alike) sameHops(list []NextHop) []NextHop {
	if len(list) == 0 {
		return list
	}
	for i := range list {
		list[i].Hop = a.sameHop(list[i].hop())
	}
	list = slices.Clip(list) // whoever appends to it does so in a copy
	have := kept(&a.lists, hopsMark{markOf(list[0]), markOf(list[len(list)-1]), len(list)}, list)
	if !slices.EqualFunc(have, list, func(x, y NextHop) bool { return markOf(x) == markOf(y) }) {
		return list
	}
	return have
}

func (a *alike) sameHop(h Hop) *Hop {
	if have, ok := a.hops[h]; ok {
		return have
	}
	fresh := Hop{word(a, h.Node), h.Address}
	return kept(&a.hops, fresh, &fresh)
}

// sameEndpoints has a list, which is the caller's own, share what its endpoints have in common with others.
func (a *alike) sameEndpoints(list []Endpoint) {
	for i := range list {
		e := &list[i]
		e.Node = word(a, e.Node)
		e.Offer = a.sameOffer(e.Offer)
	}
}

func (a *alike) sameOffer(o *Offer) *Offer {
	if o == nil || len(o.Ports) > portsAtMost || len(o.Hints) > 1 {
		return o
	}
	mark := offerMark{many: len(o.Ports), hints: len(o.Hints)}
	copy(mark.ports[:], o.Ports)
	for _, h := range o.Hints {
		mark.hint = h
	}
	return kept(&a.offers, mark, o)
}

func (a *alike) sameCause(c Cause) *Cause {
	if have, ok := a.causes[c]; ok {
		return have
	}
	fresh := c // c itself would be made anew for each that asks
	return kept(&a.causes, c, &fresh)
}

func (a *alike) sameClaim(c Claim) *Claim {
	mark := claimMark{pool: c.Pool, key: c.SharingKey, many: len(c.Ports)}
	alone := copy(mark.ports[:], c.Ports) < len(c.Ports)
	if have, ok := a.claims[mark]; ok && !alone {
		return have
	}
	fresh := Claim{word(a, c.Pool), slices.Clip(c.Ports), c.SharingKey}
	if alone {
		return &fresh
	}
	return kept(&a.claims, mark, &fresh)
}

// sameTrail likewise.
func (a *alike) sameTrail(trail Trail) {
	for i := range trail {
		t := &trail[i]
		t.What, t.Cause = word(a, t.What), a.sameCause(t.By())
	}
}

// same has a record that was just decoded, and is nobody else's, share what it can.
func (a *alike) same(r Record) {
	switch r := r.(type) {
	case *Route:
		a.sameTrail(r.History)
		r.NextHops = a.sameHops(r.NextHops)
	case *Service:
		a.sameTrail(r.History)
		a.sameEndpoints(r.Endpoints)
	case *Allocation:
		r.Claim = a.sameClaim(*r.claim())
	case *Binding:
		a.sameTrail(r.History)
	case *LoadBalancer:
		a.sameTrail(r.History)
	case *Grave:
		a.sameTrail(r.History)
	}
}
