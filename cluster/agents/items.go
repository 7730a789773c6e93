// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/fsm"
)

// deriveAddress brings one address's item up to date. A node has rules for every address that has an owner or
// a route, whatever state either is in: they go when nothing can lead there any more (S9).
func (from source) deriveAddress(a netip.Addr, to sink) error {
	key, owners := desired.AddressKey(a), from.view.Owners(a.String())
	_, routed := fsm.Get[*fsm.Route](from.view, fsm.TableRoutes, fsm.HostPrefix(a).String())
	if len(owners) == 0 && !routed {
		return to.drop(key)
	}
	var ports []desired.Port
	for _, o := range owners {
		for _, p := range o.Ports() {
			ports = append(ports, portOf(p))
		}
	}
	value, err := desired.AddressValue(ports)
	if err != nil {
		return err
	}
	return to.put(key, value, tellsAddresses)
}

// deriveService brings one Service's item up to date. A Service is told while it owns an address, also one that it
// gives up: packets may still come. Without, it is told to those who have a use for its node ports, its ClusterIPs or what others gave it, if
// it has any to be served.
func (from source) deriveService(id fsm.ServiceID, to sink) error {
	key := desired.ServiceKey(string(id))
	s, ok := fsm.Get[*fsm.Service](from.view, fsm.TableServices, string(id))
	owned := from.view.Addresses(id)
	if !ok || len(owned) == 0 && !s.HasNodePorts() && !s.ServedInside() && len(s.ByOthers()) == 0 {
		return to.drop(key)
	}
	value, err := desired.ServiceValue(from.serviceOf(s, owned))
	if err != nil {
		return err
	}
	if len(owned) == 0 {
		return to.put(key, value, tellsAll)
	}
	return to.put(key, value, tellsAddressed)
}

// deriveNode brings the item of a node up to date: those who resolve node ports at the client have to know all nodes, by all addresses.
func (from source) deriveNode(id fsm.NodeID, to sink) error {
	key := desired.NodeKey(string(id))
	n, ok := fsm.Get[*fsm.Node](from.view, fsm.TableNodes, string(id))
	if !ok || len(n.Addresses)+len(n.Others) == 0 {
		return to.drop(key)
	}
	value, err := desired.NodeValue(slices.Concat(n.Addresses, n.Others))
	if err != nil {
		return err
	}
	return to.put(key, value, tellsAll)
}

// derivePolicy brings one policy's item up to date. One that captures nothing, or is effective nowhere, is nothing to tell. Which of
// two counts at a place is decided on each host.
func (from source) derivePolicy(id fsm.PolicyID, to sink) error {
	key := desired.PolicyKey(string(id))
	r, ok := fsm.Get[*fsm.Policy](from.view, fsm.TablePolicies, string(id))
	if err := from.deriveProxy(r, id, to); err != nil {
		return err
	}
	if !ok || len(r.Captures) == 0 || !r.EveryNode && !r.Outside && len(r.Nodes) == 0 {
		return to.drop(key)
	}
	value, err := desired.PolicyValue(policyOf(r))
	if err != nil {
		return err
	}
	return to.put(key, value, tellsAll)
}

// deriveProxy brings the item about a policy's proxy ports up to date; r may be nil. It is told before clients are sent there, and
// to nodes where the policy is not effective.
func (from source) deriveProxy(r *fsm.Policy, id fsm.PolicyID, to sink) error {
	key := desired.ProxyKey(string(id))
	var p desired.Proxy
	if r != nil {
		for _, pod := range r.Proxied {
			if len(pod.Ports) == 0 {
				continue
			}
			one := desired.ProxiedPod{Node: string(pod.Node), Address: pod.Address, Ready: pod.Ready}
			last := len(p.Pods) - 1 // rows of a pod's ports follow each other
			if last < 0 || p.Pods[last].Node != one.Node || p.Pods[last].Address != one.Address || p.Pods[last].Ready != one.Ready {
				p.Pods, last = append(p.Pods, one), last+1
			}
			for _, port := range pod.Ports {
				p.Pods[last].Ports = append(p.Pods[last].Ports, desired.ProxyPort{Port: portOf(port.Port), Target: port.Target})
			}
		}
	}
	if len(p.Pods) == 0 {
		return to.drop(key)
	}
	value, err := desired.ProxyValue(p)
	if err != nil {
		return err
	}
	return to.put(key, value, tellsAll)
}

// deriveTunnel brings the item of a host that is reached by a tunnel up to date.
func (from source) deriveTunnel(host fsm.TunnelID, to sink) error {
	key := desired.TunnelHostKey(string(host))
	end := endOf(from.view, host)
	if end == nil {
		return to.drop(key)
	}
	value, err := desired.TunnelHostValue(*end)
	if err != nil {
		return err
	}
	return to.put(key, value, tellsAll)
}

// endOf is how a host is reached by its tunnel; nil for one that is not, or no more.
func endOf(v *fsm.View, host fsm.TunnelID) *desired.TunnelHost {
	t, ok := fsm.Get[*fsm.Tunnel](v, fsm.TableTunnels, string(host))
	if !ok || t.Leaving {
		return nil
	}
	addresses := v.Group().Tunnels.Addresses(t.Number)
	if len(addresses) == 0 {
		return nil
	}
	return &desired.TunnelHost{Underlay: t.Underlay, Addresses: addresses, Number: t.Number}
}

// atHostPorts is the mode in which pods of one node have one address, that node's: each is a backend once, which is ready if any of its
// pods is (balancing §6). They are in order of their addresses.
const atHostPorts = "hostPort"

func policyOf(r *fsm.Policy) desired.Policy {
	out := desired.Policy{
		Name: string(r.ID), Number: r.Number, Created: r.Created, EveryNode: r.EveryNode,
		Outside: r.Outside, OfService: r.Service != "", Mode: r.Mode, SpareOwn: r.SpareOwn, FallThrough: r.FallThrough,
	}
	for _, n := range r.Nodes {
		out.Nodes = append(out.Nodes, string(n))
	}
	for _, c := range r.Captures {
		out.Captures = append(out.Captures, desired.Capture{Address: c.Address, Port: portOf(c.Port), Target: c.Target})
	}
	for _, e := range r.Backends {
		next := desired.PolicyBackend{Address: e.Address, Node: string(e.Node), Ready: e.Ready}
		if r.SpareOwn {
			next.UID = cmp.Or(e.HostUID, e.UID) // its cgroup is named by
		} else if last := len(out.Backends) - 1; r.Mode == atHostPorts && last >= 0 && out.Backends[last].Address == e.Address {
			out.Backends[last].Ready = out.Backends[last].Ready || e.Ready
			continue
		}
		out.Backends = append(out.Backends, next)
	}
	if r.Probe.Wanted() {
		out.Probe = desired.Probe(r.Probe)
	}
	for _, v := range r.Verdicts {
		out.Verdicts = append(out.Verdicts, desired.ProbeVerdict{Address: v.Address, Port: portOf(v.Port), Healthy: v.Healthy})
	}
	return out
}

// begin begins a step of all trays, that is about no item of which anything was told.
func (s *shelf) begin(from, to fsm.Revision) {
	s.was = recall{}
	for i := range s.trays {
		s.trays[i].begin(from, to)
	}
}

// push ends the step, and tells whether it changes anything.
func (s *shelf) push(limit ringLimit) (news bool, err error) {
	s.was = nil
	var changes [][]byte
	for i := range s.trays {
		if changes, err = s.trays[i].push(limit, changes); err != nil {
			return false, err
		}
		news = news || len(changes) > 0
	}
	return news, nil
}

func (s *shelf) put(key string, value []byte, needs tells) error {
	before, had := s.was[key]
	now := item{desired.DigestOf(key, value), needs}
	if had && before == now {
		return nil
	}
	var was *item
	if had {
		was = &before
	}
	for i := range s.trays {
		if err := s.trays[i].put(key, value, was, now); err != nil {
			return err
		}
	}
	return nil
}

func (s *shelf) drop(key string) error {
	before, had := s.was[key]
	if !had {
		return nil
	}
	for i := range s.trays {
		if err := s.trays[i].drop(key, &before); err != nil {
			return err
		}
	}
	return nil
}

// recall is what stood under the keys that a step is about, before it.
type recall map[string]item

func (r recall) put(key string, value []byte, needs tells) error {
	r[key] = item{desired.DigestOf(key, value), needs}
	return nil
}

func (recall) drop(string) error { return nil }

// serviceOf is a Service as nodes translate it: on the ports that it has of each of its addresses. Nobody is sent to
// endpoints on nodes that are down, as long as others are left: Kubernetes notices only after most of a minute.
func (from source) serviceOf(s *fsm.Service, owned []*fsm.Allocation) desired.Service {
	out := desired.Service{
		Local: s.Local, Affinity: s.Affinity(), SourceRanges: s.SourceRanges(), Scheduler: s.Scheduler(),
		HealthCheckNodePort: s.HealthCheckNodePort, NodePortsIPv4: s.NodePortsIPv4, NodePortsIPv6: s.NodePortsIPv6,
		ClusterIPs: s.ClusterIPs, InternalLocal: s.InternalLocal, ByOthers: s.ByOthers(),
	}
	if s.Probe().Wanted() {
		out.Probe = desired.Probe(s.Probe())
	}
	for _, a := range owned {
		out.Addresses = append(out.Addresses, a.Address)
	}
	for _, f := range s.Frontends {
		front := desired.Frontend{Name: f.Name, Port: portOf(f.Port), NodePort: f.NodePort}
		for _, a := range owned {
			if !slices.Contains(a.Ports(), f.Port) { // it may be another Service's there
				front.NotOn = append(front.NotOn, a.Address)
			}
		}
		if len(front.NotOn) < len(owned) || s.HasNodePorts() && f.NodePort != 0 || s.ServedInside() || len(s.ByOthers()) > 0 {
			out.Frontends = append(out.Frontends, front)
		}
	}
	endpoints := from.reachable(s.Endpoints)
	out.Endpoints = make([]desired.Endpoint, 0, len(endpoints))
	for i, e := range endpoints {
		endpoint := desired.Endpoint{
			Address: e.Address, Node: string(from.nodeOf(e)), Ready: e.Ready, Serving: e.Serving, Terminating: e.Terminating,
			Weight: e.Weight, Quiesced: e.Quiesced, Failing: e.Failing,
		}
		for _, h := range e.Hints() {
			endpoint.Hints = append(endpoint.Hints, desired.Hint{Node: string(h.Node), Zone: h.Zone})
		}
		if i > 0 && slices.Equal(e.Ports(), endpoints[i-1].Ports()) {
			endpoint.Ports = out.Endpoints[i-1].Ports // as most do
		} else {
			endpoint.Ports = endpointPortsOf(e.Ports())
		}
		out.Endpoints = append(out.Endpoints, endpoint)
	}
	return out
}

// nodeOf tells where an endpoint is. One that names no node is at one if it has an address of it, as for next hops.
func (from source) nodeOf(e fsm.Endpoint) fsm.NodeID {
	if e.Node != "" {
		return e.Node
	}
	return from.homes[e.Address]
}

// reachable are the endpoints whose nodes are not down, and those that are the last of their family for one of their ports: they
// are never given up for liveness alone.
func (from source) reachable(endpoints []fsm.Endpoint) []fsm.Endpoint {
	down := func(e fsm.Endpoint) bool {
		n, ok := fsm.Get[*fsm.Node](from.view, fsm.TableNodes, string(from.nodeOf(e)))
		return ok && n.Liveness == fsm.NodeDown
	}
	if !slices.ContainsFunc(endpoints, down) {
		return endpoints
	}
	left := map[served]bool{}
	for _, e := range endpoints {
		if takesNew(e) && !down(e) {
			for _, what := range servedBy(e) {
				left[what] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(endpoints), func(e fsm.Endpoint) bool {
		return down(e) && !slices.ContainsFunc(servedBy(e), func(what served) bool { return !left[what] })
	})
}

// takesNew tells whether nodes may send new connections to an endpoint, for all that it says itself (dataplane/endpoints): one that does not
// answer probes is no replacement for another.
func takesNew(e fsm.Endpoint) bool { return !e.Quiesced && (e.Ready || e.Serving && e.Terminating) }

// served is what an endpoint serves: a frontend, by its name and protocol, in a family.
type served struct {
	v4       bool
	frontend string
	protocol fsm.Protocol
}

// servedBy is what an endpoint serves: one that has no ports, its family.
func servedBy(e fsm.Endpoint) []served {
	if len(e.Ports()) == 0 {
		return []served{{v4: e.Address.Is4()}}
	}
	out := make([]served, 0, len(e.Ports()))
	for _, p := range e.Ports() {
		out = append(out, served{e.Address.Is4(), p.Name, p.Port.Protocol})
	}
	return out
}

func endpointPortsOf(ports []fsm.EndpointPort) (out []desired.EndpointPort) {
	for _, p := range ports {
		out = append(out, desired.EndpointPort{Name: p.Name, Port: portOf(p.Port)})
	}
	return out
}

func portOf(p fsm.Port) desired.Port {
	return desired.Port{Protocol: uint8(p.Protocol), Number: p.Number}
}
