// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"fairlead.io/fairlead/fsm"
)

// toProxies is the mode of policies that lead to proxy addresses of nodes.
const toProxies = "nodeProxy"

func (p *policy) byProxies() bool {
	return p.spec.Backend.Endpoints != nil && p.spec.Backend.Endpoints.Mode == toProxies
}

// behind is a pod, and its port, behind a proxy port.
type behind struct {
	pod    string
	target uint16
}

// proxied are the pods that a policy selects, behind each of its proxy ports (balancing §13).
func (r resolution) proxied(p *policy) map[dialled]map[behind]bool {
	out := map[dialled]map[behind]bool{}
	for _, c := range r.asked(p) {
		at := dialled{port: c.target, protocol: c.protocol}
		if out[at] != nil {
			continue
		}
		out[at] = map[behind]bool{}
		for id, pod := range r.pods {
			if !pod.gone && pod.running && p.spec.Backend.Endpoints.Pods.matches(pod.labels) {
				out[at][behind{id, r.targetBehind(p, c)}] = true
			}
		}
	}
	return out
}

// targetBehind is the port of pods behind a proxy port: what an annotation says, the targetPort of the Service's port, or the same number.
func (r resolution) targetBehind(p *policy, c capture) uint16 {
	for _, t := range p.targets() {
		if number(t.Port) == c.target && t.Protocol == c.protocol {
			if n, err := strconv.ParseUint(p.annotations["balancing.elf.io/nodeProxyTargetPort."+t.Name], 10, 16); err == nil {
				return uint16(n)
			}
		}
	}
	if f := p.spec.Frontend.Service; f != nil && r.services[f.Namespace+"/"+f.Name] != nil {
		for _, own := range r.services[f.Namespace+"/"+f.Name].ports {
			if own.Port == c.port && own.Protocol == c.protocol && own.Target != 0 {
				return own.Target
			}
		}
	}
	return c.target
}

// losesPort tells whether a proxy port of a policy is another one's: of those that lead elsewhere by it, the oldest has it (A14).
func (r resolution) losesPort(p *policy, at dialled) bool {
	var all []*policy
	for _, id := range sortedKeys(r.policies) {
		if o := r.policies[id]; !o.gone && o.byProxies() && len(r.proxied(o)[at]) > 0 {
			all = append(all, o)
		}
	}
	slices.SortStableFunc(all, func(a, b *policy) int { return cmp.Compare(a.created, b.created) })
	return slices.Contains(all, p) && !maps.Equal(r.proxied(all[0])[at], r.proxied(p)[at])
}

// proxies are the proxy addresses that a policy leads to at a place: of each node that is up and has pods, ready or not.
func (r resolution) proxies(p *policy, at dialled, target uint16) map[string]int {
	ready, running := map[string]int{}, map[string]int{}
	for one := range r.proxied(p)[dialled{port: target, protocol: at.protocol}] {
		pod := r.pods[one.pod]
		a, has := pod.in(at.address)
		n := r.nodes[pod.node]
		t, given := fsm.Get[*fsm.Tunnel](r.view, fsm.TableTunnels, pod.node)
		if !has || n == nil || n.gone || !given {
			continue
		}
		for _, own := range r.view.Group().Tunnels.Addresses(t.Number) {
			if own.Is4() != a.Is4() {
				continue
			}
			key := netip.AddrPortFrom(own, target).String()
			if running[key] = 1; pod.ready && n.ready {
				ready[key] = 1
			}
		}
	}
	if len(ready) == 0 {
		return running
	}
	return ready
}

// behindPort are the endpoints that a proxy port of a policy leads to on a node: its own pods that are ready, else those elsewhere, else its
// own that run, else any.
func (r resolution) behindPort(p *policy, node string, at dialled) []string {
	ranks := make([][]string, 4)
	for one := range r.proxied(p)[dialled{port: at.port, protocol: at.protocol}] {
		pod := r.pods[one.pod]
		a, has := pod.in(at.address)
		if !has {
			continue
		}
		rank := map[[2]bool]int{{true, true}: 0, {true, false}: 1, {false, true}: 2, {false, false}: 3}[[2]bool{pod.ready, pod.node == node}]
		ranks[rank] = append(ranks[rank], netip.AddrPortFrom(a, one.target).String())
	}
	for _, list := range ranks {
		if slices.Sort(list); len(list) > 0 {
			return list
		}
	}
	return nil
}

// reached judges that calls on a node which are led to proxy addresses get to pods of the policy.
func (r *l1) reached(v *fsm.View, m resolution, node string, at dialled, want answer) {
	p := m.policies[want.by]
	if p == nil || !p.byProxies() {
		return
	}
	for _, b := range sortedKeys(want.backends) {
		to := netip.MustParseAddrPort(b)
		t, ok := tunnelAt(v, to.Addr())
		subject := fmt.Sprintf("calls on %s to %s by %s", node, at, b)
		if !ok || !r.able(v, string(t.Host)) {
			continue
		}
		if why := r.scene.passes(node, string(t.Host), to.Addr()); why != "" {
			r.broken(subject, "they do not get there: "+why, r.scene.end(node).number, r.scene.end(string(t.Host)).number)
		}
		port := dialled{to.Addr(), to.Port(), at.protocol}
		row := r.scene.end(string(t.Host)).ports[port]
		if pods := m.behindPort(p, string(t.Host), port); !slices.Equal(row.To, pods) {
			r.broken(subject, fmt.Sprintf("they get to %v there, and shall get to %v", row.To, pods), row.number)
		}
	}
}

// tunnelAt finds the host with a tunnel address.
func tunnelAt(v *fsm.View, a netip.Addr) (*fsm.Tunnel, bool) {
	for _, t := range fsm.List[*fsm.Tunnel](v, fsm.TableTunnels) {
		if slices.Contains(v.Group().Tunnels.Addresses(t.Number), a) {
			return t, true
		}
	}
	return nil, false
}
