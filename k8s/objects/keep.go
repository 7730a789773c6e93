// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
)

// manifest is one life of an object, or of a part of it, as drivers are given it.
type manifest struct {
	uid  string
	text json.RawMessage
	// unavailable is why a pod gets no address now; empty if it gets one.
	unavailable string
}

// manifestOf makes the manifest of a Pod, a Service or a Node's addresses; false for what is none of them. Of Services only
// those of type NodePort can have backends (lbcf §5.4), and the others are many.
func manifestOf(o runtime.Object) (manifest, bool) {
	var part any
	var m metav1.Object
	unavailable := ""
	switch o := o.(type) {
	case *corev1.Pod:
		bare := *o
		bare.TypeMeta, bare.ManagedFields = metav1.TypeMeta{}, nil
		part, m, unavailable = &bare, o, unavailableBecause(o)
	case *corev1.Service:
		if o.Spec.Type != corev1.ServiceTypeNodePort {
			return manifest{}, false
		}
		bare := *o
		bare.TypeMeta, bare.ManagedFields = metav1.TypeMeta{}, nil
		part, m = &bare, o
	case *corev1.Node:
		addresses := o.Status.Addresses
		if addresses == nil {
			addresses = []corev1.NodeAddress{}
		}
		part, m = addresses, o
	default:
		return manifest{}, false
	}
	text, err := json.Marshal(part)
	return manifest{string(m.GetUID()), text, unavailable}, err == nil
}

// unavailableBecause tells why a pod gets no address (lbcf §5.2), if it gets none.
func unavailableBecause(pod *corev1.Pod) string {
	ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	switch {
	case pod.DeletionTimestamp != nil:
		return "is being deleted"
	case pod.Status.PodIP == "":
		return "has no IP"
	case !ready:
		return "is not ready"
	}
	return ""
}

// typed reads an object as one of LBCF's types. Of one that does not fit what can be read is kept: admission had better see
// that than nothing.
func typed[K any](o runtime.Object) any {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	raw, err := u.MarshalJSON()
	if err != nil {
		return nil
	}
	out := new(K)
	_ = kjson.UnmarshalCaseSensitivePreserveInts(raw, out)
	m := any(out).(metav1.Object)
	m.SetNamespace(u.GetNamespace())
	m.SetName(u.GetName())
	m.SetUID(u.GetUID())
	m.SetLabels(u.GetLabels())
	m.SetDeletionTimestamp(u.GetDeletionTimestamp())
	m.SetManagedFields(nil)
	return out
}
