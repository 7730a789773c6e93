// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"maps"
	"net/netip"
	"slices"
)

// Call is a client's call, as far as rows decide about it.
type Call struct {
	To    Place
	Spent bool   // the limit of the place is reached in this second
	Own   bool   // the client is a backend of the rule that comes first
	Draw  uint32 // what chance says
}

// Answer is what becomes of a call.
type Answer struct {
	Choice  Choice // that counted; the zero one if the place is nobody's
	Verdict Verdict
	Backend netip.AddrPort // if Verdict is Use
	Limited bool           // the limit was why the first choice did not count
	Missing bool           // rows lack what they name: the call is refused
}

// Resolve says what a call meets, as the programs in the kernel do it; memory of clients is not looked at.
func (r Rows) Resolve(c Call) Answer {
	row, ok := r.Places[c.To]
	if !ok && r.Nodes[c.To.Address] {
		row, ok = r.Places[c.To.nodePort()]
	}
	if !ok {
		return Answer{Verdict: Pass}
	}
	a := Answer{Choice: row.First}
	switch {
	case row.First.Spares && c.Own:
		a.Choice = row.Then
	case row.First.Limited && c.Spent:
		a.Choice, a.Limited = row.Then, true
	}
	if a.Verdict = a.Choice.Verdict; a.Verdict != Use {
		return a
	}
	if a.Choice.Count > 0 {
		if slot, ok := r.Slots[SlotKey{a.Choice.Set, c.Draw % a.Choice.Count}]; ok {
			a.Backend = slot.At
			return a
		}
	}
	a.Verdict, a.Missing = Refuse, true
	return a
}

// InOrder lists the places that have a row.
func (r Rows) InOrder() []Place { return slices.SortedFunc(maps.Keys(r.Places), Place.compare) }

// Remembered is the backend that a client keeps at a place; false if it is none any more, or of another rule.
func (r Rows) Remembered(to Place, rule, id uint32) (netip.AddrPort, bool) {
	row, ok := r.Places[to]
	if !ok && r.Nodes[to.Address] {
		row = r.Places[to.nodePort()]
	}
	for _, c := range []Choice{row.First, row.Then} {
		if c.Verdict == Use && c.Rule == rule {
			slot, ok := r.Slots[SlotKey{c.Set, member | id}]
			return slot.At, ok
		}
	}
	return netip.AddrPort{}, false
}
