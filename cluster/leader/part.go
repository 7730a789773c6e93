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
)

// kinds are those of the part, in the order of their names.
func (p Part) kinds() []world.Kind {
	if p == PartOutside {
		return []world.Kind{
			world.KindBackendGroup, world.KindBackendRecord, world.KindBind, world.KindLoadBalancer, world.KindDriver, world.KindNode,
			world.KindPod, world.KindService,
		}
	}
	return []world.Kind{
		world.KindPolicy, world.KindAdvertisement, world.KindPeer, world.KindCommunity, world.KindConfigMap, world.KindEndpointSlice,
		world.KindPool, world.KindL2Advert, world.KindNamespace, world.KindNode, world.KindService,
	}
}

// sources are those that the part is planned from. Outside load balancers and their pods are a cluster's where one is read:
// a folder beside it that never had any of them would be asked, after a change of leader, whether all of them are gone.
func (p Part) sources(all []NamedSource) []NamedSource {
	clusters := slices.DeleteFunc(slices.Clone(all), func(s NamedSource) bool { return !s.World().WholeCluster })
	if p == PartOutside && len(clusters) > 0 {
		return clusters
	}
	return all
}

// outsideHold is what the ids of holds of PartOutside begin with.
const outsideHold = "outside-"

func (p Part) holdPrefix() string {
	if p == PartOutside {
		return outsideHold
	}
	return ""
}

// holds tells whether a hold is of this part.
func (p Part) holds(id fsm.HoldID) bool {
	return strings.HasPrefix(string(id), outsideHold) == (p == PartOutside)
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
	w.BFDProfiles, w.BalancingPolicies, w.LocalRedirectPolicies = nil, nil, nil // no plan is made from them
	if p == PartOutside {
		w.EndpointSlices, w.Pools, w.Peers, w.Advertisements, w.Communities, w.ConfigMaps = nil, nil, nil, nil, nil, nil
		w.L2Advertisements, w.AddressPolicies, w.Namespaces = nil, nil, nil
	} else {
		w.Drivers, w.LoadBalancers, w.BackendGroups, w.Binds, w.BackendRecords, w.Pods = nil, nil, nil, nil, nil, nil
	}
	return w
}
