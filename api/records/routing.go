// SPDX-License-Identifier: Apache-2.0

package records

// Revision orders what the group decided: by epoch, then by index.
type Revision struct {
	Epoch uint64 `json:"epoch"`
	Index uint64 `json:"index"`
}

// States of a service.
const (
	ServiceActive   = "active"   // it has all that it asked for
	ServicePending  = "pending"  // something is missing: see pending
	ServiceDeleting = "deleting" // its routes and addresses are being taken back
)

// Service is a Service as the group last agreed to see it; name is namespace/name.
type Service struct {
	Name            string           `json:"name"`
	UID             string           `json:"uid"`
	State           string           `json:"state" oneof:"active,pending,deleting"`
	Pending         *Pending         `json:"pending"`
	Addresses       []ServiceAddress `json:"addresses"` // that it owns
	Requested       []string         `json:"requested"`
	ExternalIPs     []string         `json:"externalIPs"`
	Ports           []ServicePort    `json:"ports"`
	TrafficPolicy   string           `json:"trafficPolicy" oneof:"Cluster,Local"`      // Cluster, Local
	NextHopsFrom    string           `json:"nextHopsFrom" oneof:"endpoints,all-nodes"` // endpoints, all-nodes
	PublishNotReady bool             `json:"publishNotReady"`
	SharingKey      string           `json:"sharingKey"`
	ReadyEndpoints  int              `json:"readyEndpoints"`
	Endpoints       []Endpoint       `json:"endpoints"`
	Advertisements  []string         `json:"advertisements"` // that choose it by its labels
	// NodePortFamilies are those in which nodes serve its node ports whatever addresses it has: IPv4, IPv6.
	NodePortFamilies []string `json:"nodePortFamilies"`
	// ClusterIPs are its addresses inside the cluster, where nodes resolve those.
	ClusterIPs []string `json:"clusterIPs"`
	// ByOthers are the addresses that other controllers gave it, where nodes take connections to those.
	ByOthers              []string `json:"byOthers"`
	InternalTrafficPolicy string   `json:"internalTrafficPolicy" oneof:"Cluster,Local"` // Cluster, Local: about clusterIPs
	// Probe is how nodes find out which endpoints answer; absent where they do not.
	Probe   *Probe `json:"probe,omitempty"`
	Version uint64 `json:"version"` // resourceVersion acted on; 0 where the source has none
}

// Pending says what is missing: a code for programs, a sentence with the remedy for people.
type Pending struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// ServiceAddress is an address that a service owns, and how far its route is.
type ServiceAddress struct {
	Address   string `json:"address"`
	Pool      string `json:"pool"` // empty: typed by the user
	Releasing bool   `json:"releasing"`
	NextHops  int    `json:"nextHops"`  // that it shall have
	Announced int    `json:"announced"` // of them, on the wire of at least one member
}

// ServicePort is a port that clients dial.
type ServicePort struct {
	Name     string `json:"name"`
	Protocol string `json:"protocol"` // tcp, udp, sctp
	Port     uint16 `json:"port"`
	NodePort uint16 `json:"nodePort"` // 0: none
}

// Endpoint is a pod, or a static address, behind a service.
type Endpoint struct {
	Address     string         `json:"address"`
	Node        string         `json:"node"`
	Ready       bool           `json:"ready"`
	Serving     bool           `json:"serving"`
	Terminating bool           `json:"terminating"`
	Ports       []EndpointPort `json:"ports"`
	// Weight is its share of new connections beside the others'; absent where nobody chose it: 1.
	Weight *uint16 `json:"weight,omitempty"`
	// Failing says that it is not ready because it does not answer probes. Verdict is what most of the nodes that probe think, as of when
	// that changed last; absent where nobody knows.
	Failing bool             `json:"failing,omitempty"`
	Verdict *EndpointVerdict `json:"verdict,omitempty"`
}

// EndpointVerdict is what is thought of an endpoint.
type EndpointVerdict struct {
	Healthy bool   `json:"healthy"`
	Say     uint32 `json:"say"` // how many nodes said so
	Of      uint32 `json:"of"`  // of so many that probe
}

// EndpointPort is where an endpoint answers for the service port of the same name and protocol.
type EndpointPort struct {
	Name     string `json:"name"`
	Protocol string `json:"protocol"`
	Port     uint16 `json:"port"`
}

// Pool is where addresses for services come from.
type Pool struct {
	Name       string   `json:"name"`
	Ranges     []string `json:"ranges"` // "first-last"
	AutoAssign bool     `json:"autoAssign"`
	Allocated  int      `json:"allocated"` // of its addresses, those with an owner
	Size       string   `json:"size"`      // number of addresses, decimal: it may exceed 2^64
	// BGP is to whom its addresses are announced: "every peer", "nobody", or "by" and the names of the BGPAdvertisements that say it.
	BGP     string `json:"bgp"`
	Version uint64 `json:"version"`
}

// Allocation says that a service owns an address; name is "address namespace/name". Asked for by the address
// alone, all its owners are given.
type Allocation struct {
	Name       string   `json:"name"`
	Address    string   `json:"address"`
	Service    string   `json:"service"`
	Pool       string   `json:"pool"`
	Ports      []string `json:"ports"` // "443/tcp"
	SharingKey string   `json:"sharingKey"`
	Releasing  bool     `json:"releasing"`
	Since      Revision `json:"since"`
}

// Route is the announcement of one address; name is the prefix, for example 192.0.2.10/32.
type Route struct {
	Name     string    `json:"name"`
	Prefix   string    `json:"prefix"`
	Services []string  `json:"services"` // owners of the address
	NextHops []NextHop `json:"nextHops"` // by node, then address
}

// NextHop is one node that an address is routed to. State is wanted (its node has yet to acknowledge),
// acknowledged, announced (on the wire of at least one member) or withdrawing (a path may still lead to it).
type NextHop struct {
	Node    string   `json:"node"`
	Address string   `json:"address"`
	State   string   `json:"state"`
	Failed  bool     `json:"failed"` // its node could not carry it out
	Since   Revision `json:"since"`  // wanted, or withdrawn
}

// Node is a machine that can be a next hop.
type Node struct {
	Name         string    `json:"name"`
	UID          string    `json:"uid"`
	Addresses    []string  `json:"addresses"`
	Others       []string  `json:"others"`   // the rest of what the cluster says it has
	Eligible     bool      `json:"eligible"` // the cluster has nothing against it; else why
	Why          string    `json:"why"`
	Liveness     string    `json:"liveness" oneof:"up,agent-down,down"` // up, agent-down, down
	Boot         string    `json:"boot"`
	Acknowledged *Revision `json:"acknowledged"` // by this boot; null if nothing
	Failed       []string  `json:"failed"`       // prefixes that it could not carry out
	Version      uint64    `json:"version"`
}

// NodeConfig is how nodes steer; name is a node's, or * for all others.
type NodeConfig struct {
	Name           string   `json:"name"`
	Switches       []string `json:"switches"`
	InTable        uint32   `json:"inTable"`
	OutTable       uint32   `json:"outTable"`
	ReplaceDefault bool     `json:"replaceDefault"`
}
