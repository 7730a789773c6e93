// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"

	"fairlead.io/fairlead/fsm"
)

// formerFormat is the newest that the older release knows.
const formerFormat = 1

// readable finds a member that took in what its release cannot read.
func (r *s1) readable(member string, is *entry, number uint64) {
	if r.older[member] && is.format > formerFormat {
		r.broken(member, fmt.Sprintf("its release knows formats up to %d, and it took in a record of format %d", formerFormat, is.format), is.number, number)
	}
}

// step finds what the older release cannot read before the group agreed on the format that it came with.
func (r *s1) step(s *step) {
	if s.before.Group().Format != formerFormat {
		return
	}
	for _, p := range s.proposals {
		if what := afterFormer(p.Command); what != "" {
			r.broken(fmt.Sprintf("index %d", s.index), "the group's format is 1, and members of it cannot read "+what, s.Number)
		}
	}
}

// afterFormer names what of a command came after format 1; empty for nothing.
func afterFormer(c fsm.Command) string {
	switch c := c.(type) {
	case *fsm.PutEnrolment, *fsm.UseEnrolment, *fsm.DeleteEnrolment, *fsm.BeginDrain, *fsm.EndDrain, *fsm.StepAside, *fsm.BeginMove, *fsm.EndMove,
		*fsm.PutPolicy, *fsm.DeletePolicy, *fsm.SetPolicyHealth, *fsm.RegisterHost, *fsm.ReportHosts, *fsm.RemoveHost,
		*fsm.SetTunnels, *fsm.PutTunnel, *fsm.ReleaseTunnel, *fsm.FreeTunnel, *fsm.ReportTunnels, *fsm.NumberNode, *fsm.ReportPolicySupport, *fsm.JudgeService,
		*fsm.Revoke, *fsm.EndRevocation:
		return fmt.Sprintf("%T", c)
	case *fsm.PutService:
		if c.Service.Affinity() != 0 || len(c.Service.SourceRanges()) > 0 {
			return "session affinity and source ranges, of Service " + string(c.Service.ID)
		}
		if c.Service.HealthCheckNodePort != 0 {
			return "the health-check node port of Service " + string(c.Service.ID)
		}
		if c.Service.HasNodePorts() {
			return "that nodes serve the node ports of Service " + string(c.Service.ID)
		}
		if c.Service.ServedInside() || c.Service.InternalLocal {
			return "that nodes resolve ClusterIPs of Service " + string(c.Service.ID)
		}
		if len(c.Service.ByOthers()) > 0 {
			return "the addresses that others gave Service " + string(c.Service.ID)
		}
		if slices.ContainsFunc(c.Service.Endpoints, func(e fsm.Endpoint) bool { return e.Weight != 0 || e.Quiesced }) {
			return "weights of endpoints, of Service " + string(c.Service.ID)
		}
	case *fsm.PutNode:
		if c.Leaving {
			return "that node " + string(c.ID) + " is leaving"
		}
		if len(c.Others) > 0 {
			return "all addresses of node " + string(c.ID)
		}
	case *fsm.PutPool:
		if c.Pool.Object != (fsm.ObjectRef{}) {
			return "which object pool " + string(c.Pool.Name) + " came from"
		}
	case *fsm.PutPeer:
		if c.Peer.Object != (fsm.ObjectRef{}) {
			return "which object peer " + string(c.Peer.Name) + " came from"
		}
		if c.Peer.Interface != "" {
			return "behind which interface peer " + string(c.Peer.Name) + " is"
		}
	case *fsm.PutAdvertisement:
		if c.Advertisement.Object != (fsm.ObjectRef{}) {
			return "which object advertisement " + string(c.Advertisement.Name) + " came from"
		}
	case *fsm.PutNodeConfig:
		if c.Config.RulePriorityIn != 0 || c.Config.RulePriorityOut != 0 || c.Config.FwMark != 0 {
			return "priorities of rules and the packet mark"
		}
		if c.Config.Object != (fsm.ObjectRef{}) || c.Config.Version != 0 {
			return "which config map the configuration of nodes came from"
		}
	}
	return ""
}
