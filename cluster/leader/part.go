// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// Part is what one plan is made from. Each part has guards of its own: what one plan needs and cannot be listed stops no
// other, what changes for one plan makes no work for another, and a plan does not pay for what only the others are asked
// about. Services and Nodes are in both, and what is said about them in the one is nothing to the other.
type Part uint8

// The parts.
const (
	PartServices Part = iota // addresses, announcements and next hops of Services
	PartOutside              // outside load balancers, their drivers and their backends
	PartPolicies             // policies of client-side balancing and their backends
)

// kinds are those of the part, in the order of their names.
func (p Part) kinds() []world.Kind {
	switch p {
	case PartOutside:
		return []world.Kind{
			world.KindBackendGroup, world.KindBackendRecord, world.KindBind, world.KindLoadBalancer, world.KindDriver, world.KindNode,
			world.KindPod, world.KindService,
		}
	case PartPolicies:
		return []world.Kind{world.KindBalancingPolicy, world.KindLocalRedirect, world.KindNode, world.KindPod, world.KindService}
	}
	return []world.Kind{
		world.KindPolicy, world.KindAdvertisement, world.KindPeer, world.KindCommunity, world.KindConfigMap, world.KindEndpointSlice,
		world.KindPool, world.KindL2Advert, world.KindNamespace, world.KindNode, world.KindService,
	}
}

// sources are those that the part is planned from. Outside load balancers, policies and their pods are a cluster's where one is read:
// a folder beside it that never had any of them would be asked, after a change of leader, whether all of them are gone.
func (p Part) sources(all []NamedSource) []NamedSource {
	clusters := slices.DeleteFunc(slices.Clone(all), func(s NamedSource) bool { return !s.World().WholeCluster })
	if p != PartServices && len(clusters) > 0 {
		return clusters
	}
	return all
}

// holdPrefix is what the ids of holds of the part begin with.
func (p Part) holdPrefix() string {
	switch p {
	case PartOutside:
		return "outside-"
	case PartPolicies:
		return "redirects-"
	}
	return ""
}

// holds tells whether a hold is of this part.
func (p Part) holds(id fsm.HoldID) bool {
	if p != PartServices {
		return strings.HasPrefix(string(id), p.holdPrefix())
	}
	return !PartOutside.holds(id) && !PartPolicies.holds(id)
}

// View is w as far as the part goes. It shares memory with w.
func (p Part) View(w world.World) world.World {
	mine := p.kinds()
	kinds := make([]world.KindView, 0, len(mine))
	w.Complete = len(w.Kinds) > 0
	w.Age = time.Duration(0)
	for _, k := range w.Kinds {
		if slices.Contains(mine, k.Kind) {
			kinds = append(kinds, k)
			w.Complete = w.Complete && k.Complete
			w.Age = max(w.Age, k.Age)
		}
	}
	w.Kinds = kinds
	w.BFDProfiles, w.Vouched = nil, nil // no plan is made from them
	if p != PartServices {
		w.EndpointSlices, w.Pools, w.Peers, w.Advertisements, w.Communities, w.ConfigMaps = nil, nil, nil, nil, nil, nil
		w.L2Advertisements, w.AddressPolicies, w.Namespaces = nil, nil, nil
	}
	if p != PartOutside {
		w.Drivers, w.LoadBalancers, w.BackendGroups, w.Binds, w.BackendRecords = nil, nil, nil, nil, nil
	}
	if p != PartPolicies {
		w.BalancingPolicies, w.LocalRedirectPolicies = nil, nil
	}
	if p == PartServices {
		w.Pods = nil
	}
	return w
}
