// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// proxyPort is a port of proxy addresses that connections go to, and how the pods' port behind it is found (balancing §13).
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

// proxy says what is behind a policy's proxy ports (balancing §13). Which nodes' proxy addresses connections get is found out by
// leadToProxies, once it is known whose ports are whose.
func (p *planner) proxy(r *fsm.Policy, o policy, old *fsm.Policy) {
	if !p.hasProxies() {
		// To capture without a backend would refuse connections that go somewhere without it.
		r.Captures = nil
		r.Pending = fsm.Pending{Code: WaitsForSupport, Text: "no node has a proxy address: there are no tunnels (tunnels in controller.yaml, tunnel in agent.yaml) and no annotations; connections go where they went without the policy"}
		settlePending(r, o)
		return
	}
	ports := proxyPorts(o, p.services[o.Service], r.Captures)
	var taken []string
	for _, pod := range p.in.Pods {
		if !pod.Alive() || !o.Pods.Matches(pod.Labels) {
			continue
		}
		if why := p.takenBy(o, pod.Node, ports); why != "" && p.in.Record.Group().Tunnels.On() {
			taken = append(taken, why)
			p.addProxied(r, pod, nil)
			continue
		}
		p.addProxied(r, pod, ports)
	}
	p.keepProxied(r, old)
	p.proxies = append(p.proxies, proxying{r, old, o, taken})
}

// proxying is a policy that leads to proxy addresses, whose nodes are still to be chosen.
type proxying struct {
	row, old *fsm.Policy // old may be nil
	policy   policy      // zero for one that is absent
	taken    []string    // nodes that are left out, and why
}

// leadToProxies chooses the nodes.
func (p *planner) leadToProxies() {
	for _, one := range p.proxies {
		r, old := one.row, one.old
		p.proxyBackends(r, old)
		if one.policy.Redirect == nil {
			continue
		}
		// Until a first node is ready connections go where they went: to capture would refuse them, for no lack of pods.
		if len(r.Backends) == 0 && len(r.Proxied) > 0 && len(r.Captures) > 0 && !slices.ContainsFunc(r.Captures, func(c fsm.Capture) bool { return capturedBy(old, c) }) {
			if r.Captures = nil; r.Pending.Code != WaitsForProxyPort {
				r.Pending = fsm.Pending{Code: WaitsForProxy, Text: "no node with a pod that it selects has its tunnel yet, and none has a proxy address of its own; connections go where they went without the policy"}
			}
		}
		p.reportTaken(r, one.taken)
		settlePending(r, one.policy)
	}
}

// hasProxies tells whether there can be a proxy address.
func (p *planner) hasProxies() bool {
	return p.in.Record.Group().Tunnels.On() || slices.ContainsFunc(p.in.Nodes, func(n *world.Node) bool { return len(n.Proxies) > 0 })
}

// addProxied adds a row for each address of a pod and each proxy port, so that each is known to be led by itself: a port that comes or
// goes says nothing of the others. A pod without any has one row all the same.
func (p *planner) addProxied(r *fsm.Policy, pod *world.Pod, ports []proxyPort) {
	one := fsm.ProxiedPod{Node: fsm.NodeID(pod.Node), Pod: pod.ID.String(), UID: pod.UID, Ready: pod.Ready}
	for _, one.Address = range pod.Addresses() { // one of each family
		led := 0
		for _, port := range ports {
			if target, ok := port.on(pod); ok && p.in.Record.Group().Tunnels.On() {
				row := one
				row.Ports = []fsm.ProxyPort{{Port: port.port, Target: target}}
				r.Proxied = append(r.Proxied, row)
				led++
			}
		}
		if led == 0 {
			r.Proxied = append(r.Proxied, one)
		}
	}
}

// keepProxied keeps pods of before that no source shows, until their absence may be acted on.
func (p *planner) keepProxied(r, old *fsm.Policy) {
	if old != nil {
		for _, was := range old.Proxied {
			id := podID(was.Pod)
			if p.pods[id] == nil && !p.in.MayRemove(world.KindPod, id) {
				r.Proxied = append(r.Proxied, was)
			}
		}
	}
	slices.SortStableFunc(r.Proxied, func(a, b fsm.ProxiedPod) int {
		return cmp.Or(compareEnds(a, b), slices.CompareFunc(a.Ports, b.Ports, func(a, b fsm.ProxyPort) int { return comparePorts(a.Port, b.Port) }))
	})
}

// compareEnds orders rows by the pod and its address.
func compareEnds(a, b fsm.ProxiedPod) int {
	return cmp.Or(strings.Compare(a.Pod, b.Pod), strings.Compare(a.UID, b.UID), a.Address.Compare(b.Address))
}

func comparePorts(a, b fsm.Port) int {
	return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Number, b.Number))
}

// stillProxied is what is left of a policy that is only lost.
func (p *planner) stillProxied(r *fsm.Policy) {
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
	old := *r
	p.proxies = append(p.proxies, proxying{row: r, old: &old})
}

// proxyBackends are one for each node with a pod, and each family in which it has a proxy address. A port that is new to the policy is
// captured once all nodes that it leads to by other ports lead it, too: those would be led to nowhere, or not at all (S9).
func (p *planner) proxyBackends(r, old *fsm.Policy) {
	pods := map[fsm.NodeID][]fsm.ProxiedPod{}
	for _, one := range r.Proxied {
		if had := p.have[r.ID]; had != nil { // of whatever object: nodes lead where they led
			if i := slices.IndexFunc(had.Proxied, one.SamePlace); i >= 0 {
				one.Since = had.Proxied[i].Since
			}
		}
		pods[one.Node] = append(pods[one.Node], one)
	}
	before := r.Backends
	if old != nil {
		before = old.Backends
	}
	var ends []proxyEnd
	for _, node := range sortedKeys(pods) {
		ends = append(ends, p.endsOf(node, pods[node], before)...)
	}
	captured := map[fsm.Port]bool{} // proxy ports, and whether they were captured before
	for _, c := range r.Captures {
		captured[behind(c)] = capturedBy(old, c)
	}
	p.hold(r, ends, captured)
	r.Backends = nil
	for _, e := range ends {
		if e.serves(captured) {
			r.Backends = append(r.Backends, e.PolicyBackend)
		}
	}
	slices.SortStableFunc(r.Backends, compareBackends)
}

// behind is the proxy port that a captured one becomes.
func behind(c fsm.Capture) fsm.Port { return fsm.Port{Protocol: c.Port.Protocol, Number: c.Target} }

// capturedBy tells whether a row, which may be nil, captures something for the same proxy port.
func capturedBy(r *fsm.Policy, c fsm.Capture) bool {
	return r != nil && slices.ContainsFunc(r.Captures, func(o fsm.Capture) bool { return behind(o) == behind(c) })
}

// hold takes new ports from what is captured that nodes do not lead yet which are led to already.
func (p *planner) hold(r *fsm.Policy, ends []proxyEnd, captured map[fsm.Port]bool) {
	var led []proxyEnd
	for _, e := range ends {
		if slices.ContainsFunc(sortedPorts(e.leads), func(at fsm.Port) bool { return captured[at] && e.leads[at] }) {
			led = append(led, e)
		}
	}
	// A node whose agent is silent holds nothing up as long as there are others.
	if awake := slices.DeleteFunc(slices.Clone(led), func(e proxyEnd) bool { return e.silent }); len(awake) > 0 {
		led = awake
	}
	for _, at := range sortedPorts(captured) {
		i := slices.IndexFunc(led, func(e proxyEnd) bool { return !captured[at] && e.lacks(at) })
		if i < 0 {
			continue
		}
		delete(captured, at)
		r.Captures = slices.DeleteFunc(slices.Clone(r.Captures), func(c fsm.Capture) bool { return behind(c) == at })
		p.explain(r.ID, WaitsForNode, fmt.Sprintf("proxy port %d/%s is not captured until node %s has said that it leads to pods there", at.Number, protocolOf(at), led[i].Node))
	}
}

// proxyEnd is a proxy address of a node.
type proxyEnd struct {
	fsm.PolicyBackend
	theirs bool // an administrator's: what its ports lead to is up to them
	was    bool // it is a backend already
	silent bool // the node's agent is
	// leads tells of each proxy port that there are pods for whether the node said that it leads there.
	leads map[fsm.Port]bool
}

func (e proxyEnd) lacks(at fsm.Port) bool {
	led, has := e.leads[at]
	return has && !led
}

// serves tells whether connections to what is captured may get the address: it leads somewhere, and there is nothing that it will lead and does
// not yet. Where it is a backend already it stays one, also while it comes to have pods for a port that only others had them for.
func (e proxyEnd) serves(captured map[fsm.Port]bool) bool {
	some := e.theirs
	for at, before := range captured {
		if e.lacks(at) && !(before && e.was) {
			return false
		}
		some = some || e.leads[at]
	}
	return some
}

// endsOf are a node's proxy addresses.
func (p *planner) endsOf(id fsm.NodeID, pods []fsm.ProxiedPod, before []fsm.PolicyBackend) (out []proxyEnd) {
	known, ok := fsm.Get[*fsm.Node](p.in.Record, fsm.TableNodes, string(id))
	node := p.nodes[id]
	if ok && known.Liveness == fsm.NodeDown || node == nil && p.in.MayRemove(world.KindNode, world.ID{Name: string(id)}) {
		return nil
	}
	up := node == nil || node.Ready
	add := func(at netip.Addr, theirs bool) {
		e := proxyEnd{PolicyBackend: fsm.PolicyBackend{Address: at, Node: id}, theirs: theirs, leads: map[fsm.Port]bool{}, silent: ok && known.Liveness == fsm.AgentDown}
		e.was = slices.ContainsFunc(before, func(b fsm.PolicyBackend) bool { return b.Address == at && b.Node == id })
		for _, pod := range pods {
			led := theirs
			if !theirs && pod.Address.Is4() == at.Is4() {
				for _, port := range pod.Ports {
					led = !pod.Since.IsZero() && ok && !known.Acknowledged.Before(pod.Since)
					e.leads[port.Port] = e.leads[port.Port] || led
				}
			}
			e.Ready = e.Ready || led && pod.Ready && up
		}
		leads := slices.Collect(maps.Values(e.leads))
		p.out.AwaitsNodes = p.out.AwaitsNodes || !theirs && (len(leads) == 0 || slices.Contains(leads, false))
		out = append(out, e)
	}
	administered := map[bool]bool{} // families, by whether they are IPv4
	if node != nil {
		for _, at := range node.Proxies {
			administered[at.Is4()] = true
			add(at, true)
		}
	}
	managed := p.in.Record.Group().Tunnels
	if node == nil { // what an administrator wrote stays what it was
		for _, b := range before {
			if b.Node == id && !managed.Covers(b.Address) {
				administered[b.Address.Is4()] = true
				add(b.Address, true)
			}
		}
	}
	addresses, _ := p.in.Record.TunnelOf(fsm.NodeTunnel(id))
	for _, at := range addresses {
		if !administered[at.Is4()] {
			add(at, false)
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
	first := map[fsm.Port]*fsm.Policy{}
	rows := slices.Clone(p.rows)
	slices.SortStableFunc(rows, func(a, b *fsm.Policy) int {
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
func leadAlike(a, b *fsm.Policy, at fsm.Port) bool {
	type end struct {
		pod    string
		target uint16
	}
	ends := func(r *fsm.Policy) map[end]bool {
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

func losePorts(r *fsm.Policy, lost map[fsm.Port]string) {
	r.Captures = slices.DeleteFunc(slices.Clone(r.Captures), func(c fsm.Capture) bool {
		_, is := lost[fsm.Port{Protocol: c.Port.Protocol, Number: c.Target}]
		return is
	})
	r.Proxied = slices.Clone(r.Proxied)
	for i := range r.Proxied {
		r.Proxied[i].Ports = slices.DeleteFunc(slices.Clone(r.Proxied[i].Ports), func(at fsm.ProxyPort) bool { _, is := lost[at.Port]; return is })
	}
	r.Proxied = withoutEmpty(r.Proxied)
	if r.Pending.Code != "" && r.Pending.Code != WaitsForProxy {
		return
	}
	ports := sortedPorts(lost)
	at := ports[0]
	r.Pending = fsm.Pending{Code: WaitsForProxyPort, Text: fmt.Sprintf("proxy port %d/%s is that of %s already; choose another port, connections go where they went without the policy",
		at.Number, protocolOf(at), lost[at])}
}

// withoutEmpty leaves rows without ports out where the pod has others at that address, and all but one where it has none.
func withoutEmpty(rows []fsm.ProxiedPod) (out []fsm.ProxiedPod) {
	for i, row := range rows {
		same := func(o fsm.ProxiedPod) bool { return compareEnds(o, row) == 0 }
		if len(row.Ports) > 0 || !slices.ContainsFunc(out, same) && !slices.ContainsFunc(rows[i+1:], func(o fsm.ProxiedPod) bool { return same(o) && len(o.Ports) > 0 }) {
			out = append(out, row)
		}
	}
	return out
}

func sortedPorts[V any](of map[fsm.Port]V) []fsm.Port {
	return slices.SortedFunc(maps.Keys(of), comparePorts)
}
