// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BackendGroup selects backends, and names the load balancers that they serve behind.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=bg
// +kubebuilder:printcolumn:name="LoadBalancers",type=string,JSONPath=`.spec.loadBalancers`
// +kubebuilder:printcolumn:name="Backends",type=integer,JSONPath=`.status.backends`
// +kubebuilder:printcolumn:name="Registered",type=integer,JSONPath=`.status.registeredBackends`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:pruning:PreserveUnknownFields
type BackendGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +nullable
	Spec BackendGroupSpec `json:"spec"`
	// +nullable
	Status BackendGroupStatus `json:"status"`
}

// BackendGroupSpec is what the user wishes of a group: one of pods, service and static.
// +kubebuilder:pruning:PreserveUnknownFields
type BackendGroupSpec struct {
	// LBName is deprecated: use loadBalancers.
	// +nullable
	LBName *string `json:"lbName"`
	// LoadBalancers are names of LoadBalancers in this namespace, or of shared ones in kube-system.
	// +nullable
	LoadBalancers []string `json:"loadBalancers"`
	// +nullable
	Pods *PodBackends `json:"pods,omitempty"`
	// +nullable
	Service *ServiceBackends `json:"service,omitempty"`
	// Static are addresses, in the driver's words.
	// +nullable
	Static []string `json:"static,omitempty"`
	// Parameters are settings of each backend, in the driver's words.
	// +nullable
	Parameters map[string]string `json:"parameters"`
	// DeregisterPolicy says which pods are deregistered: IfNotReady (the default), IfNotRunning, or Webhook.
	// +nullable
	DeregisterPolicy *string `json:"deregisterPolicy"`
	// +nullable
	DeregisterWebhook *DeregisterWebhook `json:"deregisterWebhook"`
	// +nullable
	EnsurePolicy *EnsurePolicy `json:"ensurePolicy,omitempty"`
}

// PodBackends selects pods of the group's namespace, by label or by name, and ports of them.
// +kubebuilder:pruning:PreserveUnknownFields
type PodBackends struct {
	// Port is deprecated: use ports.
	// +nullable
	Port *PortSelector `json:"port"`
	// +nullable
	Ports []PortSelector `json:"ports"`
	// +nullable
	ByLabel *SelectPodByLabel `json:"byLabel,omitempty"`
	// ByName are names of pods; only without byLabel.
	// +nullable
	ByName []string `json:"byName,omitempty"`
}

// ServiceBackends selects a Service of type NodePort, behind which nodes are the backends.
// +kubebuilder:pruning:PreserveUnknownFields
type ServiceBackends struct {
	// +nullable
	Name string `json:"name"`
	// Port is a port of the Service, not the node port.
	// +nullable
	Port PortSelector `json:"port"`
	// NodeSelector are labels that a node must have; by default every node is a backend.
	// +nullable
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
}

// BackendGroupStatus counts the backends of a group.
// +kubebuilder:pruning:PreserveUnknownFields
type BackendGroupStatus struct {
	// Backends is how many BackendRecords there should be.
	// +nullable
	Backends int32 `json:"backends"`
	// RegisteredBackends is how many BackendRecords are registered.
	// +nullable
	RegisteredBackends int32 `json:"registeredBackends"`
}

// BackendGroupList is what the API server lists.
// +kubebuilder:object:root=true
type BackendGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BackendGroup `json:"items"`
}
