// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api"
)

// L2Advertisement converts a layer 2 advertisement of either group.
func L2Advertisement(o *api.L2Advertisement) (world.L2Advertisement, []world.Problem) {
	meta, r := open(world.KindL2Advert, &o.ObjectMeta, false)
	spec := &o.Spec
	a := world.L2Advertisement{
		Meta: meta, Homed: homed(&o.ObjectMeta), Pools: slices.Clone(spec.IPAddressPools), Interfaces: slices.Clone(spec.Interfaces),
		PoolSelectors: r.selectors("spec.ipAddressPoolSelectors", spec.IPAddressPoolSelectors),
		NodeSelectors: r.selectors("spec.nodeSelectors", spec.NodeSelectors),
	}
	if len(spec.ServiceSelectors) > 0 {
		r.fail("spec.serviceSelectors", "give these Services a pool of their own, and name it in spec.ipAddressPools",
			"not supported, and without them the addresses of all Services would be answered for")
	}
	if len(spec.PreferredNodeSelectors) > 0 {
		r.degrade("spec.preferredNodeSelectors", "remove them, or write spec.nodeSelectors where no other node is to answer",
			"not supported: any node that may answer does")
	}
	return a, r.problems
}

// BFDProfile converts a BFD profile of either group.
func BFDProfile(o *api.BFDProfile) (world.BFDProfile, []world.Problem) {
	meta, r := open(world.KindBFDProfile, &o.ObjectMeta, false)
	r.degrade("", "remove it, and choose spec.holdTime of the BGPPeers", "BFD is not supported; sessions go by their hold time")
	return world.BFDProfile{Meta: meta, Homed: homed(&o.ObjectMeta)}, r.problems
}
