// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LoadBalancer is one outside load balancer, or a listener or a rule of one.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=lb
// +kubebuilder:printcolumn:name="Driver",type=string,JSONPath=`.spec.lbDriver`
// +kubebuilder:printcolumn:name="Created",type=string,JSONPath=`.status.conditions[?(@.type=="Created")].status`
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="AttributesSynced")].status`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="AttributesSynced")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:pruning:PreserveUnknownFields
type LoadBalancer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +nullable
	Spec LoadBalancerSpec `json:"spec"`
	// +nullable
	Status LoadBalancerStatus `json:"status"`
}

// LoadBalancerSpec is what the user wishes of a load balancer.
// +kubebuilder:pruning:PreserveUnknownFields
type LoadBalancerSpec struct {
	// LBDriver is the LoadBalancerDriver in whose hands it is; it cannot change.
	// +nullable
	LBDriver string `json:"lbDriver"`
	// LBSpec tells the driver which load balancer is meant, or how to make one; it cannot change.
	// +nullable
	LBSpec map[string]string `json:"lbSpec"`
	// Attributes are settings of it, in the driver's words.
	// +nullable
	Attributes map[string]string `json:"attributes"`
	// Scope are the namespaces that may use it, "*" for all; by default its own. Only for names that begin with lbcf-,
	// in kube-system.
	// +nullable
	Scope []string `json:"scope"`
	// +nullable
	EnsurePolicy *EnsurePolicy `json:"ensurePolicy,omitempty"`
}

// LoadBalancerStatus is what became of a load balancer.
// +kubebuilder:pruning:PreserveUnknownFields
type LoadBalancerStatus struct {
	// LBInfo is its identity, in the driver's words, since it was created.
	// +nullable
	LBInfo map[string]string `json:"lbInfo"`
	// +nullable
	Conditions []Condition `json:"conditions"`
}

// LoadBalancerList is what the API server lists.
// +kubebuilder:object:root=true
type LoadBalancerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []LoadBalancer `json:"items"`
}
