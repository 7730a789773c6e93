// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// resolveAll makes rows of all policies.
func (p *planner) resolveAll() {
	for _, o := range p.policies() {
		p.rows = append(p.rows, p.resolve(o, p.have[o.id()]))
	}
}

// resolve makes the row of a policy. What it chooses and no source shows now stays what it was in the row before, if that is of the
// same object, until its absence may be acted on.
func (p *planner) resolve(o policy, old *fsm.Policy) *fsm.Policy {
	if old != nil && (old.UID != o.UID || old.Mode != string(o.Mode)) {
		old = nil
	}
	r := &fsm.Policy{
		ID: o.id(), UID: o.UID, Version: o.Version, Number: o.ServiceID, Created: int64(o.Created), Mode: string(o.Mode), Probe: ProbeOf(o.Health),
		Generation: o.Generation, SpareOwn: o.SpareOwn, FallThrough: o.FallThrough, Outside: o.EffectiveOn(nil),
	}
	if o.Service != (world.ID{}) {
		r.Service = fsm.ServiceID(o.Service.String())
	}
	p.effective(r, o, old)
	p.capture(r, o, old)
	if o.Mode == world.ToProxies {
		p.proxy(r, o, old)
		return r
	}
	r.Backends = p.backends(o, old)
	settlePending(r, o)
	return r
}

// settlePending says why a policy is not carried out, once its backends are known.
func settlePending(r *fsm.Policy, o policy) {
	switch {
	case o.Disabled:
		r.Pending = fsm.Pending{} // it asks for nothing
	case r.Pending.Code == "" && !leads(r):
		r.Pending = fsm.Pending{Code: WaitsForBackend, Text: withoutBackend(o)}
	}
}

// leads tells whether connections can get a backend somewhere. Those of another family than what was dialled count for nothing, nor, for
// local redirection, those that are not ready.
func leads(r *fsm.Policy) bool {
	return slices.ContainsFunc(r.Backends, func(b fsm.PolicyBackend) bool {
		return (b.Ready || r.Mode != string(world.ToLocalPods)) && slices.ContainsFunc(r.Captures, func(c fsm.Capture) bool {
			return world.FamilyOf(c.Address) == world.FamilyOf(b.Address)
		})
	})
}

// effective says where the policy is (balancing §8).
func (p *planner) effective(r *fsm.Policy, o policy, old *fsm.Policy) {
	reach := o.Reach()
	if r.EveryNode = reach == world.EveryNode; reach != world.ChosenOnes {
		return
	}
	for _, n := range p.in.Nodes {
		if o.EffectiveOn(n) {
			r.Nodes = append(r.Nodes, fsm.NodeID(n.Name))
		}
	}
	if old != nil {
		for _, id := range old.Nodes {
			if p.nodes[id] == nil && !p.in.MayRemove(world.KindNode, world.ID{Name: string(id)}) {
				r.Nodes = append(r.Nodes, id)
			}
		}
	}
	slices.Sort(r.Nodes)
}

// capture says what programs dial (balancing §4).
func (p *planner) capture(r *fsm.Policy, o policy, old *fsm.Policy) {
	service := p.services[o.Service]
	if r.Service != "" && service == nil {
		r.Pending = fsm.Pending{Code: WaitsForService, Text: fmt.Sprintf("there is no Service %s", o.Service)}
		if old != nil && old.Service == r.Service && len(old.Captures) > 0 && !p.in.MayRemove(world.KindService, o.Service) {
			r.Captures, r.Pending = old.Captures, fsm.Pending{}
		}
		return
	}
	captured, absent := o.Captures(service)
	for _, c := range captured {
		r.Captures = append(r.Captures, fsm.Capture{Address: c.Address, Port: portOf(c.Protocol, c.Port), Target: c.Target})
	}
	switch {
	case service != nil && (service.Headless || len(service.ClusterIPs) == 0):
		r.Pending = fsm.Pending{Code: WaitsForIP, Text: fmt.Sprintf("Service %s has no ClusterIP, which alone is captured", o.Service)}
	case len(absent) > 0:
		r.Pending = fsm.Pending{Code: WaitsForPort, Text: fmt.Sprintf("Service %s has no port %s that a port of the backend is for", o.Service, portsText(absent))}
	}
}

func portOf(protocol world.Protocol, number uint16) fsm.Port {
	if protocol == world.UDP {
		return fsm.Port{Protocol: fsm.UDP, Number: number}
	}
	return fsm.Port{Protocol: fsm.TCP, Number: number}
}

func portsText(ports []world.RedirectPort) string {
	var out []string
	for _, p := range ports {
		out = append(out, fmt.Sprintf("%d/%s", p.Port, p.Protocol))
	}
	return strings.Join(out, ", ")
}

// ProbeOf is a health check as the record has it.
func ProbeOf(h world.HealthCheck) fsm.Probe {
	out := fsm.Probe{Type: string(h.Type), Port: h.Port, Path: h.Path, Interval: h.Interval, Timeout: h.Timeout, Healthy: uint32(h.Healthy), Unhealthy: uint32(h.Unhealthy)}
	for _, s := range h.Statuses {
		out.Statuses = append(out.Statuses, uint32(s))
	}
	return out
}

func withoutBackend(o policy) string {
	switch o.Mode {
	case world.ToAddresses:
		return "none of its addresses is of a family that it captures"
	case world.ToLocalPods:
		return "no pod that it selects is ready; connections go where they went without it"
	}
	if o.FallThrough {
		return "no pod that it selects runs; connections go where they went without it"
	}
	return "no pod that it selects runs; connections are refused"
}
