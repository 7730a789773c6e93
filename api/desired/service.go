// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
	"unique"

	"google.golang.org/protobuf/proto"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
)

// kindService begins the key of a Service.
const kindService = 's'

// Service is how packets to service addresses are translated.
type Service struct {
	Name      string       `json:"name"` // namespace/name
	Addresses []netip.Addr `json:"addresses"`
	Frontends []Frontend   `json:"frontends"`
	Endpoints []Endpoint   `json:"endpoints"`
	// Local is externalTrafficPolicy: Local.
	Local bool `json:"local"`
	// Affinity is for how long a client keeps its endpoint, in whole seconds; zero for not at all.
	Affinity time.Duration `json:"affinity"`
	// SourceRanges are the only clients that may use the addresses; none means all.
	SourceRanges []netip.Prefix `json:"sourceRanges"`
	// Scheduler is how to choose among endpoints, by IPVS' names; empty is by chance.
	Scheduler string `json:"scheduler,omitempty"`
	// HealthCheckNodePort is where the node tells how many ready endpoints it has; 0 for nowhere.
	HealthCheckNodePort uint16 `json:"healthCheckNodePort,omitempty"`
	// NodePortsIPv4 and NodePortsIPv6 say that its node ports are served in that family, whatever addresses it has. Otherwise that is so
	// in the families of its addresses.
	NodePortsIPv4 bool `json:"nodePortsIPv4,omitempty"`
	NodePortsIPv6 bool `json:"nodePortsIPv6,omitempty"`
	// ClusterIPs are its addresses inside the cluster, which every frontend is at, whatever NotOn says.
	ClusterIPs []netip.Addr `json:"clusterIPs,omitempty"`
	// InternalLocal is internalTrafficPolicy: Local, which is about ClusterIPs.
	InternalLocal bool `json:"internalLocal,omitempty"`
	// ByOthers are addresses that other controllers gave it, which every frontend is at. Other ports there are
	// none of ours, unlike at Addresses.
	ByOthers []netip.Addr `json:"byOthers,omitempty"`
	// Probe is how nodes find out which endpoints answer; zero for not at all.
	Probe Probe `json:"probe,omitzero"`
}

// HasNodePorts tells whether nodes serve its node ports in a family.
func (s *Service) HasNodePorts(v6 bool) bool {
	if v6 && s.NodePortsIPv6 || !v6 && s.NodePortsIPv4 {
		return true
	}
	return slices.ContainsFunc(s.Addresses, func(a netip.Addr) bool { return a.Unmap().Is6() == v6 })
}

// Schedulers that nodes know.
const (
	RoundRobin         = "rr"
	WeightedRoundRobin = "wrr"
	SourceHash         = "sh"
	DestinationHash    = "dh"
	ConsistentHash     = "mh"
	// These go by connections that each node counts.
	LeastConnections         = "lc"
	WeightedLeastConnections = "wlc"
	ShortestExpectedDelay    = "sed"
	NeverQueue               = "nq"
	// And these have whoever dials an address keep endpoints until they are overloaded.
	LocalityLeastConnections           = "lblc"
	LocalityLeastConnectionsReplicated = "lblcr"
)

// Frontend is one port that clients dial on the addresses of a Service.
type Frontend struct {
	Name     string `json:"name"`
	Port     Port   `json:"port"`
	NodePort uint16 `json:"nodePort"` // 0 for none
	// NotOn are addresses of the Service where the port is not its own: not yet, or no more.
	NotOn []netip.Addr `json:"notOn,omitempty"`
}

// Endpoint is one pod, or static address, that serves a Service.
type Endpoint struct {
	Address     netip.Addr `json:"address"`
	Node        string     `json:"node"` // that carries it, empty if unknown
	Ready       bool       `json:"ready"`
	Serving     bool       `json:"serving"`
	Terminating bool       `json:"terminating"`
	// Ports are where it answers, by name of the frontend.
	Ports []EndpointPort `json:"ports"`
	// Hints say whose clients it is for; empty for everybody's.
	Hints []Hint `json:"hints,omitempty"`
	// Weight is its share of new connections beside the others'; 0 counts as 1.
	Weight uint16 `json:"weight,omitempty"`
	// Quiesced is weight 0: it takes no new connections, and those that it has go on.
	Quiesced bool `json:"quiesced,omitempty"`
	// Failing says that it is not ready because it does not answer probes.
	Failing bool `json:"failing,omitempty"`
}

// Hint names a node or a zone; the other is empty.
type Hint struct {
	Node string `json:"node,omitempty"`
	Zone string `json:"zone,omitempty"`
}

// EndpointPort is where an endpoint answers for the frontend of the same name and protocol.
type EndpointPort struct {
	Name string `json:"name"`
	Port Port   `json:"port"`
}

// ServiceKey is the key of a Service's item; name is namespace/name.
func ServiceKey(name string) string { return string(kindService) + name }

// ServiceValue encodes what a Service's item says. The name is the key's.
func ServiceValue(s Service) ([]byte, error) {
	m := &fairleadv1.Service{
		Local: s.Local, AffinitySeconds: uint32(s.Affinity / time.Second), Scheduler: s.Scheduler,
		HealthCheckNodePort: uint32(s.HealthCheckNodePort), NodePortsIpv4: s.NodePortsIPv4, NodePortsIpv6: s.NodePortsIPv6,
		Addresses: bytesOf(s.Addresses), ClusterIps: bytesOf(s.ClusterIPs), InternalLocal: s.InternalLocal,
		ByOthers: bytesOf(s.ByOthers), Probe: probeMessage(s.Probe),
	}
	for _, f := range s.Frontends {
		m.Frontends = append(m.Frontends, &fairleadv1.Frontend{Name: f.Name, Port: portMessage(f.Port), NodePort: uint32(f.NodePort), NotOn: bytesOf(f.NotOn)})
	}
	m.Endpoints = make([]*fairleadv1.Endpoint, 0, len(s.Endpoints))
	for i, e := range s.Endpoints {
		out := &fairleadv1.Endpoint{
			Address: e.Address.AsSlice(), Node: e.Node, Ready: e.Ready, Serving: e.Serving, Terminating: e.Terminating,
			Weight: uint32(e.Weight), Quiesced: e.Quiesced, Failing: e.Failing,
		}
		if i > 0 && slices.Equal(e.Ports, s.Endpoints[i-1].Ports) {
			out.Ports = m.Endpoints[i-1].Ports // as most do
		} else {
			out.Ports = endpointPortMessages(e.Ports)
		}
		for _, h := range e.Hints {
			out.Hints = append(out.Hints, &fairleadv1.Hint{Node: h.Node, Zone: h.Zone})
		}
		m.Endpoints = append(m.Endpoints, out)
	}
	for _, r := range s.SourceRanges {
		m.SourceRanges = append(m.SourceRanges, r.String())
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

func endpointPortMessages(ports []EndpointPort) (out []*fairleadv1.EndpointPort) {
	for _, p := range ports {
		out = append(out, &fairleadv1.EndpointPort{Name: p.Name, Port: portMessage(p.Port)})
	}
	return out
}

// decodeService reads a Service's item.
func decodeService(key string, value []byte) (*Service, error) {
	name := key[1:]
	fail := func(format string, args ...any) (*Service, error) {
		return nil, fmt.Errorf("decode item of Service %s: %w", name, fmt.Errorf(format, args...))
	}
	var m fairleadv1.Service
	if err := proto.Unmarshal(value, &m); err != nil {
		return fail("%w", err)
	}
	if m.GetHealthCheckNodePort() > 0xffff {
		return fail("health-check node port %d", m.GetHealthCheckNodePort())
	}
	s := &Service{
		Name: name, Local: m.GetLocal(), Affinity: time.Duration(m.GetAffinitySeconds()) * time.Second, Scheduler: m.GetScheduler(),
		HealthCheckNodePort: uint16(m.GetHealthCheckNodePort()), NodePortsIPv4: m.GetNodePortsIpv4(), NodePortsIPv6: m.GetNodePortsIpv6(),
		InternalLocal: m.GetInternalLocal(),
	}
	var err error
	if s.Addresses, err = addressesOf(m.GetAddresses()); err != nil {
		return fail("%w", err)
	}
	if s.ClusterIPs, err = addressesOf(m.GetClusterIps()); err != nil {
		return fail("ClusterIPs: %w", err)
	}
	if s.Probe, err = probeOf(m.GetProbe()); err != nil {
		return fail("probe: %w", err)
	}
	if s.ByOthers, err = addressesOf(m.GetByOthers()); err != nil {
		return fail("addresses by others: %w", err)
	}
	for _, f := range m.GetFrontends() {
		port, err := portOf(f.GetPort())
		if err != nil || f.GetNodePort() > 0xffff {
			return fail("frontend %q: %v, node port %d", f.GetName(), err, f.GetNodePort())
		}
		front := Frontend{Name: unique.Make(f.GetName()).Value(), Port: port, NodePort: uint16(f.GetNodePort())}
		if front.NotOn, err = addressesOf(f.GetNotOn()); err != nil {
			return fail("frontend %q: %w", f.GetName(), err)
		}
		s.Frontends = append(s.Frontends, front)
	}
	s.Endpoints = slices.Grow(s.Endpoints, len(m.GetEndpoints()))
	for i, e := range m.GetEndpoints() {
		endpoint, err := endpointOf(e)
		if err != nil {
			return fail("%w", err)
		}
		if i > 0 && slices.Equal(endpoint.Ports, s.Endpoints[i-1].Ports) {
			endpoint.Ports = s.Endpoints[i-1].Ports // as most do
		}
		s.Endpoints = append(s.Endpoints, endpoint)
	}
	for _, text := range m.GetSourceRanges() {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return fail("%w", err)
		}
		s.SourceRanges = append(s.SourceRanges, prefix)
	}
	return s, nil
}

func bytesOf(list []netip.Addr) (out [][]byte) {
	for _, a := range list {
		out = append(out, a.AsSlice())
	}
	return out
}

func addressesOf(list [][]byte) (out []netip.Addr, err error) {
	for _, b := range list {
		a, ok := netip.AddrFromSlice(b)
		if !ok {
			return nil, fmt.Errorf("an address has 4 or 16 bytes, not %d", len(b))
		}
		out = append(out, a)
	}
	return out, nil
}

func endpointOf(e *fairleadv1.Endpoint) (Endpoint, error) {
	address, ok := netip.AddrFromSlice(e.GetAddress())
	if !ok {
		return Endpoint{}, fmt.Errorf("an endpoint's address has 4 or 16 bytes, not %d", len(e.GetAddress()))
	}
	if e.GetWeight() > 0xffff {
		return Endpoint{}, fmt.Errorf("endpoint %s: weight %d", address, e.GetWeight())
	}
	out := Endpoint{
		Address: address, Node: unique.Make(e.GetNode()).Value(), Ready: e.GetReady(), Serving: e.GetServing(), Terminating: e.GetTerminating(),
		Weight: uint16(e.GetWeight()), Quiesced: e.GetQuiesced(), Failing: e.GetFailing(),
	}
	for _, p := range e.GetPorts() {
		port, err := portOf(p.GetPort())
		if err != nil {
			return Endpoint{}, fmt.Errorf("endpoint %s: %w", address, err)
		}
		out.Ports = append(out.Ports, EndpointPort{Name: unique.Make(p.GetName()).Value(), Port: port})
	}
	for _, h := range e.GetHints() {
		out.Hints = append(out.Hints, Hint{Node: h.GetNode(), Zone: h.GetZone()})
	}
	return out, nil
}
