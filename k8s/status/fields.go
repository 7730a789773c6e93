// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fields are what is applied to a Service: what stands here becomes ours, what does not is left alone or given up. The
// types of Kubernetes itself will not do for that, as they mention fields that nobody set.
type fields struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        fieldsMeta    `json:"metadata"`
	Status          *fieldsStatus `json:"status,omitempty"`
}

type fieldsMeta struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// What these two name must be what the server has. Empty, they leave that open.
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion"`
	Finalizers      []string  `json:"finalizers,omitempty"`
}

type fieldsStatus struct {
	LoadBalancer *fieldsLoadBalancer `json:"loadBalancer,omitempty"`
	Conditions   []metav1.Condition  `json:"conditions,omitempty"`
}

type fieldsLoadBalancer struct {
	Ingress []corev1.LoadBalancerIngress `json:"ingress"`
}

func appliedFields(w Write) fields {
	namespace, name, _ := strings.Cut(string(w.ID), "/")
	f := fields{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		Metadata: fieldsMeta{Name: name, Namespace: namespace, UID: types.UID(w.UID), ResourceVersion: w.ResourceVersion},
	}
	if w.Finalizer == SetFinalizer {
		f.Metadata.Finalizers = []string{Finalizer}
	}
	if len(w.Ingress) == 0 && len(w.Conditions) == 0 {
		return f
	}
	f.Status = &fieldsStatus{Conditions: w.Conditions}
	if len(w.Ingress) > 0 {
		f.Status.LoadBalancer = &fieldsLoadBalancer{w.Ingress}
	}
	return f
}
