// SPDX-License-Identifier: Apache-2.0

package records

import (
	"math/big"
	"net/netip"
	"strings"

	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/fsm"
)

func (r *renderer) pool(p *fsm.Pool) any {
	return records.Pool{
		Name: string(p.Name), AutoAssign: p.AutoAssign, Version: p.Version,
		Ranges:    each(p.Ranges, func(g fsm.Range) string { return g.From.String() + "-" + g.To.String() }),
		Allocated: r.allocatedIn(p.Name), Size: sizeOf(p.Ranges).String(), BGP: r.announcedTo(p.Name),
	}
}

// announcedTo says to people whom the addresses of a pool are announced to by BGP.
func (r *renderer) announcedTo(pool fsm.PoolName) string {
	var by []string
	nobody := false
	for _, ad := range fsm.List[*fsm.Advertisement](r.view, fsm.TableAdvertisements) {
		switch {
		case !ad.OfPool(pool):
		case ad.Terms.Fallback:
			nobody = ad.Silent()
		default:
			by = append(by, string(ad.Name))
		}
	}
	switch {
	case len(by) > 0:
		return "by " + strings.Join(by, ", ")
	case nobody:
		return "nobody"
	}
	return "every peer"
}

func (r *renderer) allocatedIn(pool fsm.PoolName) int {
	if r.allocated == nil {
		r.allocated = map[fsm.PoolName]int{}
		var last netip.Addr
		for _, a := range fsm.List[*fsm.Allocation](r.view, fsm.TableAllocations) {
			if a.Address != last { // owners that share an address stand beside each other
				r.allocated[a.Pool()]++
			}
			last = a.Address
		}
	}
	return r.allocated[pool]
}

func sizeOf(ranges []fsm.Range) *big.Int {
	size := new(big.Int)
	for _, g := range ranges {
		from, to := new(big.Int).SetBytes(g.From.AsSlice()), new(big.Int).SetBytes(g.To.AsSlice())
		size.Add(size, to.Sub(to, from)).Add(size, big.NewInt(1))
	}
	return size
}
