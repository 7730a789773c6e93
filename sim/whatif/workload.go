// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// workload is something that makes pods.
type workload struct {
	kind, namespace, name string
	replicas              int
	everywhere            bool // one on each node
	ordinal               bool // its pods are numbered from 0
	selector              *metav1.LabelSelector
	template              corev1.PodTemplateSpec
}

func deployment(o *appsv1.Deployment) *workload {
	return &workload{
		kind: "Deployment", namespace: o.Namespace, name: o.Name, replicas: count(o.Spec.Replicas), selector: o.Spec.Selector,
		template: o.Spec.Template,
	}
}

func statefulSet(o *appsv1.StatefulSet) *workload {
	return &workload{
		kind: "StatefulSet", namespace: o.Namespace, name: o.Name, replicas: count(o.Spec.Replicas), selector: o.Spec.Selector,
		template: o.Spec.Template, ordinal: true,
	}
}

func daemonSet(o *appsv1.DaemonSet) *workload {
	return &workload{
		kind: "DaemonSet", namespace: o.Namespace, name: o.Name, everywhere: true, selector: o.Spec.Selector, template: o.Spec.Template,
	}
}

func replicaSet(o *appsv1.ReplicaSet) *workload {
	return &workload{
		kind: "ReplicaSet", namespace: o.Namespace, name: o.Name, replicas: count(o.Spec.Replicas), selector: o.Spec.Selector,
		template: o.Spec.Template,
	}
}

func count(replicas *int32) int {
	if replicas == nil {
		return 1
	}
	return max(0, int(*replicas))
}
