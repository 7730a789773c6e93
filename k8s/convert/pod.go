// SPDX-License-Identifier: Apache-2.0

package convert

import (
	corev1 "k8s.io/api/core/v1"

	"fairlead.io/fairlead/fsm/world"
)

// Pod converts a pod, running or over.
func Pod(o *corev1.Pod) (world.Pod, []world.Problem) {
	meta, r := open(world.KindPod, &o.ObjectMeta, true)
	p := world.Pod{
		Meta: meta, IP: o.Status.PodIP, Node: o.Spec.NodeName, Running: o.Status.Phase == corev1.PodRunning, Labels: kvs(o.Labels, all),
	}
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.PodReady {
			p.Ready = c.Status == corev1.ConditionTrue
		}
	}
	return p, r.problems
}
