// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// Bind binds pods to outside load balancers that belong to it alone.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="LoadBalancers",type=string,JSONPath=`.spec.loadBalancers[*].name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:pruning:PreserveUnknownFields
type Bind struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +nullable
	Spec BindSpec `json:"spec"`
	// +nullable
	Status BindStatus `json:"status"`
}

// BindSpec is what the user wishes of a Bind.
// +kubebuilder:pruning:PreserveUnknownFields
type BindSpec struct {
	// LoadBalancers are what the pods serve behind; their names differ.
	// +nullable
	LoadBalancers []TargetLoadBalancer `json:"loadBalancers"`
	// +nullable
	Pods PodBackends `json:"pods"`
	// Parameters are settings of each backend, in the driver's words.
	// +nullable
	Parameters map[string]string `json:"parameters"`
	// DeregisterPolicy says which pods are deregistered: IfNotReady (the default), IfNotRunning, or Webhook.
	// +nullable
	DeregisterPolicy *string `json:"deregisterPolicy"`
	// +nullable
	DeregisterWebhook *v1beta1.DeregisterWebhook `json:"deregisterWebhook"`
	// +nullable
	EnsurePolicy *EnsurePolicy `json:"ensurePolicy,omitempty"`
}

// TargetLoadBalancer is one load balancer of a Bind.
// +kubebuilder:pruning:PreserveUnknownFields
type TargetLoadBalancer struct {
	// Name is a DNS label.
	// +nullable
	Name string `json:"name"`
	// Driver is the LoadBalancerDriver in whose hands it is; it cannot change once the load balancer was created.
	// +nullable
	Driver string `json:"driver"`
	// Spec tells the driver which load balancer is meant, or how to make one; it cannot change once it was created.
	// +nullable
	Spec map[string]string `json:"spec"`
	// Attributes are settings of it, in the driver's words.
	// +nullable
	Attributes map[string]string `json:"attributes"`
}

// PodBackends selects pods of the Bind's namespace, by label or by name, and ports of them.
// +kubebuilder:pruning:PreserveUnknownFields
type PodBackends struct {
	// +nullable
	Ports []PortSelector `json:"ports"`
	// +nullable
	ByLabel *v1beta1.SelectPodByLabel `json:"byLabel,omitempty"`
	// ByName are names of pods; ignored with byLabel.
	// +nullable
	ByName []string `json:"byName,omitempty"`
}

// PortSelector names a port of a pod.
// +kubebuilder:pruning:PreserveUnknownFields
type PortSelector struct {
	// Port is 1 to 65535.
	// +nullable
	Port int32 `json:"port"`
	// Protocol is tcp or udp in any case, and drivers get it as it is written.
	// +nullable
	Protocol string `json:"protocol"`
}

// EnsurePolicy says whether backends that were registered are registered again.
// +kubebuilder:pruning:PreserveUnknownFields
type EnsurePolicy struct {
	// Policy is IfNotSucc (ensure until it succeeded) or Always (ensure for ever, periodically).
	// +nullable
	Policy string `json:"policy"`
	// ResyncPeriodInSeconds is the time between two calls under Always; at least 10, by default 60.
	// +nullable
	ResyncPeriodInSeconds *int32 `json:"resyncPeriodInSeconds,omitempty"`
}

// BindStatus is what became of a Bind.
// +kubebuilder:pruning:PreserveUnknownFields
type BindStatus struct {
	// LoadBalancerStatuses has one for each load balancer that was ever attempted.
	// +nullable
	LoadBalancerStatuses []TargetLoadBalancerStatus `json:"loadBalancerStatuses"`
}

// TargetLoadBalancerStatus is what became of one load balancer of a Bind.
// +kubebuilder:pruning:PreserveUnknownFields
type TargetLoadBalancerStatus struct {
	// +nullable
	Name string `json:"name"`
	// +nullable
	Driver string `json:"driver"`
	// LBInfo is its identity, in the driver's words, since it was created.
	// +nullable
	LBInfo map[string]string `json:"lbInfo,omitempty"`
	// LastSyncedAttributes are the attributes that the driver took last.
	// +nullable
	LastSyncedAttributes map[string]string `json:"lastSyncedAttributes,omitempty"`
	// DeletionTimestamp is when it left the spec.
	// +nullable
	DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	// RetryAfter is when it is attempted again.
	// +nullable
	RetryAfter metav1.Time `json:"retryAfter"`
	// +nullable
	Conditions []v1beta1.Condition `json:"conditions"`
}

// BindList is what the API server lists.
// +kubebuilder:object:root=true
type BindList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Bind `json:"items"`
}
