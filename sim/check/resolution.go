// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/guest/start"
)

// dialled is what programs dial.
type dialled struct {
	address  netip.Addr
	port     uint16
	protocol string
}

func (p dialled) String() string {
	return fmt.Sprintf("%s/%s", netip.AddrPortFrom(p.address, p.port), p.protocol)
}

func comparePlaces(a, b dialled) int {
	return cmp.Or(a.address.Compare(b.address), cmp.Compare(a.port, b.port), cmp.Compare(a.protocol, b.protocol))
}

// capture is a place that a policy captures, and the port of backends that it becomes.
type capture struct {
	dialled
	target uint16
}

// answer is what a call gets: a verdict, of "use" the backends and how many shares of calls each has, and who says so.
type answer struct {
	verdict  string
	backends map[string]int
	by       string
}

// resolution is the model of the answers: the specification read once more (balancing §4 to §10).
type resolution struct {
	*atSockets
	on   start.Sockets
	view *fsm.View // says which addresses outside the cluster a Service has
}

// enabled tells whether a policy is carried out anywhere.
func (p *policy) enabled() bool { return !p.gone && (p.spec.Enabled == nil || *p.spec.Enabled) }

// effective tells whether it is on a node (balancing §8). The agent of a machine without a Node has the policies that ask for no labels, as it has all Services.
func (r resolution) effective(p *policy, node string) bool {
	var labels map[string]string
	if n := r.nodes[node]; n != nil && !n.gone {
		labels = n.labels
	}
	return p.enabled() && p.spec.Config.Nodes.matches(labels)
}

// targets are the ports of a policy's backends.
func (p *policy) targets() []policyPort {
	switch b := p.spec.Backend; {
	case p.kind == "LocalRedirectPolicy":
		return b.Ports
	case b.Addresses != nil:
		return b.Addresses.Ports
	case b.Endpoints != nil:
		return b.Endpoints.Ports
	}
	return nil
}

// captures are the places of a policy, without those that would go to a proxy port of another one.
func (r resolution) captures(p *policy) []capture {
	asked := r.asked(p)
	if !p.byProxies() {
		return asked
	}
	return slices.DeleteFunc(asked, func(c capture) bool { return r.losesPort(p, dialled{port: c.target, protocol: c.protocol}) })
}

// asked are the places that a policy asks for (balancing §4), joined by name and protocol to the ports of its backends (§5).
func (r resolution) asked(p *policy) (out []capture) {
	join := func(a netip.Addr, f policyPort) {
		for _, t := range p.targets() {
			if t.Name == f.Name && t.Protocol == f.Protocol {
				out = append(out, capture{dialled{a, number(f.Port), f.Protocol}, number(t.Port)})
				return
			}
		}
	}
	if f := p.spec.Frontend.Address; f != nil {
		if a, err := netip.ParseAddr(f.IP); err == nil && p.leadsOn(a) {
			for _, port := range f.Ports {
				join(a, port)
			}
		}
		return out
	}
	f := p.spec.Frontend.Service
	if f == nil || r.services[f.Namespace+"/"+f.Name] == nil {
		return nil
	}
	s := r.services[f.Namespace+"/"+f.Name]
	for _, a := range s.addresses {
		if s.gone {
			break
		}
		for _, port := range f.Ports {
			if slices.ContainsFunc(s.ports, func(own insidePort) bool { return own.Port == number(port.Port) && own.Protocol == port.Protocol }) {
				join(a, port)
			}
		}
		if len(f.Ports) > 0 {
			continue
		}
		for _, own := range s.ports {
			if t := p.targetOf(own); t != 0 {
				out = append(out, capture{dialled{a, own.Port, own.Protocol}, t})
			}
		}
	}
	return out
}

// leadsOn tells whether one of the addresses that a policy lists, if it does, is of the family of the one that it captures: others are not
// used as written, nor let in where somebody admits policies (A11).
func (p *policy) leadsOn(from netip.Addr) bool {
	b := p.spec.Backend.Addresses
	return b == nil || slices.ContainsFunc(b.List, func(text string) bool {
		a, err := netip.ParseAddr(text)
		return err == nil && a.Is4() == from.Is4()
	})
}

// formerLife tells whether the record has a former life of a policy that came back under its name in a form that nobody can use. That form is not
// absent, so that the former one stays, with all that it takes from others: its places, and its proxy ports.
func (r resolution) formerLife() bool {
	for id, p := range r.policies {
		f := p.spec.Frontend.Address
		if p.gone || f == nil {
			continue
		}
		a, err := netip.ParseAddr(f.IP)
		d, has := fsm.Get[*fsm.Policy](r.view, fsm.TablePolicies, id)
		if err == nil && !p.leadsOn(a) && has && d.UID != p.uid {
			return true
		}
	}
	return false
}

// targetOf is the port of backends for a port of a Service, where all are captured: that of its name, else the only one of its protocol.
func (p *policy) targetOf(own insidePort) (target uint16) {
	n := 0
	for _, t := range p.targets() {
		switch {
		case t.Protocol != own.Protocol:
		case t.Name == own.Name:
			return number(t.Port)
		default:
			n++
			target = number(t.Port)
		}
	}
	if n != 1 {
		return 0
	}
	return target
}

func number(text string) uint16 {
	n, _ := strconv.ParseUint(text, 10, 16) // texts that are none were not let into the world
	return uint16(n)
}

// winner is the policy of a kind that counts at a place on a node, the oldest, then the first by name (balancing §3), and the port of its backends.
func (r resolution) winner(kind, node string, at dialled) (best *policy, target uint16) {
	for _, id := range sortedKeys(r.policies) {
		p := r.policies[id]
		if p.kind != kind || !r.effective(p, node) {
			continue
		}
		for _, c := range r.captures(p) {
			if c.dialled == at && (best == nil || p.created < best.created) {
				best, target = p, c.target
			}
		}
	}
	return best, target
}

// backends are those that a policy has on a node for a place (balancing §6), each with its share of calls.
func (r resolution) backends(p *policy, node string, at dialled, target uint16) map[string]int {
	ready, running := map[string]int{}, map[string]int{}
	add := func(to map[string]int, a netip.Addr, again bool) {
		if key := netip.AddrPortFrom(a, target).String(); a.Is4() == at.address.Is4() && (again || to[key] == 0) {
			to[key]++
		}
	}
	if b := p.spec.Backend.Addresses; b != nil {
		for _, text := range b.List {
			if a, err := netip.ParseAddr(text); err == nil {
				add(ready, a, true)
			}
		}
		return ready
	}
	chosen, mode := p.spec.Backend.Pods, ""
	if e := p.spec.Backend.Endpoints; e != nil {
		chosen, mode = e.Pods, e.Mode
	}
	if mode == toProxies {
		return r.proxies(p, at, target)
	}
	for _, id := range sortedKeys(r.pods) {
		pod := r.pods[id]
		if pod.gone || !pod.running || !chosen.matches(pod.labels) || p.kind == "LocalRedirectPolicy" && pod.node != node {
			continue
		}
		addresses := pod.addresses
		if mode == "hostPort" {
			addresses = nil
			if n := r.nodes[pod.node]; n != nil && !n.gone {
				addresses = n.addresses
			}
		}
		for _, a := range addresses {
			if add(running, a, false); pod.ready {
				add(ready, a, false)
			}
		}
	}
	if len(ready) == 0 && p.kind == "BalancingPolicy" {
		return running
	}
	return ready
}

// answer is what a call on a node gets that dials a place, and who says so; beyond the limit of local redirection if spent (balancing §7, §11).
func (r resolution) answer(node string, at dialled, spent bool) answer {
	local, target := r.winner("LocalRedirectPolicy", node, at)
	if local != nil && !spent {
		if have := r.backends(local, node, at, target); len(have) > 0 {
			return answer{"use", have, local.kind + "/" + local.name}
		}
	}
	if p, target := r.winner("BalancingPolicy", node, at); p != nil {
		have := r.backends(p, node, at, target)
		switch {
		case len(have) > 0:
			return answer{"use", have, p.kind + "/" + p.name}
		case p.annotations["balancing.elf.io/onNoBackend"] != "fallthrough":
			return answer{"refuse", nil, p.kind + "/" + p.name}
		}
	}
	return r.pastBalancing(node, at)
}

// spares tells whether whoever counts at a place leaves calls of its own backends alone (balancing §6).
func (r resolution) spares(counts answer) bool {
	p := r.policies[counts.by]
	return p != nil && counts.verdict == "use" && p.annotations["balancing.elf.io/skipRedirectFromBackend"] == "true"
}

// pastBalancing is what a call gets that no policy takes, and what backends get of a BalancingPolicy that leaves them alone.
func (r resolution) pastBalancing(node string, at dialled) answer {
	local, _ := r.winner("LocalRedirectPolicy", node, at)
	if a, ok := r.service(node, at); ok {
		return a
	}
	if local != nil && local.spec.Frontend.Address != nil { // nothing stands behind the address (balancing §11); behind a Service's somebody else may
		return answer{"refuse", nil, local.kind + "/" + local.name}
	}
	return answer{verdict: "pass"}
}

// limited tells whether calls to a place are counted on a node: those that a LocalRedirectPolicy takes.
func (r resolution) limited(node string, at dialled) bool {
	local, target := r.winner("LocalRedirectPolicy", node, at)
	return local != nil && len(r.backends(local, node, at, target)) > 0
}

// service is what Services say of a place (balancing §10). Whoever has a place was given it alone.
func (r resolution) service(node string, at dialled) (answer, bool) {
	atNode := false
	for _, n := range r.nodes {
		atNode = atNode || !n.gone && slices.Contains(n.addresses, at.address)
	}
	for _, id := range sortedKeys(r.services) {
		s := r.services[id]
		if !s.served {
			continue
		}
		for _, p := range s.ports {
			if p.Protocol != at.protocol {
				continue
			}
			switch {
			case p.Port == at.port && r.on.ClusterIPs && slices.Contains(s.addresses, at.address):
				return r.endpoints(id, node, at, p, s.local), true
			case p.Port == at.port && !s.narrowed && r.has(id, at), p.NodePort != 0 && p.NodePort == at.port && atNode && r.hasNodePorts(id, s, at, p):
				return r.endpoints(id, node, at, p, false), true
			}
		}
	}
	return answer{}, false
}

// has tells whether the group gave a Service an address, or a user did, with a port.
func (r resolution) has(id string, at dialled) bool {
	return slices.ContainsFunc(r.view.Addresses(fsm.ServiceID(id)), func(a *fsm.Allocation) bool {
		return a.Address == at.address && slices.ContainsFunc(a.Ports(), func(p fsm.Port) bool { return p.Number == at.port && protocolName(p) == at.protocol })
	})
}

func protocolName(p fsm.Port) string {
	if p.Protocol == fsm.UDP {
		return "UDP"
	}
	return "TCP"
}

// hasNodePorts tells whether a node port of a Service is served in the family of a place: where the group serves those of all, in those that
// it has, else in those of the addresses that it was given.
func (r resolution) hasNodePorts(id string, s *insideService, at dialled, p insidePort) bool {
	same := func(a netip.Addr) bool { return a.Is4() == at.address.Is4() }
	if r.on.NodePorts && slices.ContainsFunc(s.addresses, same) {
		return true
	}
	given := r.view.Addresses(fsm.ServiceID(id))
	port := slices.ContainsFunc(given, func(a *fsm.Allocation) bool {
		return slices.ContainsFunc(a.Ports(), func(o fsm.Port) bool { return o.Number == p.Port && protocolName(o) == p.Protocol })
	})
	return (port || r.on.ClusterIPs) && slices.ContainsFunc(given, func(a *fsm.Allocation) bool { return same(a.Address) })
}

// endpoints are those of a port of a Service that a call gets: the ready ones, else those that serve while they end.
func (r resolution) endpoints(id, node string, at dialled, p insidePort, local bool) answer {
	find := func(onNode string) map[string]int {
		ready, ending := map[string]int{}, map[string]int{}
		for _, name := range sortedKeys(r.slices) {
			slice := r.slices[name]
			if slice.service != id {
				continue
			}
			for _, e := range slice.endpoints {
				for _, port := range slice.ports {
					a, err := netip.ParseAddr(first(e.Addresses))
					if err != nil || port.Name != p.Name || port.Protocol != p.Protocol || a.Is4() != at.address.Is4() || onNode != "" && e.NodeName != onNode {
						continue
					}
					is := func(b *bool, otherwise bool) bool { return b == nil && otherwise || b != nil && *b }
					switch key := netip.AddrPortFrom(a, port.Port).String(); {
					case is(e.Conditions.Ready, true):
						ready[key] = 1
					case is(e.Conditions.Serving, false) && is(e.Conditions.Terminating, false):
						ending[key] = 1
					}
				}
			}
		}
		if len(ready) == 0 {
			return ending
		}
		return ready
	}
	all := find("")
	have := all
	if local {
		have = find(node)
	}
	switch {
	case len(have) > 0:
		return answer{"use", have, id}
	case len(all) > 0:
		return answer{"unreachable", nil, id}
	}
	return answer{"refuse", nil, id}
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
