// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"slices"
	"strings"

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
	for i, name := range spec.Interfaces {
		r.interfaceName(fmt.Sprintf("spec.interfaces[%d]", i), name)
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

// maxInterfaceName is how long the name of an interface can be on Linux (IFNAMSIZ, without the byte at its end).
const maxInterfaceName = 15

// interfaceName tells of a name that no interface has: nobody answers there. A pattern is meant by what has the signs of one, though Linux would let an
// interface be called so.
func (r *report) interfaceName(field, name string) {
	switch {
	case strings.ContainsAny(name, "*?[]{}^$"):
		r.degrade(field, "write the name of each interface in full, a list entry each", "%q is taken as the name of one interface, and not as a pattern: nobody answers there", name)
	case name == "", name == ".", name == "..", len(name) > maxInterfaceName, strings.ContainsAny(name, "/: \t\n\v\f\r"):
		r.degrade(field, fmt.Sprintf("write it as `ip link` on the nodes shows it, without / : and spaces, %d bytes at most", maxInterfaceName),
			"no interface can be called %q: nobody answers there", name)
	}
}

// BFDProfile converts a BFD profile of either group.
func BFDProfile(o *api.BFDProfile) (world.BFDProfile, []world.Problem) {
	meta, r := open(world.KindBFDProfile, &o.ObjectMeta, false)
	r.degrade("", "remove it, and choose spec.holdTime of the BGPPeers", "BFD is not supported; sessions go by their hold time")
	return world.BFDProfile{Meta: meta, Homed: homed(&o.ObjectMeta)}, r.problems
}
