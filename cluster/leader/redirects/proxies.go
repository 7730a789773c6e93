// SPDX-License-Identifier: Apache-2.0

package redirects

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// proxyPort is a port of proxy addresses that connections go to, and how the pods' port behind it is found (section 13).
type proxyPort struct {
	port   fsm.Port
	target string // a number, or a name of a port of a container
}

// proxyPorts are those of a policy, each once: what the annotation says of it, else the targetPort of the Service's port that is
// captured, else the same number.
func proxyPorts(o policy, service *world.Service, captures []fsm.Capture) (out []proxyPort) {
	for _, c := range captures {
		at := fsm.Port{Protocol: c.Port.Protocol, Number: c.Target}
		if slices.ContainsFunc(out, func(p proxyPort) bool { return p.port == at }) {
			continue
		}
		target := strconv.Itoa(int(c.Target))
		protocol := protocolOf(c.Port)
		if service != nil {
			i := slices.IndexFunc(service.Ports, func(p world.ServicePort) bool { return p.Port == c.Port.Number && p.Protocol == protocol })
			if i >= 0 && service.Ports[i].TargetPort != "" {
				target = service.Ports[i].TargetPort
			}
		}
		if name, ok := nameOf(o, c); ok {
			for _, kv := range o.ProxyTargets {
				if kv.Key == name {
					target = kv.Value
				}
			}
		}
		out = append(out, proxyPort{at, target})
	}
	return out
}

// nameOf is the name of the backend's port that a capture leads to.
func nameOf(o policy, c fsm.Capture) (string, bool) {
	protocol := protocolOf(c.Port)
	for _, p := range o.Ports {
		if p.Port == c.Port.Number && p.Protocol == protocol && p.Target == c.Target {
			return p.Name, true
		}
	}
	for _, t := range o.Targets {
		if t.Port == c.Target && t.Protocol == protocol {
			return t.Name, true
		}
	}
	return "", false
}

// on resolves the port on a pod; false if none of its containers has a port of the name.
func (p proxyPort) on(pod *world.Pod) (uint16, bool) {
	if n, err := strconv.ParseUint(p.target, 10, 16); err == nil && n > 0 {
		return uint16(n), true
	}
	protocol := protocolOf(p.port)
	for _, c := range pod.Ports {
		if c.Name == p.target && c.Protocol == protocol {
			return c.Port, true
		}
	}
	return 0, false
}

// proxy says what is behind a policy's proxy ports, and which nodes' proxy addresses connections get (section 13).
func (p *planner) proxy(r *fsm.Redirect, o policy, old *fsm.Redirect) {
	if !p.hasProxies() {
		// To capture without a backend would refuse connections that go somewhere without it.
		r.Captures = nil
		r.Pending = fsm.Pending{Code: WaitsForSupport, Text: "no node has a proxy address: there are no tunnels (tunnels in controller.yaml, tunnel in agent.yaml) and no annotations; connections go where they went without the policy"}
		return
	}
	ports := proxyPorts(o, p.services[o.Service], r.Captures)
	for _, pod := range p.in.Pods {
		if pod.Alive() && o.Pods.Matches(pod.Labels) {
			p.addProxied(r, pod, ports, old)
		}
	}
	p.keepProxied(r, old)
	p.proxyBackends(r, old)
	// Until a first node is ready connections go where they went: to capture would refuse them, for no lack of pods.
	if len(r.Backends) == 0 && len(r.Proxied) > 0 && (old == nil || len(old.Captures) == 0) {
		r.Captures = nil
		r.Pending = fsm.Pending{Code: WaitsForProxy, Text: "no node with a pod that it selects has its tunnel yet, and none has a proxy address of its own; connections go where they went without the policy"}
	}
}

// hasProxies tells whether there can be a proxy address.
func (p *planner) hasProxies() bool {
	return p.in.Record.Group().Tunnels.On() || slices.ContainsFunc(p.in.Nodes, func(n *world.Node) bool { return len(n.Proxies) > 0 })
}

func (p *planner) addProxied(r *fsm.Redirect, pod *world.Pod, ports []proxyPort, old *fsm.Redirect) {
	address, err := netip.ParseAddr(pod.IP)
	if err != nil {
		return
	}
	one := fsm.ProxiedPod{Node: fsm.NodeID(pod.Node), Pod: pod.ID.String(), UID: pod.UID, Address: address.Unmap(), Ready: pod.Ready}
	if p.in.Record.Group().Tunnels.On() {
		for _, port := range ports {
			if target, ok := port.on(pod); ok {
				one.Ports = append(one.Ports, fsm.ProxyPort{Port: port.port, Target: target})
			}
		}
	}
	r.Proxied = append(r.Proxied, one)
}

// keepProxied keeps pods of before that no source shows, until their absence may be acted on.
func (p *planner) keepProxied(r, old *fsm.Redirect) {
	if old != nil {
		for _, was := range old.Proxied {
			id := podID(was.Pod)
			if p.pods[id] == nil && !p.in.MayRemove(world.KindPod, id) {
				r.Proxied = append(r.Proxied, was)
			}
		}
	}
	slices.SortFunc(r.Proxied, func(a, b fsm.ProxiedPod) int {
		return cmp.Or(strings.Compare(a.Pod, b.Pod), strings.Compare(a.UID, b.UID))
	})
}

// stillProxied is what is left of a policy that is only lost.
func (p *planner) stillProxied(r *fsm.Redirect) {
	was := r.Proxied
	r.Proxied = nil
	for _, one := range was {
		id := podID(one.Pod)
		pod := p.pods[id]
		switch {
		case pod == nil && p.in.MayRemove(world.KindPod, id), pod != nil && (pod.UID != one.UID || !pod.Alive()):
			continue
		case pod != nil:
			one.Ready = pod.Ready
		}
		r.Proxied = append(r.Proxied, one)
	}
	p.proxyBackends(r, r)
}

// proxyBackends are one for each node with a pod, and each family in which it has a proxy address.
func (p *planner) proxyBackends(r, old *fsm.Redirect) {
	pods := map[fsm.NodeID][]fsm.ProxiedPod{}
	for _, one := range r.Proxied {
		if old != nil {
			if i := slices.IndexFunc(old.Proxied, func(was fsm.ProxiedPod) bool { return was.SamePlace(one) }); i >= 0 {
				one.Since = old.Proxied[i].Since
			}
		}
		pods[one.Node] = append(pods[one.Node], one)
	}
	before := r.Backends
	if old != nil {
		before = old.Backends
	}
	r.Backends = nil
	for _, node := range sortedKeys(pods) {
		r.Backends = append(r.Backends, p.proxiesOf(node, pods[node], before)...)
	}
	slices.SortFunc(r.Backends, compareBackends)
}

func (p *planner) proxiesOf(id fsm.NodeID, pods []fsm.ProxiedPod, before []fsm.RedirectBackend) (out []fsm.RedirectBackend) {
	known, ok := fsm.Get[*fsm.Node](p.in.Record, fsm.TableNodes, string(id))
	node := p.nodes[id]
	if ok && known.Liveness == fsm.NodeDown || node == nil && p.in.MayRemove(world.KindNode, world.ID{Name: string(id)}) {
		return nil
	}
	up := node == nil || node.Ready
	someReady := func(at netip.Addr, led bool) (some, ready bool) {
		for _, pod := range pods {
			if !led || pod.Address.Is4() == at.Is4() && len(pod.Ports) > 0 && !pod.Since.IsZero() && ok && !known.Acknowledged.Before(pod.Since) {
				some, ready = true, ready || pod.Ready && up
			}
		}
		return some, ready
	}
	add := func(at netip.Addr, led bool) {
		if some, ready := someReady(at, led); some {
			out = append(out, fsm.RedirectBackend{Address: at, Node: id, Ready: ready})
		} else if led {
			p.out.AwaitsNodes = true
		}
	}
	administered := map[bool]bool{} // families, by whether they are IPv4
	if node != nil {
		for _, at := range node.Proxies {
			administered[at.Is4()] = true
			add(at, false)
		}
	}
	managed := p.in.Record.Group().Tunnels
	if node == nil { // what an administrator wrote stays what it was
		for _, b := range before {
			if b.Node == id && !managed.Covers(b.Address) {
				administered[b.Address.Is4()] = true
				add(b.Address, false)
			}
		}
	}
	addresses, _ := p.in.Record.TunnelOf(id)
	for _, at := range addresses {
		if !administered[at.Is4()] {
			add(at, true)
		}
	}
	return out
}

func podID(name string) world.ID {
	namespace, name, _ := strings.Cut(name, "/")
	return world.ID{Namespace: namespace, Name: name}
}

// claimed is a proxy port that somebody has.
type claimed struct {
	port fsm.Port
	by   string
}

// settleProxyPorts sees to it that no proxy port is two policies', or a node port's: who has it keeps it, and the other policy does not
// capture what would go there (A14).
func (p *planner) settleProxyPorts() {
	taken := map[fsm.Port]claimed{}
	for _, s := range p.in.Services {
		for _, port := range s.Ports {
			if port.NodePort != 0 {
				at := portOf(port.Protocol, port.NodePort)
				taken[at] = claimed{at, "a node port of Service " + s.ID.String()}
			}
		}
	}
	first := map[fsm.Port]*fsm.Redirect{}
	rows := slices.Clone(p.rows)
	slices.SortStableFunc(rows, func(a, b *fsm.Redirect) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), strings.Compare(string(a.ID), string(b.ID)))
	})
	for _, r := range rows {
		if r.Mode != string(world.ToProxies) || !p.in.Record.Group().Tunnels.On() {
			continue
		}
		lost := map[fsm.Port]string{}
		for _, one := range r.Proxied {
			for _, port := range one.Ports {
				at := port.Port
				if c, is := taken[at]; is {
					lost[at] = c.by
				} else if other := first[at]; other != nil && other != r && !leadAlike(other, r, at) {
					lost[at] = string(other.ID)
				} else if other == nil {
					first[at] = r
				}
			}
		}
		if len(lost) > 0 {
			losePorts(r, lost)
		}
	}
}

// leadAlike tells whether a proxy port leads to the same in both.
func leadAlike(a, b *fsm.Redirect, at fsm.Port) bool {
	type end struct {
		pod    string
		target uint16
	}
	ends := func(r *fsm.Redirect) map[end]bool {
		out := map[end]bool{}
		for _, pod := range r.Proxied {
			for _, port := range pod.Ports {
				if port.Port == at {
					out[end{pod.Pod, port.Target}] = true
				}
			}
		}
		return out
	}
	x, y := ends(a), ends(b)
	for e := range x {
		if !y[e] {
			return false
		}
	}
	return len(x) == len(y)
}

func losePorts(r *fsm.Redirect, lost map[fsm.Port]string) {
	r.Captures = slices.DeleteFunc(slices.Clone(r.Captures), func(c fsm.Capture) bool {
		_, is := lost[fsm.Port{Protocol: c.Port.Protocol, Number: c.Target}]
		return is
	})
	r.Proxied = slices.Clone(r.Proxied)
	for i := range r.Proxied {
		r.Proxied[i].Ports = slices.DeleteFunc(slices.Clone(r.Proxied[i].Ports), func(at fsm.ProxyPort) bool { _, is := lost[at.Port]; return is })
	}
	if r.Pending.Code != "" && r.Pending.Code != WaitsForProxy {
		return
	}
	ports := sortedPorts(lost)
	at := ports[0]
	r.Pending = fsm.Pending{Code: WaitsForProxyPort, Text: fmt.Sprintf("proxy port %d/%s is that of %s already; choose another port, connections go where they went without the policy",
		at.Number, protocolOf(at), lost[at])}
}

func sortedPorts(of map[fsm.Port]string) (out []fsm.Port) {
	for p := range of {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b fsm.Port) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Number, b.Number))
	})
	return out
}
