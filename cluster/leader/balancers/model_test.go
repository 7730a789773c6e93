// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"fmt"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// This is an independent reading of sections 1.4 and 5 of the specification: straight loops over the objects, with no
// thought for evidence or for how to get there.

// expectation is what should be registered, and what may stay registered though it is not expected.
type expectation struct {
	expected map[string]bool
	keepable map[string]bool
}

// tuple spells a backend on a load balancer for an owner.
func tuple(owner string, balancer fsm.BalancerID, b fsm.Backend, address string) string {
	if b.Kind == kindStatic {
		b.Target = address
	}
	return fmt.Sprintf("%s on %s: %s %s %s %d/%s %s:%d %s", owner, balancer, b.Kind, b.Name, b.UID, b.Port, b.Protocol, b.Node, b.NodePort, b.Target)
}

func (c *cluster) expect() expectation {
	e := expectation{expected: map[string]bool{}, keepable: map[string]bool{}}
	for _, g := range c.groups {
		if g.Deleting {
			continue
		}
		owner := fmt.Sprintf("BackendGroup/%s/%s/%s", g.Namespace, g.Name, g.UID)
		for _, name := range g.LoadBalancers {
			lb := c.meant(name, g.Namespace)
			if lb == nil || lb.Deleting || !usable(lb, g.Namespace) {
				continue
			}
			id := fsm.BalancerID(fmt.Sprintf("LoadBalancer/%s/%s/%s", lb.Namespace, lb.Name, lb.UID))
			switch {
			case g.Service != nil:
				c.expectNodes(&e, owner, id, g)
			case g.Pods != nil:
				c.expectPods(&e, owner, id, g.Namespace, &g.Balancing)
			default:
				for _, a := range g.Static {
					e.expected[tuple(owner, id, fsm.Backend{Kind: "Static"}, a)] = true
				}
			}
		}
	}
	for _, b := range c.binds {
		for _, entry := range b.Entries {
			if owner := fmt.Sprintf("Bind/%s/%s/%s", b.Namespace, b.Name, b.UID); !b.Deleting {
				c.expectPods(&e, owner, fsm.BalancerID(owner+"/"+entry.Name), b.Namespace, &b.Balancing)
			}
		}
	}
	return e
}

func (c *cluster) meant(name, namespace string) *world.OutsideBalancer {
	for _, lb := range c.lbs {
		if lb.Name == name && lb.Namespace == namespace {
			return lb
		}
	}
	for _, lb := range c.lbs {
		if lb.Name == name && strings.HasPrefix(name, "lbcf-") && lb.Namespace == "kube-system" {
			return lb
		}
	}
	return nil
}

func usable(lb *world.OutsideBalancer, namespace string) bool {
	if lb.Scope == nil {
		return lb.Namespace == namespace
	}
	return slices.Contains(lb.Scope, namespace) || slices.Contains(lb.Scope, "*")
}

func (c *cluster) expectPods(e *expectation, owner string, lb fsm.BalancerID, namespace string, b *world.Balancing) {
	for _, pod := range c.pods {
		if pod.Namespace != namespace || !selected(b.Pods, pod) || pod.Deleting {
			continue
		}
		into := e.expected
		if pod.IP == "" || !pod.Ready {
			switch {
			case b.Leave.Policy == "Webhook": // nobody answers in this model: all stay, unless the failure policy says otherwise
			case b.Leave.Policy == "IfNotRunning" && pod.Running && pod.IP != "":
			default:
				continue
			}
			into = e.keepable
		}
		for _, port := range b.Pods.Ports {
			into[tuple(owner, lb, fsm.Backend{Kind: "Pod", Name: pod.Name, UID: pod.UID, Port: uint32(port.Port), Protocol: port.Protocol, Target: pod.IP}, "")] = true
		}
	}
}

func selected(s *world.PodSelection, pod *world.Pod) bool {
	if !s.ByLabel {
		return slices.Contains(s.Names, pod.Name)
	}
	for _, want := range s.Selector {
		if !slices.ContainsFunc(pod.Labels, func(kv world.KV) bool { return kv == want }) {
			return false
		}
	}
	return !slices.Contains(s.Except, pod.Name)
}

func (c *cluster) expectNodes(e *expectation, owner string, lb fsm.BalancerID, g *world.BackendGroup) {
	for _, s := range c.services {
		if s.Namespace != g.Namespace || s.Name != g.Service.Name || s.Type != world.NodePort || s.Deleting {
			continue
		}
		for _, port := range s.Ports {
			if port.Port != g.Service.Port.Port || string(port.Protocol) != g.Service.Port.Protocol || port.NodePort == 0 {
				continue
			}
			chosen := func(n *world.Node) bool {
				for _, kv := range g.Service.NodeSelector {
					if !slices.Contains(n.Labels, kv) {
						return false
					}
				}
				return !n.Excluded || !g.Service.NotExcluded
			}
			ready := func(n *world.Node) bool { return chosen(n) && n.Ready }
			for _, n := range c.nodes {
				into := e.expected
				if g.Service.OnlyReady && !n.Ready {
					into = map[string]bool{}
					if !slices.ContainsFunc(c.nodes, ready) {
						into = e.keepable // nobody hears from any
					}
				}
				if chosen(n) {
					into[tuple(owner, lb, fsm.Backend{
						Kind: "Service", Name: s.Name, Port: uint32(port.Port), Protocol: string(port.Protocol), NodePort: uint32(port.NodePort),
						Node: n.Name, Target: "InternalIP=" + n.Addresses[0].Address.String(),
					}, "")] = true
				}
			}
		}
	}
}
