// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// BalancingPolicy sends what it captures to its own backends. Where it has none, connections are refused.
type BalancingPolicy struct {
	Meta
	Homed
	Redirect
}

// LocalRedirectPolicy sends what it captures to pods of the client's host. It goes before a BalancingPolicy of the same
// tuple, which goes before a Service; where it has no backend, those count.
type LocalRedirectPolicy struct {
	Meta
	Homed
	Redirect
}

// Redirect is what both kinds have: what is captured, where that holds, and what it becomes. Policies have no session affinity,
// and heed no traffic policy of a Service.
type Redirect struct {
	// Generation is the object's.
	Generation int64
	// Disabled withdraws it everywhere.
	Disabled bool
	// ServiceID is the id in its annotations, zero if it has none.
	ServiceID uint32

	// Nodes chooses the nodes on which it is effective, and Outside says that it is on hosts that are none. See EffectiveOn.
	Nodes   Selector
	Outside bool

	// Service is the one whose cluster addresses are captured; zero: Address is.
	Service ID
	Address netip.Addr
	// Ports are those captured, each with the port of backends that it is joined to. There are none where AllPorts says that each
	// port of the Service is: then Targets are the ports of backends. See Captures.
	Ports    []RedirectPort
	AllPorts bool
	Targets  []TargetPort

	// Mode says what the backends are.
	Mode RedirectMode
	// Pods chooses pods of all namespaces, in every mode but ToAddresses.
	Pods Selector
	// Addresses are the backends of ToAddresses; one that is there twice gets twice as many connections.
	Addresses []netip.Addr
	// Health is how those are probed.
	Health HealthCheck
	// ProxyTargets are, by name of a backend port, the port of a pod behind a proxy port: a number, or a name of a container's.
	ProxyTargets []KV

	// SpareOwn leaves connections alone that its own backends make.
	SpareOwn bool
	// FallThrough has connections of a BalancingPolicy without a backend go on as if it were not there.
	FallThrough bool
}

// RedirectMode says what the backends of a policy are.
type RedirectMode string

// The modes.
const (
	ToPods      RedirectMode = "podEndpoint" // pods, at their own address
	ToHostPorts RedirectMode = "hostPort"    // pods, at their node's address
	ToProxies   RedirectMode = "nodeProxy"   // proxy addresses of nodes with pods, one for each node
	ToAddresses RedirectMode = "address"     // listed addresses
	ToLocalPods RedirectMode = "local"       // pods of the client's host
)

// RedirectPort is a captured port.
type RedirectPort struct {
	Name     string
	Protocol Protocol
	Port     uint16
	Target   uint16 // the backends'
}

// TargetPort is a port of backends.
type TargetPort struct {
	Name     string
	Protocol Protocol
	Port     uint16
}

// HealthCheck is how listed addresses are probed. The zero value is for backends that are not.
type HealthCheck struct {
	Type ProbeType
	// Port is zero if each target port is probed.
	Port     uint16
	Path     string
	Statuses []int // that count as an answer of HTTP; none means 200 to 399
	Interval time.Duration
	Timeout  time.Duration
	// Healthy and Unhealthy are how many probes in a row change what is thought of an address.
	Healthy, Unhealthy int
}

// ProbeType is what a probe does.
type ProbeType string

// The probes.
const (
	ProbeTCP   ProbeType = "TCP"
	ProbeHTTP  ProbeType = "HTTP"
	ProbeHTTPS ProbeType = "HTTPS"
	ProbeICMP  ProbeType = "ICMP"
	ProbeUDP   ProbeType = "UDP" // ours; see docs/balancing.md
	ProbeNone  ProbeType = "None"
)

// Reach is on which nodes a policy is effective.
type Reach uint8

// Reaches of policies.
const (
	Nowhere    Reach = iota // nor on hosts that are none
	EveryNode               // whatever its labels
	ChosenOnes              // by their labels
)

// Reach tells on which nodes the policy is effective.
func (r *Redirect) Reach() Reach {
	switch {
	case r.Disabled:
		return Nowhere
	case len(r.Nodes.Labels) == 0 && len(r.Nodes.Requirements) == 0:
		return EveryNode
	}
	return ChosenOnes
}

// EffectiveOn tells whether a policy is effective on a host: on a node, or, if node is nil, on one that is none.
func (r *Redirect) EffectiveOn(node *Node) bool {
	if r.Reach() == Nowhere {
		return false
	}
	if node == nil {
		return r.Outside
	}
	return r.Nodes.Matches(node.Labels)
}

// Tuple is what programs dial.
type Tuple struct {
	Address  netip.Addr
	Port     uint16
	Protocol Protocol
}

// Capture is a captured tuple, and the port of backends that it becomes.
type Capture struct {
	Tuple
	Target uint16
}

// Captures are the tuples that a policy captures, in order. service is the one that it names, nil as long as there is none;
// absent are the ports that lead nowhere for want of a port of the Service, or of one of the backends to join it to.
func (r *Redirect) Captures(service *Service) (captured []Capture, absent []RedirectPort) {
	if r.Service == (ID{}) {
		return captures([]netip.Addr{r.Address}, r.Ports), nil
	}
	if service == nil || service.Headless || len(service.ClusterIPs) == 0 {
		return nil, slices.Clone(r.Ports)
	}
	var ports []RedirectPort
	if r.AllPorts {
		for _, p := range service.Ports {
			joined := RedirectPort{Name: p.Name, Protocol: p.Protocol, Port: p.Port}
			if t, ok := r.targetOf(p); ok {
				joined.Target = t
				ports = append(ports, joined)
			} else {
				absent = append(absent, joined)
			}
		}
		return captures(service.ClusterIPs, ports), absent
	}
	for _, p := range r.Ports {
		has := slices.ContainsFunc(service.Ports, func(s ServicePort) bool { return s.Port == p.Port && s.Protocol == p.Protocol })
		if has {
			ports = append(ports, p)
		} else {
			absent = append(absent, p)
		}
	}
	return captures(service.ClusterIPs, ports), absent
}

// targetOf joins a port of a Service to the backends' port of its name, else to their only one of its protocol.
func (r *Redirect) targetOf(p ServicePort) (uint16, bool) {
	var only []uint16
	for _, t := range r.Targets {
		if t.Protocol != p.Protocol {
			continue
		}
		if t.Name == p.Name {
			return t.Port, true
		}
		only = append(only, t.Port)
	}
	if len(only) != 1 {
		return 0, false
	}
	return only[0], true
}

func captures(addresses []netip.Addr, ports []RedirectPort) []Capture {
	var out []Capture
	for _, a := range addresses {
		for _, p := range ports {
			out = append(out, Capture{Tuple{a, p.Port, p.Protocol}, p.Target})
		}
	}
	slices.SortStableFunc(out, func(a, b Capture) int { return cmp.Or(a.compare(b.Tuple), cmp.Compare(a.Target, b.Target)) })
	return slices.CompactFunc(out, func(a, b Capture) bool { return a.Tuple == b.Tuple })
}

func (t Tuple) compare(o Tuple) int {
	return cmp.Or(t.Address.Compare(o.Address), cmp.Compare(t.Port, o.Port), strings.Compare(string(t.Protocol), string(o.Protocol)))
}

// Claim is that a policy captures tuples on one host.
type Claim struct {
	Kind   Kind
	Policy Meta
	Tuples []Tuple
}

// Election says whose a tuple is among the policies of one kind on one host.
type Election struct {
	Kind Kind
	Tuple
	Winner string   // the oldest policy, of those made in the same second the first by name
	Losers []string // the others, of which the next is the winner once this one is gone; in that order
}

// Elect decides whose each tuple is, in the order of kinds and tuples. The order of claims makes no difference. Between kinds
// nothing is decided: those that capture the same tuple are looked up one after the other.
func Elect(claims []Claim) []Election {
	type place struct {
		kind Kind
		Tuple
	}
	claimants := map[place][]Meta{}
	for _, c := range claims {
		for _, t := range c.Tuples {
			claimants[place{c.Kind, t}] = append(claimants[place{c.Kind, t}], c.Policy)
		}
	}
	out := make([]Election, 0, len(claimants))
	for at, of := range claimants {
		slices.SortStableFunc(of, olderFirst)
		names := make([]string, len(of))
		for i, m := range of {
			names[i] = m.Name
		}
		names = slices.Compact(names) // a policy that claims a tuple twice
		out = append(out, Election{Kind: at.kind, Tuple: at.Tuple, Winner: names[0], Losers: names[1:]})
	}
	slices.SortStableFunc(out, func(a, b Election) int {
		return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), a.compare(b.Tuple))
	})
	return out
}

func olderFirst(a, b Meta) int {
	return cmp.Or(cmp.Compare(a.Created, b.Created), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
}

func (p BalancingPolicy) clone() BalancingPolicy {
	p.Redirect = p.Redirect.clone()
	return p
}

func (p LocalRedirectPolicy) clone() LocalRedirectPolicy {
	p.Redirect = p.Redirect.clone()
	return p
}

func (r Redirect) clone() Redirect {
	r.Nodes, r.Pods = r.Nodes.clone(), r.Pods.clone()
	r.Ports, r.Targets = slices.Clone(r.Ports), slices.Clone(r.Targets)
	r.Addresses = slices.Clone(r.Addresses)
	r.Health.Statuses = slices.Clone(r.Health.Statuses)
	r.ProxyTargets = slices.Clone(r.ProxyTargets)
	return r
}

func (r *Redirect) sort() {
	r.Nodes.sort()
	r.Pods.sort()
	sortSet(&r.Ports, func(a, b RedirectPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), strings.Compare(string(a.Protocol), string(b.Protocol)), strings.Compare(a.Name, b.Name), cmp.Compare(a.Target, b.Target))
	})
	sortSet(&r.Targets, func(a, b TargetPort) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.Protocol), string(b.Protocol)), cmp.Compare(a.Port, b.Port))
	})
	sortBy(&r.Addresses, compareAddrs) // repeats are weight
	sortSet(&r.Health.Statuses, cmp.Compare[int])
	sortKVs(&r.ProxyTargets)
}
