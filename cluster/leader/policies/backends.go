// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// backends are what connections get (balancing §6): all pods that run, and which of them are ready. Which of them a host may use it
// decides itself, by family, node and readiness.
func (p *planner) backends(o policy, old *fsm.Policy) (out []fsm.PolicyBackend) {
	if o.Mode == world.ToAddresses {
		for _, a := range o.Addresses {
			out = append(out, fsm.PolicyBackend{Address: a, Ready: true})
		}
		return out
	}
	for _, pod := range p.in.Pods {
		if pod.Alive() && o.Pods.Matches(pod.Labels) {
			out = append(out, p.backendsOf(o, pod, old)...)
		}
	}
	if old != nil {
		for _, b := range p.stillThere(old) {
			if p.pods[podOf(b)] == nil {
				out = append(out, b)
			}
		}
	}
	slices.SortStableFunc(out, compareBackends)
	return slices.Compact(out)
}

// backendsOf are the addresses that stand for a pod.
func (p *planner) backendsOf(o policy, pod *world.Pod, old *fsm.Policy) (out []fsm.PolicyBackend) {
	backend := fsm.PolicyBackend{Node: fsm.NodeID(pod.Node), Pod: pod.ID.String(), UID: pod.UID, HostUID: pod.HostUID, Ready: pod.Ready}
	if o.Mode == world.ToHostPorts {
		return p.atNode(backend, old)
	}
	for _, backend.Address = range pod.Addresses() {
		out = append(out, backend)
	}
	return out
}

// atNode are the addresses of the node that a pod is on.
func (p *planner) atNode(backend fsm.PolicyBackend, old *fsm.Policy) (out []fsm.PolicyBackend) {
	node := p.nodes[backend.Node]
	if node == nil {
		return p.addressesBefore(backend, old)
	}
	for _, family := range []world.Family{world.IPv4, world.IPv6} {
		for _, kind := range []world.AddressType{world.InternalIP, world.ExternalIP} {
			if address, ok := node.Address(kind, family); ok {
				backend.Address = address
				out = append(out, backend)
				break
			}
		}
	}
	return out
}

// addressesBefore are those that stood for a pod whose node is not there to be seen, until that is surely gone.
func (p *planner) addressesBefore(backend fsm.PolicyBackend, old *fsm.Policy) (out []fsm.PolicyBackend) {
	if old == nil || p.in.MayRemove(world.KindNode, world.ID{Name: string(backend.Node)}) {
		return nil
	}
	for _, b := range old.Backends {
		if b.Pod == backend.Pod && b.UID == backend.UID && b.Node == backend.Node {
			backend.Address = b.Address
			out = append(out, backend)
		}
	}
	return out
}

// stillThere are the backends of a row without those whose pods are surely gone, or are there and serve nobody any more.
func (p *planner) stillThere(old *fsm.Policy) (out []fsm.PolicyBackend) {
	for _, b := range old.Backends {
		pod := p.pods[podOf(b)]
		switch {
		case b.Pod == "":
		case pod == nil && p.in.MayRemove(world.KindPod, podOf(b)):
			continue
		case pod != nil && (pod.UID != b.UID || !pod.Alive()):
			continue
		case pod != nil:
			b.Ready = pod.Ready
		}
		if old.Mode == string(world.ToHostPorts) {
			out = append(out, p.atNode(b, old)...)
		} else {
			out = append(out, b)
		}
	}
	slices.SortStableFunc(out, compareBackends)
	if old.Mode == string(world.ToAddresses) {
		return out // those listed twice count twice
	}
	return slices.Compact(out)
}

// podOf names the pod behind a backend.
func podOf(b fsm.PolicyBackend) world.ID {
	namespace, name, _ := strings.Cut(b.Pod, "/")
	return world.ID{Namespace: namespace, Name: name}
}

func compareBackends(a, b fsm.PolicyBackend) int {
	return cmp.Or(a.Address.Compare(b.Address), strings.Compare(a.Pod, b.Pod), strings.Compare(a.UID, b.UID), strings.Compare(string(a.Node), string(b.Node)))
}
