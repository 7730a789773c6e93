// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"math"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"fairlead.io/fairlead/fsm/world"
)

// Pod converts a pod, running or over.
func Pod(o *corev1.Pod) (world.Pod, []world.Problem) {
	meta, r := open(world.KindPod, &o.ObjectMeta, true)
	p := world.Pod{
		Meta: meta, IP: o.Status.PodIP, Node: o.Spec.NodeName, Running: o.Status.Phase == corev1.PodRunning, Labels: kvs(o.Labels, all),
	}
	for i := range o.Spec.Containers {
		for _, port := range o.Spec.Containers[i].Ports {
			if port.Name != "" && port.ContainerPort > 0 && port.ContainerPort <= math.MaxUint16 {
				p.Ports = append(p.Ports, world.PodPort{Name: port.Name, Protocol: world.Protocol(cmp.Or(port.Protocol, corev1.ProtocolTCP)), Port: uint16(port.ContainerPort)})
			}
		}
	}
	for _, one := range o.Status.PodIPs {
		if a, err := netip.ParseAddr(one.IP); err == nil {
			p.IPs = append(p.IPs, a.Unmap())
		}
	}
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.PodReady {
			p.Ready = c.Status == corev1.ConditionTrue
		}
	}
	return p, r.problems
}
