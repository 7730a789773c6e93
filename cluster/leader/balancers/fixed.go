// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// wantStatic wants every address of a static group on every load balancer; its address is known without its driver
// (lbcf §5.5).
func (p *planner) wantStatic(o *owner) {
	for i := range o.uses {
		u := &o.uses[i]
		for _, address := range o.group.Static {
			p.want(o, u, fsm.Backend{Kind: kindStatic}, address, func() string { return StaticRecord(u.name, o.meta.Name, address) })
		}
	}
}

// wantNodes wants every chosen node of a Service of type NodePort on every load balancer (lbcf §5.4). Where only ready ones
// count and none is, those that are registered stay: it is more likely that nobody hears from nodes than that all are dead.
func (p *planner) wantNodes(o *owner) {
	s := o.group.Service
	nodePort, ok := p.nodePort(o)
	if !ok {
		return
	}
	var chosen []*world.Node
	anyReady := !s.OnlyReady
	for _, node := range p.in.Nodes {
		if matches(s.NodeSelector, node.Labels) && !(s.NotExcluded && node.Excluded) {
			chosen = append(chosen, node)
			anyReady = anyReady || node.Ready
		}
	}
	for _, node := range chosen {
		counts := !s.OnlyReady || node.Ready
		if !counts && anyReady {
			continue
		}
		for i := range o.uses {
			u := &o.uses[i]
			b := fsm.Backend{
				Kind: kindService, Name: s.Name, Port: uint32(s.Port.Port), Protocol: s.Port.Protocol, NodePort: uint32(nodePort),
				Node: node.Name, Target: addressesOf(node),
			}
			name := func() string { return ServiceRecord(u.name, o.meta.Name, s.Name, s.Port, node.Name) }
			if counts {
				p.want(o, u, b, "", name)
			} else {
				p.keep(o, u, b, name)
			}
		}
	}
}

// nodePort is where nodes answer for the port of a group's Service.
func (p *planner) nodePort(o *owner) (uint16, bool) {
	s := o.group.Service
	service := find(p.in.Services, world.ID{Namespace: o.meta.Namespace, Name: s.Name}, func(s *world.Service) world.ID { return s.ID })
	if service == nil || service.Deleting || service.Type != world.NodePort {
		return 0, false
	}
	for _, port := range service.Ports {
		if port.Port == s.Port.Port && string(port.Protocol) == s.Port.Protocol && port.NodePort != 0 {
			return port.NodePort, true
		}
	}
	return 0, false
}
