// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api/balancing"
	"fairlead.io/fairlead/k8s/convert"
)

// captured is what a frontend names: a Service, a virtual address, or, in objects from before admission, both.
func (p *policy) captured() (service world.ID, address netip.Addr) {
	if m := p.front.ServiceMatcher; m != nil {
		service = world.ID{Namespace: m.Namespace, Name: m.ServiceName}
	}
	if m := p.front.AddressMatcher; m != nil {
		address, _ = netip.ParseAddr(strings.TrimSpace(m.IP))
	}
	return service, address.Unmap()
}

// conflicts checks that no other policy captures the same Service or the same address (A13). Ports make no difference, nor
// does the kind.
func (v *verdict) conflicts(p *policy, others []*policy, nodes []corev1.Node, by Rules) {
	service, address := p.captured()
	for _, o := range others {
		theirs, at := o.captured()
		field, what := "", ""
		switch {
		case service != world.ID{} && service == theirs:
			field, what = "spec.frontend.serviceMatcher", "Service "+service.String()
		case address.IsValid() && address == at:
			field, what = "spec.frontend.addressMatcher.ip", address.String()
		default:
			continue
		}
		if by.Conflict != Warn {
			v.deny(ruleConflict, field, "%s is captured by %s", "change that one, or remove it first", what, o)
		} else if where := meet(&p.value, &o.value, nodes); where != "" {
			v.warn(field, "%s is captured by %s, too, on %s", "there the older one counts among those of a kind, and a LocalRedirectPolicy goes first", what, o, where)
		}
	}
}

// meet names a host on which two policies are effective both; empty if there is none now.
func meet(a, b *world.Redirect, nodes []corev1.Node) string {
	for i := range nodes {
		n, _ := convert.Node(&nodes[i])
		if a.EffectiveOn(&n) && b.EffectiveOn(&n) {
			return "node " + n.Name
		}
	}
	if a.EffectiveOn(nil) && b.EffectiveOn(nil) {
		return "hosts outside the cluster"
	}
	return ""
}

// proxies checks that no other policy has the same port of a proxy address lead to other backends (A14). Where pods are is not
// asked: they may be anywhere tomorrow. Of addresses that somebody else manages nobody knows what they lead to.
func (v *verdict) proxies(p *policy, others []*policy, nodes []corev1.Node) {
	if p.value.Mode != world.ToProxies {
		return
	}
	node, managed := proxyNode(nodes)
	if node == "" {
		return
	}
	for _, o := range others {
		if o.value.Mode != world.ToProxies || sameProxy(&p.value, &o.value) {
			continue
		}
		theirs := proxyPorts(&o.value)
		for _, at := range proxyPorts(&p.value) {
			if !slices.Contains(theirs, at) {
				continue
			}
			const field = "spec.backend.serviceEndpoint.toPorts"
			if managed {
				v.deny(ruleProxy, field, "%d/%s at the proxy address of node %s leads to the pods of %s", "choose another port", at.Port, at.Protocol, node, o)
			} else {
				v.warn(field, "%d/%s at the proxy address of node %s is used by %s, for other pods", "make sure that it leads to both, or choose another port", at.Port, at.Protocol, node, o)
			}
		}
	}
}

// proxyNode names a node with a proxy address, one whose address is managed if there is any.
func proxyNode(nodes []corev1.Node) (name string, managed bool) {
	for i := range nodes {
		n := &nodes[i]
		note, _ := balancing.NodeOf(n.Annotations)
		if !note.ProxyV4.IsValid() && !note.ProxyV6.IsValid() {
			continue
		}
		// One that is the node's own was written by an agent of elf-io's balancing (balancing §2.3).
		if note.Managed || slices.ContainsFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool {
			at, err := netip.ParseAddr(a.Address)
			return err == nil && (at == note.ProxyV4 || at == note.ProxyV6)
		}) {
			return n.Name, true
		}
		if name == "" {
			name = n.Name
		}
	}
	return name, false
}

// sameProxy tells whether two policies have the same behind a proxy port: the same pods, at the same port of them.
func sameProxy(a, b *world.Redirect) bool {
	return reflect.DeepEqual(a.Pods, b.Pods) && reflect.DeepEqual(a.ProxyTargets, b.ProxyTargets) && a.Service == b.Service
}

// proxyPorts are the ports at proxy addresses that connections go to.
func proxyPorts(r *world.Redirect) []world.TargetPort {
	var out []world.TargetPort
	for _, p := range r.Ports {
		out = append(out, world.TargetPort{Protocol: p.Protocol, Port: p.Target})
	}
	for _, t := range r.Targets {
		out = append(out, world.TargetPort{Protocol: t.Protocol, Port: t.Port})
	}
	slices.SortFunc(out, func(a, b world.TargetPort) int {
		if c := strings.Compare(string(a.Protocol), string(b.Protocol)); c != 0 {
			return c
		}
		return int(a.Port) - int(b.Port)
	})
	return slices.Compact(out)
}

// occupied warns of a virtual address at which a node or an API server is to be found (A15).
func (v *verdict) occupied(p *policy, stored *Stored) {
	address := p.value.Address
	if !address.IsValid() {
		return
	}
	const field, remedy = "spec.frontend.addressMatcher.ip", "make sure that nobody needs what listens there"
	for _, at := range stored.APIServers {
		for _, q := range p.value.Ports {
			if at.Addr().Unmap() == address && at.Port() == q.Port && q.Protocol == world.TCP {
				v.warn(field, "an API server listens at %s", remedy, at)
			}
		}
	}
	for i := range stored.Nodes {
		for _, a := range stored.Nodes[i].Status.Addresses {
			if at, err := netip.ParseAddr(a.Address); err == nil && at.Unmap() == address {
				v.warn(field, "%s is an address of node %s", remedy, address, stored.Nodes[i].Name)
			}
		}
	}
}
