// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm/world"
)

// audience is whom BGPAdvertisements of the manifests have addresses sent to, as far as clients go by it: they ask no switch that is
// not to know of an address.
type audience struct {
	pools          []*world.Pool
	advertisements []*world.Advertisement
}

// has tells whether a switch may be sent an address. Where advertisements choose Services by their labels, or none is about the address,
// each may.
func (u audience) has(at string, a netip.Addr) bool {
	pool := &world.Pool{}
	if i := slices.IndexFunc(u.pools, func(p *world.Pool) bool {
		return slices.ContainsFunc(p.Ranges, func(r world.Range) bool { return r.Contains(a) })
	}); i >= 0 {
		pool = u.pools[i]
	}
	about := false
	for _, ad := range u.advertisements {
		if !ad.Selects(pool.Name, pool.Labels) {
			continue
		}
		about = true
		if len(ad.ServiceSelectors) > 0 || len(ad.Peers) == 0 || slices.Contains(ad.Peers, at) {
			return true
		}
	}
	return !about
}
