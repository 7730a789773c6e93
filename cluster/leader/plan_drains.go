// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// What the record says of a node that is eligible, and that new flows shall go past all the same.
const (
	whyCordoned = "cordoned"
	whyTainted  = "tainted "
)

// drainsOf are the names of what operators drain, of one kind.
func drainsOf(record *fsm.View, of fsm.DrainOf) map[string]bool {
	names := map[string]bool{}
	for _, d := range fsm.List[*fsm.Drain](record, fsm.TableDrains) {
		if d.Of == of {
			names[d.Name] = true
		}
	}
	return names
}

// asideByCluster tells in words why the cluster has new flows go past a node, by what the operator wants heeded.
func (o Options) asideByCluster(w *world.Node) string {
	var why []string
	if o.AsideCordoned && w.Unschedulable {
		why = append(why, whyCordoned)
	}
	for _, key := range w.Taints {
		if slices.Contains(o.AsideTaints, key) {
			why = append(why, whyTainted+key)
		}
	}
	return strings.Join(why, ", ")
}

// aside tells of an eligible node why new flows shall go past it: it is a next hop only of what no other node may be
// announced for. Zero where nothing is in its way.
func (p *planner) aside(n *nodePlan) Reason {
	first, _, _ := strings.Cut(n.next.Why, ", ")
	switch {
	case !n.next.Eligible:
		return Reason{}
	case n.drained:
		return Reason{NodeDrained, "is being drained"}
	case first == whyCordoned:
		return Reason{NodeCordoned, "is cordoned"}
	case strings.HasPrefix(first, whyTainted):
		return Reason{NodeTainted, "is " + n.next.Why}
	}
	return Reason{}
}

// led are the claims on an address whose Services are not being drained: their endpoints are what it leads to.
func (p *planner) led(claims []*claim) []*claim {
	if len(p.drainedServices) == 0 {
		return claims
	}
	return slices.DeleteFunc(slices.Clone(claims), func(c *claim) bool { return p.drainedServices[string(c.owner.id)] })
}

// drainedText is said of an address whose Services are all being drained.
func drainedText(claims []*claim) string {
	return ownersText(claims) + " is being drained; `fairlead drain service NAME --undo` ends that"
}
