// SPDX-License-Identifier: Apache-2.0

package check

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/sim/event"
)

// ways are what switches said of prefixes last. Members may announce one prefix in the place of many addresses, and packets
// follow the longest prefix that has an address and leads anywhere.
type ways struct {
	all  map[route]forwarding
	bits []int // how long prefixes were that anything was said of, the longest first
}

func newWays() ways { return ways{all: map[route]forwarding{}} }

func (w *ways) hear(number uint64, x event.Forwarding) {
	w.all[route{x.Switch, x.Prefix}] = forwarding{x, number}
	if bits := x.Prefix.Bits(); !slices.Contains(w.bits, bits) {
		w.bits = append(w.bits, bits)
		slices.SortFunc(w.bits, func(a, b int) int { return b - a })
	}
}

// covering lists what a switch said of the prefixes that have an address, the longest first.
func (w *ways) covering(at string, a netip.Addr) (out []forwarding) {
	for _, bits := range w.bits {
		prefix, err := a.Prefix(bits)
		if err != nil {
			continue // that long are prefixes of the other family only
		}
		if f, said := w.all[route{at, prefix}]; said {
			out = append(out, f)
		}
	}
	return out
}

// to is where a switch sends packets to an address. Where that is nowhere, it is what was said of the longest prefix.
func (w *ways) to(at string, a netip.Addr) forwarding {
	all := w.covering(at, a)
	for _, f := range all {
		if len(f.NextHops) > 0 {
			return f
		}
	}
	if len(all) == 0 {
		return forwarding{}
	}
	return all[0]
}

// paths are all that a switch holds for an address, those of prefixes that a longer one shadows among them.
func (w *ways) paths(at string, a netip.Addr) (out []event.Path) {
	for _, f := range w.covering(at, a) {
		out = append(out, f.Paths...)
	}
	return out
}

// mostAddresses is how many addresses an announced prefix may have (docs/bgp.md: 20 bits and more, 116 and more).
const mostAddresses = 1 << 12

// addresses lists the addresses of a prefix, as many as one may be announced for.
func addresses(p netip.Prefix) (out []netip.Addr) {
	for a := p.Masked().Addr(); p.Contains(a) && len(out) < mostAddresses; a = a.Next() {
		out = append(out, a)
	}
	return out
}
