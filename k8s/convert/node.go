// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api/balancing"
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
	notes, _ := balancing.NodeOf(o.Annotations) // what cannot be read is given anew
	n.NodeID = uint32(notes.ID)
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
	n.Proxies, n.PodCIDRs = proxiesOf(o), podCIDRsOf(o)
	return n, r.problems
}

// podCIDRsOf are the prefixes of a Node's pods, as far as they can be read: who cannot read them routes nobody's pods there either.
func podCIDRsOf(o *corev1.Node) (out []netip.Prefix) {
	for _, text := range append([]string{o.Spec.PodCIDR}, o.Spec.PodCIDRs...) {
		if p, err := netip.ParsePrefix(text); err == nil && !slices.Contains(out, p.Masked()) {
			out = append(out, p.Masked())
		}
	}
	return out
}

// proxiesOf are the proxy addresses in a Node's annotations that are the administrator's: those that are not marked as ours, nor the
// Node's own, as agents of elf-io's balancing wrote them (balancing §2.3).
func proxiesOf(o *corev1.Node) (out []netip.Addr) {
	note, _ := balancing.NodeOf(o.Annotations) // admission tells what is wrong
	if note.Managed {
		return nil
	}
	for _, a := range []netip.Addr{note.ProxyV4, note.ProxyV6} {
		own := slices.ContainsFunc(o.Status.Addresses, func(at corev1.NodeAddress) bool {
			address, err := netip.ParseAddr(at.Address)
			return err == nil && address == a
		})
		if a.IsValid() && !own {
			out = append(out, a)
		}
	}
	return out
}
