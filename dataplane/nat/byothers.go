// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"net/netip"

	"fairlead.io/fairlead/api/desired"
)

// Addresses that other controllers gave Services, by status.loadBalancer, are served where this node's table is in kube-proxy's place, as
// it is for node ports (K32). They may be anything, an address of a node too, and what is not a Service's port there is somebody else's:
// such a packet goes on as it came, where one to an address of ours is refused.

// Sets and chains of such addresses, of each family that has them.
const (
	setOthers         = "others"        // the addresses
	chainOthers       = "others"        // packets to one of them from outside this node
	chainOthersInside = "others-inside" // of a client inside the cluster
)

// byOthers are the addresses of a family that others gave a Service, and that this node serves.
func (c Config) byOthers(s *desired.Service, f family) []netip.Addr {
	if len(s.ByOthers) == 0 || !c.servesNodePorts(f) {
		return nil
	}
	return ofFamily(s.ByOthers, f)
}

// addOthers adds what of the layout serves them. Who comes back from these chains is let through to node ports.
func (c Config) addOthers(r Ruleset, f family) {
	r.Sets[f.name(setOthers)] = Set{Name: f.name(setOthers), Key: []Type{f.addressType}}
	unmark := Rule{SetMark{c.mark() | c.nodePortMark(), 0, 0}}
	services := f.choose(mapServices, byAddress)
	r.add(newChain(f.name(chainOthers), f.fromCluster(chainOthersInside), f.screen(), services, unmark))
	r.add(newChain(f.name(chainOthersInside), f.screen(), f.choose(mapInside, byAddress), services, unmark))
}
