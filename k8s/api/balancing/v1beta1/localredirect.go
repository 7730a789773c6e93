// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LocalRedirectPolicy sends connections to a Service or a virtual address to pods of the client's own host, as long as that has any.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=lr,categories=elf
// +kubebuilder:printcolumn:name="serviceName",type=string,JSONPath=`.spec.frontend.serviceMatcher.serviceName`
// +kubebuilder:printcolumn:name="namespace",type=string,JSONPath=`.spec.frontend.serviceMatcher.namespace`
// +kubebuilder:printcolumn:name="addressMatcher",type=string,JSONPath=`.spec.frontend.addressMatcher.ip`
// +kubebuilder:printcolumn:name="enabled",type=boolean,JSONPath=`.spec.enabled`
type LocalRedirectPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec LocalRedirectPolicySpec `json:"spec"`
	// +optional
	Status PolicyStatus `json:"status,omitzero"`
}

// LocalRedirectPolicySpec is what the user wishes of a LocalRedirectPolicy.
type LocalRedirectPolicySpec struct {
	// Enabled is false to withdraw the policy everywhere.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool         `json:"enabled,omitempty"`
	Config  *PolicyConfig `json:"config,omitempty"`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the frontend of a policy cannot change: delete it and make another"
	Frontend Frontend `json:"frontend"`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the backend of a policy cannot change: delete it and make another"
	Backend LocalRedirectBackend `json:"backend"`
}

// LocalRedirectBackend chooses pods of the client's host, of all namespaces.
type LocalRedirectBackend struct {
	EndpointSelector metav1.LabelSelector `json:"endpointSelector"`
	// +kubebuilder:validation:MinItems=1
	ToPorts []PortInfo `json:"toPorts"`
}

// LocalRedirectPolicyList is what the API server lists.
// +kubebuilder:object:root=true
type LocalRedirectPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []LocalRedirectPolicy `json:"items"`
}
