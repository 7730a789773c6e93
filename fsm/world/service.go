// SPDX-License-Identifier: Apache-2.0

package world

import (
	"net/netip"
	"slices"
	"time"
)

// Protocol of a port.
type Protocol string

// The protocols that a Service may name.
const (
	TCP  Protocol = "TCP"
	UDP  Protocol = "UDP"
	SCTP Protocol = "SCTP"
)

// Family is an IP family.
type Family string

// The IP families.
const (
	IPv4 Family = "IPv4"
	IPv6 Family = "IPv6"
)

// FamilyOf tells the family of an address.
func FamilyOf(a netip.Addr) Family {
	if a.Is4() {
		return IPv4
	}
	return IPv6
}

// Scheduler is how nodes choose the endpoint of a new connection, by the name that IPVS has for it. Empty is by chance.
type Scheduler string

// The schedulers that there are.
const (
	RoundRobin         Scheduler = "rr"  // each node in turn
	WeightedRoundRobin Scheduler = "wrr" // likewise, by weights
	SourceHash         Scheduler = "sh"  // by the client's address, alike on all nodes
	DestinationHash    Scheduler = "dh"  // by the address that is dialled, alike on all nodes
	ConsistentHash     Scheduler = "mh"  // by protocol, addresses and ports, alike on all nodes
	// Each node by what it counts of connections:
	LeastConnections         Scheduler = "lc"  // the fewest
	WeightedLeastConnections Scheduler = "wlc" // the fewest for the weight
	ShortestExpectedDelay    Scheduler = "sed" // likewise, the new one included
	NeverQueue               Scheduler = "nq"  // one that has none, else likewise
	// These keep for each address that is dialled, until that is overloaded:
	LocalityLeastConnections           Scheduler = "lblc"  // one
	LocalityLeastConnectionsReplicated Scheduler = "lblcr" // some, as many as it takes
)

// Service is a Service of any type, with defaults filled in.
type Service struct {
	Meta
	Ports []ServicePort

	ClusterIPs  []netip.Addr
	ExternalIPs []netip.Addr
	// Shown are the addresses in status.loadBalancer: what users were told, whoever wrote it.
	Shown []netip.Addr
	// Labels are what pools and advertisements select Services by; those of Services that can have no address are left out.
	Labels []KV
	// Extra is what it has beside all that; nil for nothing. See Extras.
	Extra *Extra

	Type                  ServiceType
	ExternalTrafficPolicy TrafficPolicy
	InternalTrafficPolicy TrafficPolicy
	FamilyPolicy          FamilyPolicy
	// Families are zero where nobody chose: one family, any.
	Families Families
	// NextHops is how the next hops are chosen.
	NextHops NextHops
	// PublishNotReady says that endpoints serve from their start to their end, ready or not.
	PublishNotReady bool
	// NodePorts is false if the Service renounced node ports (allocateLoadBalancerNodePorts: false).
	NodePorts bool
	// HealthCheckNodePort is where nodes answer for their local endpoints; zero means nowhere.
	HealthCheckNodePort uint16
	// HasSelector says that Kubernetes makes the endpoints, from pods.
	HasSelector bool
	// Headless says that the Service has no cluster address: clients dial the endpoints.
	Headless bool
	// Foreign says that the Service is left to another service proxy or balancer by label.
	Foreign bool
}

// Extra is what few Services have, so that the others have no room for it.
type Extra struct {
	// Requested are the addresses asked for by spec.loadBalancerIP or by annotation, without those that are in
	// ExternalIPs: an address named both ways is one address.
	Requested []netip.Addr
	// Proxied are those of Shown where connections are to be sent (ipMode Proxy), instead of being taken by the nodes.
	Proxied []netip.Addr
	// Pool is the pool asked for by annotation; empty means any.
	Pool string
	// SharingKey lets Services with the same key and disjoint ports have one address.
	SharingKey string
	// Selector is spec.selector, in one form for all that are equal. It is left out unless the Service is of policy Local and may come to
	// share an address: such Services do if they lead to the same pods.
	Selector string
	// Class is spec.loadBalancerClass, empty if unset.
	Class string
	// Choosing is what it asks for by annotation of how nodes choose among endpoints; nil for nothing. See Choice.
	Choosing *Choosing
	// Affinity is how long a client keeps its endpoint; zero means no affinity.
	Affinity time.Duration
	// SourceRanges are the only clients that may use the addresses; none means all.
	SourceRanges []netip.Prefix
	// Annotations are those with a prefix of ours or of a system that we replace.
	Annotations []KV
}

// Extras is what the Service has of what few have.
func (s *Service) Extras() Extra {
	if s.Extra == nil {
		return Extra{}
	}
	return *s.Extra
}

// Intercepted are those of Shown at which nodes take connections themselves (ipMode VIP, or none), instead of sending them where
// the address is (ipMode Proxy).
func (s *Service) Intercepted() []netip.Addr {
	if s.Extra == nil || len(s.Extra.Proxied) == 0 {
		return s.Shown
	}
	return slices.DeleteFunc(slices.Clone(s.Shown), func(a netip.Addr) bool { return slices.Contains(s.Extra.Proxied, a) })
}

// Choosing is how nodes choose among the endpoints of a Service that asks for it.
type Choosing struct {
	Scheduler Scheduler
	// Weights are the rules by which endpoints have theirs; see WeightOf.
	Weights []WeightRule
	// Probes are how nodes find out which endpoints answer; zero for not at all.
	Probes HealthCheck
}

// Choice is what the Service asks for of how nodes choose among endpoints.
func (s *Service) Choice() Choosing {
	if s.Extra == nil || s.Extra.Choosing == nil {
		return Choosing{}
	}
	return *s.Extra.Choosing
}

// ServicePort is one port that clients dial.
type ServicePort struct {
	Name     string
	Protocol Protocol
	Port     uint16
	// NodePort is zero if there is none.
	NodePort uint16
	// TargetPort is a number or a name, as written; what counts is the port in the EndpointSlice.
	TargetPort  string
	AppProtocol string
}

// EndpointSlice is some of the endpoints of one Service, all of one family, which their addresses tell.
type EndpointSlice struct {
	Meta
	// ServiceName is that of the Service, which is in the slice's own namespace. See Service.
	ServiceName string
	Ports       []EndpointPort
	Endpoints   []Endpoint
	// ChangedUnixMilli is when the cause of its newest change was, by the clock of whoever wrote it; zero if it does not
	// say. It is for measuring, nothing is decided by it.
	ChangedUnixMilli int64
}

// Service is the one whose endpoints these are.
func (s *EndpointSlice) Service() ID { return ID{s.Namespace, s.ServiceName} }

// EndpointPort is where every endpoint of a slice answers for the Service port of that name.
type EndpointPort struct {
	Name     string
	Protocol Protocol
	Port     uint16
}

// Endpoint is one address that serves.
type Endpoint struct {
	Address netip.Addr
	// Place is where it is and for whom; nil if nothing is known of that. See At.
	Place *Place
	// Pod is the name of the pod that it is, empty if it is none.
	Pod string
	// Ready, Serving and Terminating have the defaults of Kubernetes filled in.
	Ready       bool
	Serving     bool
	Terminating bool
}

// Place is what very many endpoints have in common, so that they share one.
type Place struct {
	// Node is the name of the node that carries them, empty if unknown.
	Node string
	Zone string
	// Hints say for whom they are; empty for everybody. See fsm.Hint.
	Hints []Hint
}

// At is where the endpoint is and for whom.
func (e *Endpoint) At() Place {
	if e.Place == nil {
		return Place{}
	}
	return *e.Place
}

// Hint names a node or a zone whose clients an endpoint is for; one of both is empty.
type Hint struct{ Node, Zone string }

// SlicesOf gives the slices of a Service. They share memory with the World.
func (w *World) SlicesOf(service ID) []*EndpointSlice {
	from, to := w.slicesOf(service)
	return w.EndpointSlices[from:to:to]
}
