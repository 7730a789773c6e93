// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"net/netip"

	"fairlead.io/fairlead/internal/weights"
)

// slotsFor is how many slots endpoints of reduced weights share: at most as many as there would be buckets.
func slotsFor(reduced []uint32) int { return weights.Slots(reduced, bucketsFor(len(reduced))) }

// turns says whose turn it is, for so many turns: at least one target has to be there.
func (t targets) turns(number int) []int {
	if t.weights != nil {
		return weights.Deal(t.weights, number)
	}
	out := make([]int, number)
	for i := range out {
		out[i] = i % len(t.at)
	}
	return out
}

// dealt are the targets by slot: those of a weight have as many slots.
func (t targets) dealt() []netip.AddrPort {
	var out []netip.AddrPort
	if t.shares != nil { // side by side, so that few change hands when shares do
		for i, slots := range t.shares {
			for range slots {
				out = append(out, t.at[i])
			}
		}
		return out
	}
	if t.weights == nil {
		return t.at
	}
	for _, i := range t.turns(slotsFor(t.weights)) {
		out = append(out, t.at[i])
	}
	return out
}
