// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"net/netip"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// OurClass is the spec.loadBalancerClass that names this product.
const OurClass = "fairlead.io/lb"

// Admitted is what the evidence guard lets the plan act on, of one source (design §5).
type Admitted struct {
	// World is what may be acted on. What is in it may be added or changed.
	World *world.World
	// Complete says that a complete view passed the guard since this leader took over.
	Complete bool
	// MayRemove tells whether the absence of an object from World may be acted on. For KindEndpointSlice the id is
	// that of the Service: its endpoints that are not in World may then go. Nil means that nothing may.
	MayRemove func(kind world.Kind, id world.ID) bool
	// WhyNot tells why not; the zero Reason if it does not know. Nil knows nothing.
	WhyNot func(kind world.Kind, id world.ID) Reason
}

// Options are the choices of an operator that planning depends on. They must be equal on all members.
type Options struct {
	// Class is the spec.loadBalancerClass to handle; empty means OurClass.
	Class string
	// IgnoreUnclassed leaves Services without a class to somebody else.
	IgnoreUnclassed bool
	// NodePorts has the record hold every Service that has node ports, so that nodes can serve those.
	NodePorts bool
	// ClusterIPs has the record hold every Service that has a ClusterIP, so that nodes can resolve those.
	ClusterIPs bool
	// BalancingPolicies has the record hold policies of client-side balancing. Otherwise it has none.
	BalancingPolicies bool
	// Tunnels are how hosts reach each other's proxy ports; zero for not at all.
	Tunnels fsm.TunnelSettings
	// NodeAddress is the type of address that a next hop is; empty means InternalIP.
	NodeAddress world.AddressType
	// AsideCordoned has new flows go past nodes that are cordoned, where another node may be announced.
	AsideCordoned bool
	// AsideTaints has the same for nodes with a taint of one of these keys.
	AsideTaints []string
	// ExternalIPs is what becomes of addresses in spec.externalIPs that no AddressPolicy allows.
	ExternalIPs ExternalIPs
	// ClusterCIDRs are what pods and Services inside have addresses of. No Service comes to have one of them, neither by spec.externalIPs nor of a pool.
	ClusterCIDRs []netip.Prefix
	// LegacyPeers reads the BGP neighbours out of the config map of an old installation; nil reads none. It must be
	// a pure function. Each neighbour has an address of its own; the names may be alike. Faults tell of neighbours that cannot
	// be used, an error each, beside the others; err of a config map that cannot be used at all.
	LegacyPeers func(world.ConfigMap) (peers []fsm.Peer, faults []error, err error)
}

func (o Options) class() string {
	if o.Class == "" {
		return OurClass
	}
	return o.Class
}

func (o Options) nodeAddress() world.AddressType {
	if o.NodeAddress == "" {
		return world.InternalIP
	}
	return o.NodeAddress
}

// Input is everything that Plan knows.
type Input struct {
	Views   []Admitted
	Record  *fsm.View
	Options Options
	// ServiceCIDRs are the prefixes from which the API server gives out ClusterIPs, as far as it says so. They count as ClusterCIDRs do.
	ServiceCIDRs []netip.Prefix
	// Excused are members whose paths no switch can hold any more: they were lost for longer than that takes, on
	// this leader's monotonic clock.
	Excused []fsm.ServerID
	// ExcusedNodes are nodes of which the same holds for what they announce themselves.
	ExcusedNodes []fsm.NodeID
	// Servers are those of the Raft configuration; nil means that they are not known.
	Servers []fsm.ServerID
	// Adopting says that what shows outside load balancers is not all in the record yet.
	Adopting bool
	// Leased says that nodes may still use leases that the record lost when it began another life.
	Leased bool
	// Now is put on proposals for people to read. Nothing is decided by it.
	Now time.Time
}

// Result is what Plan proposes, in order, and what waits.
type Result struct {
	// Urgent takes next hops away. It depends on nothing in Bulk.
	Urgent []fsm.Proposal
	Bulk   []fsm.Proposal
	// Waiting tells, in order of kind and name, what is not as the sources ask for, and why.
	Waiting []Explanation
}

// Explanation says why something waits: a stable code for programs and a sentence with the remedy for people.
type Explanation struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Code string `json:"code"`
	Text string `json:"text"`
}
