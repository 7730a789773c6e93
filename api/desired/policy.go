// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
)

// kindPolicy begins the key of a policy.
const kindPolicy = 'r'

// Policy is a policy of client-side balancing: what programs dial on the hosts where it is effective, and what they get there.
type Policy struct {
	Name   string `json:"name"`   // kind/name of the policy
	Number uint32 `json:"number"` // its id, unlike that of any other policy
	// Created is in seconds since 1970: of two of a kind at one place the older one counts, then the first by name.
	Created int64 `json:"created"`
	// EveryNode or Nodes say on which nodes it is effective, Outside that it is on hosts that are none.
	EveryNode bool     `json:"everyNode"`
	Nodes     []string `json:"nodes,omitempty"`
	Outside   bool     `json:"outside"`
	// OfService says that it captures addresses of a Service, not one of its own.
	OfService bool      `json:"ofService"`
	Captures  []Capture `json:"captures"`
	// Mode says what the backends are.
	Mode     string          `json:"mode"`
	Backends []PolicyBackend `json:"backends"`
	// SpareOwn leaves connections of its own backends alone; FallThrough has others go on while there is no backend.
	SpareOwn    bool `json:"spareOwn,omitempty"`
	FallThrough bool `json:"fallThrough,omitempty"`
	// Probe is how hosts find out which of the addresses answer; zero for not at all. Verdicts are what most of those that do think.
	Probe    Probe          `json:"probe,omitzero"`
	Verdicts []ProbeVerdict `json:"verdicts,omitempty"`
}

// Probe is how an address is probed.
type Probe struct {
	Type     string        `json:"type"`
	Port     uint16        `json:"port,omitempty"` // 0: each target port
	Path     string        `json:"path,omitempty"`
	Statuses []uint32      `json:"statuses,omitempty"`
	Interval time.Duration `json:"interval"`
	Timeout  time.Duration `json:"timeout"`
	// Healthy and Unhealthy are how many results in a row change what is thought of an address.
	Healthy   uint32 `json:"healthy"`
	Unhealthy uint32 `json:"unhealthy"`
}

// Types of probes.
const (
	ProbeTCP   = "TCP"
	ProbeHTTP  = "HTTP"
	ProbeHTTPS = "HTTPS"
	ProbeICMP  = "ICMP"
	ProbeUDP   = "UDP"
)

// ProbeVerdict is what is thought of an address and a target port.
type ProbeVerdict struct {
	Address netip.Addr `json:"address"`
	Port    Port       `json:"port"`
	Healthy bool       `json:"healthy"`
}

// Modes of policies.
const (
	ToPods      = "podEndpoint" // pods, at their own address
	ToHostPorts = "hostPort"    // pods, at their node's address
	ToProxies   = "nodeProxy"   // proxy addresses of nodes with pods
	ToAddresses = "address"     // listed addresses
	ToLocalPods = "local"       // ready pods of the client's host
)

// Local tells whether it leads to pods of the client's host. Such a policy goes before one that does not.
func (r *Policy) Local() bool { return r.Mode == ToLocalPods }

// Capture is a place that programs dial, and the port of backends that it becomes.
type Capture struct {
	Address netip.Addr `json:"address"`
	Port    Port       `json:"port"`
	Target  uint16     `json:"target"`
}

// PolicyBackend is an address that connections get, and the node of the pod behind it, empty if there is none.
type PolicyBackend struct {
	Address netip.Addr `json:"address"`
	Node    string     `json:"node,omitempty"`
	Ready   bool       `json:"ready"`
	UID     string     `json:"uid,omitempty"` // of that pod, as its node knows it, with SpareOwn
}

// EffectiveOn tells whether it is effective on a node.
func (r *Policy) EffectiveOn(node string) bool {
	return r.EveryNode || slices.Contains(r.Nodes, node)
}

// EffectiveOutside tells whether it is effective on hosts that are no nodes. None of its pods are theirs, so that local redirection never is.
func (r *Policy) EffectiveOutside() bool { return r.Outside && !r.Local() }

// PolicyKey is the key of a policy's item; name is kind/name of the policy.
func PolicyKey(name string) string { return string(kindPolicy) + name }

// PolicyValue encodes what a policy's item says. The name is the key's.
func PolicyValue(r Policy) ([]byte, error) {
	m := &fairleadv1.Redirect{
		Number: r.Number, Created: r.Created, EveryNode: r.EveryNode, Nodes: r.Nodes, Outside: r.Outside, OfService: r.OfService,
		Mode: r.Mode, SpareOwn: r.SpareOwn, FallThrough: r.FallThrough,
	}
	for _, c := range r.Captures {
		m.Captures = append(m.Captures, &fairleadv1.Capture{Address: c.Address.AsSlice(), Port: portMessage(c.Port), Target: uint32(c.Target)})
	}
	for _, b := range r.Backends {
		m.Backends = append(m.Backends, &fairleadv1.RedirectBackend{Address: b.Address.AsSlice(), Node: b.Node, Ready: b.Ready, Uid: b.UID})
	}
	m.Probe = probeMessage(r.Probe)
	for _, v := range r.Verdicts {
		m.Verdicts = append(m.Verdicts, &fairleadv1.ProbeVerdict{Address: v.Address.AsSlice(), Port: portMessage(v.Port), Healthy: v.Healthy})
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

func probeMessage(p Probe) *fairleadv1.RedirectProbe {
	if p.Type == "" {
		return nil
	}
	return &fairleadv1.RedirectProbe{
		Type: p.Type, Port: uint32(p.Port), Path: p.Path, Statuses: p.Statuses, IntervalMs: uint64(p.Interval.Milliseconds()),
		TimeoutMs: uint64(p.Timeout.Milliseconds()), Healthy: p.Healthy, Unhealthy: p.Unhealthy,
	}
}

// longestProbe bounds times that are told, so that they can be reckoned with.
const longestProbe = uint64(24 * time.Hour / time.Millisecond)

func probeOf(m *fairleadv1.RedirectProbe) (Probe, error) {
	if m.GetPort() > 0xffff {
		return Probe{}, fmt.Errorf("no such port: %d", m.GetPort())
	}
	milliseconds := func(n uint64) time.Duration { return time.Duration(min(n, longestProbe)) * time.Millisecond }
	return Probe{
		Type: m.GetType(), Port: uint16(m.GetPort()), Path: m.GetPath(), Statuses: m.GetStatuses(), Interval: milliseconds(m.GetIntervalMs()),
		Timeout: milliseconds(m.GetTimeoutMs()), Healthy: m.GetHealthy(), Unhealthy: m.GetUnhealthy(),
	}, nil
}

// decodePolicy reads a policy's item.
func decodePolicy(key string, value []byte) (*Policy, error) {
	name := key[1:]
	fail := func(err error) (*Policy, error) {
		return nil, fmt.Errorf("decode item of policy %s: %w", name, err)
	}
	var m fairleadv1.Redirect
	if err := proto.Unmarshal(value, &m); err != nil {
		return fail(err)
	}
	r := &Policy{
		Name: name, Number: m.GetNumber(), Created: m.GetCreated(), EveryNode: m.GetEveryNode(), Nodes: m.GetNodes(),
		Outside: m.GetOutside(), OfService: m.GetOfService(), Mode: m.GetMode(), SpareOwn: m.GetSpareOwn(), FallThrough: m.GetFallThrough(),
	}
	for _, c := range m.GetCaptures() {
		address, err := addressesOf([][]byte{c.GetAddress()})
		if err != nil {
			return fail(err)
		}
		port, err := portOf(c.GetPort())
		if err != nil {
			return fail(err)
		}
		if c.GetTarget() > 0xffff {
			return fail(fmt.Errorf("no such port: %d", c.GetTarget()))
		}
		r.Captures = append(r.Captures, Capture{address[0], port, uint16(c.GetTarget())})
	}
	for _, b := range m.GetBackends() {
		address, err := addressesOf([][]byte{b.GetAddress()})
		if err != nil {
			return fail(err)
		}
		r.Backends = append(r.Backends, PolicyBackend{address[0], b.GetNode(), b.GetReady(), b.GetUid()})
	}
	var err error
	if r.Probe, err = probeOf(m.GetProbe()); err != nil {
		return fail(err)
	}
	for _, v := range m.GetVerdicts() {
		address, err := addressesOf([][]byte{v.GetAddress()})
		if err != nil {
			return fail(err)
		}
		port, err := portOf(v.GetPort())
		if err != nil {
			return fail(err)
		}
		r.Verdicts = append(r.Verdicts, ProbeVerdict{address[0], port, v.GetHealthy()})
	}
	return r, nil
}

// Policies lists the policies, in order of their names. One that did not change from one state to the next is the same pointer in
// both. They must not be written to. Only nodes that are told of all Services are told of these.
func (s State) Policies() (out []*Policy) {
	for _, i := range s.items {
		if r, ok := i.decoded.(*Policy); ok {
			out = append(out, r)
		}
	}
	return out
}
