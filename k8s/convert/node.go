// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"fairlead.io/fairlead/fsm/world"
)

// Node converts a Node. A manifest that states no conditions is a Ready node, since nothing sends heartbeats into a
// file; as soon as one condition is stated, Ready must be among them and True.
func Node(o *corev1.Node) (world.Node, []world.Problem) {
	meta, r := open(world.KindNode, &o.ObjectMeta, false)
	n := world.Node{
		Meta:          meta,
		Ready:         len(o.Status.Conditions) == 0,
		Unschedulable: o.Spec.Unschedulable,
		Labels:        kvs(o.Labels, all),
		BootID:        o.Status.NodeInfo.BootID,
	}
	for _, t := range o.Spec.Taints {
		n.Taints = append(n.Taints, t.Key)
	}
	_, n.Excluded = o.Labels[corev1.LabelNodeExcludeBalancers]
	for _, c := range o.Status.Conditions {
		switch c.Type {
		case corev1.NodeReady:
			n.Ready = c.Status == corev1.ConditionTrue
		case corev1.NodeNetworkUnavailable:
			n.NetworkUnavailable = c.Status == corev1.ConditionTrue
		}
	}
	for i, a := range o.Status.Addresses {
		if a.Type != corev1.NodeInternalIP && a.Type != corev1.NodeExternalIP {
			continue
		}
		field := fmt.Sprintf("status.addresses[%d].address", i)
		addr, ok := r.address(field, a.Address)
		if !ok {
			continue
		}
		if addr.IsUnspecified() || addr.IsMulticast() || addr.IsLinkLocalUnicast() {
			r.degrade(field, "give the node a routable address", "%s is %s, which no switch can forward to", addr, unroutable(addr))
			continue
		}
		n.Addresses = append(n.Addresses, world.NodeAddress{Type: world.AddressType(a.Type), Address: addr})
	}
	return n, r.problems
}
