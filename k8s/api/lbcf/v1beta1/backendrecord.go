// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BackendRecord is one backend on one load balancer, with all that deregistering it needs. It is written by the
// controller; deleting one deregisters the backend.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=br
// +kubebuilder:printcolumn:name="LoadBalancer",type=string,JSONPath=`.spec.lbName`
// +kubebuilder:printcolumn:name="Driver",type=string,JSONPath=`.spec.lbDriver`
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.status.backendAddr`
// +kubebuilder:printcolumn:name="Registered",type=string,JSONPath=`.status.conditions[?(@.type=="Registered")].status`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Registered")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:pruning:PreserveUnknownFields
type BackendRecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +nullable
	Spec BackendRecordSpec `json:"spec"`
	// +nullable
	Status BackendRecordStatus `json:"status"`
}

// BackendRecordSpec is a copy of what the backend and its load balancer were when this was last decided; one of
// podBackend, serviceBackend and staticAddr.
// +kubebuilder:pruning:PreserveUnknownFields
type BackendRecordSpec struct {
	// LBName is the LoadBalancer, or the load balancer of the Bind.
	// +nullable
	LBName string `json:"lbName"`
	// +nullable
	LBDriver string `json:"lbDriver"`
	// +nullable
	LBInfo map[string]string `json:"lbInfo"`
	// +nullable
	LBAttributes map[string]string `json:"lbAttributes"`
	// +nullable
	Parameters map[string]string `json:"parameters"`
	// +nullable
	PodBackend *PodBackendRecord `json:"podBackend,omitempty"`
	// +nullable
	ServiceBackend *ServiceBackendRecord `json:"serviceBackend,omitempty"`
	// +nullable
	StaticAddr *string `json:"staticAddr,omitempty"`
	// +nullable
	EnsurePolicy *EnsurePolicy `json:"ensurePolicy,omitempty"`
}

// PodBackendRecord is a port of a pod.
// +kubebuilder:pruning:PreserveUnknownFields
type PodBackendRecord struct {
	// +nullable
	Name string `json:"name"`
	// +nullable
	Port PortSelector `json:"port"`
}

// ServiceBackendRecord is a port of a Service on a node.
// +kubebuilder:pruning:PreserveUnknownFields
type ServiceBackendRecord struct {
	// +nullable
	Name string `json:"name"`
	// Port is the port of the Service.
	// +nullable
	Port PortSelector `json:"port"`
	// +nullable
	NodePort int32 `json:"nodePort"`
	// +nullable
	NodeName string `json:"nodeName"`
}

// BackendRecordStatus is what became of the backend.
// +kubebuilder:pruning:PreserveUnknownFields
type BackendRecordStatus struct {
	// BackendAddr is the backend's address, in the driver's words. With it set, the backend may be registered.
	// +nullable
	BackendAddr string `json:"backendAddr"`
	// InjectedInfo is what the driver returned with the last registration, and gets back.
	// +nullable
	InjectedInfo map[string]string `json:"injectedInfo"`
	// +nullable
	Conditions []Condition `json:"conditions"`
}

// BackendRecordList is what the API server lists.
// +kubebuilder:object:root=true
type BackendRecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BackendRecord `json:"items"`
}
