// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
)

// holdPorts finds the ports that Services come to want of addresses that they own, and that may still lead to others.
// They have the rest meanwhile.
func (p *planner) holdPorts() {
	for _, s := range p.services {
		for _, c := range s.claims {
			for _, port := range c.ports {
				if h, lingers := p.lingersAt(c, port); lingers {
					c.held = append(c.held, port)
					s.wait(PendingPort, lingeringText(c.address, port, h))
				}
			}
		}
	}
}

// lingering finds a port of a new claim that may still lead to another Service.
func (p *planner) lingering(c *claim) (port fsm.Port, former fsm.ServiceID, lingers bool) {
	for _, port := range c.ports {
		if former, lingers := p.lingersAt(c, port); lingers {
			return port, former, true
		}
	}
	return fsm.Port{}, "", false
}

// lingersAt tells whether a port of an address may still lead to another Service than the one that claims it, and explains which node is
// waited for.
func (p *planner) lingersAt(c *claim, port fsm.Port) (former fsm.ServiceID, lingers bool) {
	former, node, lingers := p.stillLeads(c, port)
	if node != "" {
		p.explain(fsm.TableRoutes, p.routeOf[c.address].Key(), WaitsForRules, fmt.Sprintf("port %s is given up by Service %s; node %s has not carried that out yet: "+
			"see that its agent runs", port, former, node))
	}
	return former, lingers
}

// stillLeads tells whether a port of an address may still lead to another Service than the one that claims it: by the
// record it is another one's, whatever this plan makes of that, or a node may not know yet that it is not.
func (p *planner) stillLeads(c *claim, port fsm.Port) (former fsm.ServiceID, node fsm.NodeID, lingers bool) {
	if c.have != nil && slices.Contains(c.have.Ports(), port) {
		return "", "", false
	}
	for _, h := range p.ownersOf[c.address] {
		if h.Service != c.owner.id && slices.Contains(h.Ports(), port) {
			return h.Service, "", true
		}
	}
	r := p.routeOf[c.address]
	if r == nil {
		return "", "", false
	}
	for _, closing := range r.Closing {
		if closing.Port != port || closing.Service == c.owner.id {
			continue
		}
		if node, lingers := r.Lingers(closing, p.nodeOfRecord, p.settings); lingers {
			return closing.Service, node, true
		}
	}
	return "", "", false
}

func (p *planner) nodeOfRecord(id fsm.NodeID) *fsm.Node {
	if n := p.nodes[id]; n != nil {
		return n.have
	}
	return nil
}

// lingeringText names no node: it is written to the record, and shall not change with every node that follows.
func lingeringText(a netip.Addr, port fsm.Port, former fsm.ServiceID) string {
	return fmt.Sprintf("port %s of %s is being taken back from Service %s; it is free once no node passes it on to that one", port, a, former)
}

// forgets tells whether ports that were given up can lead nowhere any more, so that the record need not know of them.
func (p *planner) forgets(r *fsm.Route) bool {
	return slices.ContainsFunc(r.Closing, func(c fsm.Closing) bool {
		_, lingers := r.Lingers(c, p.nodeOfRecord, p.settings)
		return !lingers
	})
}
