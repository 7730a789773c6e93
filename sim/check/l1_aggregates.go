// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
)

// aggregates compares the prefixes of many addresses that switches have with what the one BGPAdvertisement asks for. One stands
// in the place of all its addresses if each of them has next hops, the same ones, that all are ready. Any other is not there.
//
// Left out is what several advertisements make of each other, and a record that an operator has to accept first.
func (r *l1) aggregates(v *fsm.View) {
	bits, plain := r.kube.aggregationLength()
	if !plain || !r.complete() || !v.Group().Quarantine.IsZero() {
		return
	}
	if v.Group().Format == fsm.OldestFormat {
		bits = 0 // it cannot hold what is asked for
	}
	for _, key := range r.scene.routes() {
		f := r.scene.ways.all[key]
		if whole := len(f.NextHops) > 0 && !key.prefix.IsSingleIP(); whole && key.prefix.Bits() != bits {
			r.broken(key.prefix.String()+" at "+key.at, fmt.Sprintf("it forwards a prefix of %d bits, and %d are asked for", key.prefix.Bits(), bits), f.number)
		}
	}
	if bits == 0 {
		return
	}
	for _, block := range blocks(v, bits) {
		if alike(v, block) {
			r.whole(block)
		}
	}
}

// whole finds switches that have a prefix address by address.
func (r *l1) whole(block netip.Prefix) {
	for _, sw := range r.topology.Switches {
		if !r.scene.exchanges(sw, block.Addr()) {
			continue
		}
		r.checked()
		if f := r.scene.ways.all[route{sw, block}]; len(f.NextHops) == 0 {
			r.broken(block.String()+" at "+sw, "all of its addresses have the same next hops, and it does not stand for them", f.number)
		}
		for _, a := range addresses(block) {
			if f := r.scene.ways.all[route{sw, fsm.HostPrefix(a)}]; len(f.Paths) > 0 {
				r.broken(fsm.HostPrefix(a).String()+" at "+sw, block.String()+" stands for it, and it is announced as well", f.number)
			}
		}
	}
}

// blocks lists the prefixes of a length that IPv4 routes lie in, in order.
func blocks(v *fsm.View, bits int) (out []netip.Prefix) {
	for _, rt := range fsm.List[*fsm.Route](v, fsm.TableRoutes) {
		if rt.Prefix.Addr().Is4() {
			out = append(out, netip.PrefixFrom(rt.Prefix.Addr(), bits).Masked())
		}
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return slices.Compact(out)
}

// alike tells whether all addresses of a prefix have the same next hops, all of which are ready and stay.
func alike(v *fsm.View, block netip.Prefix) bool {
	var first []string
	for i, a := range addresses(block) {
		rt, ok := fsm.Get[*fsm.Route](v, fsm.TableRoutes, fsm.HostPrefix(a).String())
		if !ok {
			return false
		}
		ready := committed(v, rt.Prefix)
		var hops []string
		for _, h := range rt.NextHops {
			if _, is := ready[h.Address()]; !is || h.Withdrawing {
				return false
			}
			hops = append(hops, fmt.Sprint(h.Node(), " ", h.Address()))
		}
		slices.Sort(hops)
		if i == 0 {
			first = hops
		}
		if len(hops) == 0 || !slices.Equal(hops, first) {
			return false
		}
	}
	return true
}
