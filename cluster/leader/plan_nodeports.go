// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// PendingNodePort is a code of fsm.Pending: another Service has a node port.
const PendingNodePort = "node-port-taken"

// servesNodePorts tells whether nodes are to know a Service by its node ports, whatever addresses it has.
func (p *planner) servesNodePorts(w *world.Service) bool {
	return p.in.Options.NodePorts && p.format >= formatInPart &&
		slices.ContainsFunc(w.Ports, func(port world.ServicePort) bool { return port.Port != 0 && nodePortOf(w, port) != 0 })
}

// nodePortOf is a node port of a Service that its type lets it have.
func nodePortOf(w *world.Service, port world.ServicePort) uint16 {
	if w.Headless || w.Type != world.NodePort && w.Type != world.LoadBalancer {
		return 0
	}
	return port.NodePort
}

// nodePortFamilies are those in which a Service's node ports are served: its own, or both where no API server chose any.
func nodePortFamilies(w *world.Service) (v4, v6 bool) {
	families := slices.Clone(w.Families.List())
	for _, a := range w.ClusterIPs {
		families = append(families, world.FamilyOf(a))
	}
	if len(families) == 0 {
		return true, true
	}
	return slices.Contains(families, world.IPv4), slices.Contains(families, world.IPv6)
}

// settleNodePorts has every node port be one Service's. Within one API server they are. Who has one by the record keeps it, and among
// the others the older Service goes first; who gets it not is told so. A Service that goes is in nobody's way.
func (p *planner) settleNodePorts() {
	if !p.in.Options.NodePorts || p.format < formatInPart {
		return
	}
	s := nodePorts{owners: map[fsm.Port]nodePortOwner{}}
	order := p.byAge()
	for _, w := range order {
		if w.seen == nil && !w.going {
			s.take(w, anyNodePort)
		}
	}
	for _, w := range order {
		if w.seen != nil {
			s.take(w, w.hasNodePort)
		}
	}
	for _, seen := range []bool{true, false} {
		for _, w := range order {
			if seen == (w.seen != nil) {
				s.take(w, anyNodePort)
				s.yield(w)
			}
		}
	}
}

// byAge lists the Services, the oldest first, and last those whose age nobody tells.
func (p *planner) byAge() []*wish {
	order := slices.Clone(p.services)
	slices.SortFunc(order, func(a, b *wish) int {
		return cmp.Or(firstIf(a.created() != 0, b.created() != 0), cmp.Compare(a.created(), b.created()), strings.Compare(string(a.id), string(b.id)))
	})
	return order
}

// nodePorts is whose each of them is: protocol and node port.
type nodePorts struct{ owners map[fsm.Port]nodePortOwner }

type nodePortOwner struct {
	service  *wish
	frontend int
}

func nodePort(f fsm.Frontend) fsm.Port {
	return fsm.Port{Protocol: f.Port.Protocol, Number: f.NodePort}
}

func anyNodePort(fsm.Port) bool { return true }

// hasNodePort tells whether a node port is the Service's by the record.
func (s *wish) hasNodePort(port fsm.Port) bool {
	return s.have != nil && s.have.UID == s.next.UID && slices.ContainsFunc(s.have.Frontends, func(f fsm.Frontend) bool { return nodePort(f) == port })
}

// take gives a Service those of its node ports that nobody has yet.
func (n *nodePorts) take(s *wish, which func(fsm.Port) bool) {
	for i, f := range s.next.Frontends {
		port := nodePort(f)
		if _, taken := n.owners[port]; f.NodePort != 0 && !taken && which(port) {
			n.owners[port] = nodePortOwner{s, i}
		}
	}
}

// yield takes node ports off a Service that others have, and tells it.
func (n *nodePorts) yield(s *wish) {
	own := false // its list of frontends, which may be the record's
	for i, f := range s.next.Frontends {
		owner := n.owners[nodePort(f)]
		if f.NodePort == 0 || owner == (nodePortOwner{s, i}) {
			continue
		}
		if !own {
			s.change().Frontends, own = slices.Clone(s.next.Frontends), true
		}
		s.next.Frontends[i].NodePort = 0
		if s.seen != nil {
			s.wait(PendingNodePort, fmt.Sprintf("node port %d/%s belongs to Service %s; give one of them another spec.ports[].nodePort", f.NodePort, f.Port.Protocol, owner.service.id))
		}
	}
}
