// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"math"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm/world"
)

// Pod converts a pod, running or over.
func Pod(o *corev1.Pod) (world.Pod, []world.Problem) {
	meta, r := open(world.KindPod, &o.ObjectMeta, true)
	p := world.Pod{
		Meta: meta, IP: o.Status.PodIP, Node: o.Spec.NodeName, Running: o.Status.Phase == corev1.PodRunning, Labels: kvs(o.Labels, all),
		HostUID: hostUID(o),
	}
	for i := range o.Spec.Containers {
		for _, port := range o.Spec.Containers[i].Ports {
			protocol := world.Protocol(cmp.Or(port.Protocol, corev1.ProtocolTCP))
			if port.Name != "" && port.ContainerPort > 0 && port.ContainerPort <= math.MaxUint16 {
				p.Ports = append(p.Ports, world.PodPort{Name: port.Name, Protocol: protocol, Port: uint16(port.ContainerPort)})
			}
			if port.HostPort > 0 && port.HostPort <= math.MaxUint16 {
				p.HostPorts = append(p.HostPorts, world.HostPort{Protocol: protocol, Port: uint16(port.HostPort)})
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

// configHash is the annotation in which kubelets write the UID of a static pod, which is a hash of its manifest unless that names another.
const configHash = "kubernetes.io/config.hash"

// hostUID is the UID of the static pod that a pod is the mirror of, by which its kubelet names cgroups; empty for any other pod. The API
// server gives mirrors a UID of their own, and has kubelets say that their Node owns them.
func hostUID(o *corev1.Pod) string {
	_, mirror := o.Annotations[corev1.MirrorPodAnnotationKey]
	owned := slices.ContainsFunc(o.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == "Node" && r.Name == o.Spec.NodeName })
	if uid := o.Annotations[configHash]; mirror && owned && uid != string(o.UID) {
		return uid
	}
	return ""
}
