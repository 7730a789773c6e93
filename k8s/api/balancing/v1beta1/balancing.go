// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BalancingPolicy sends connections to a Service or a virtual address to backends of its own, wherever those are.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=bl,categories=elf
// +kubebuilder:printcolumn:name="serviceName",type=string,JSONPath=`.spec.frontend.serviceMatcher.serviceName`
// +kubebuilder:printcolumn:name="namespace",type=string,JSONPath=`.spec.frontend.serviceMatcher.namespace`
// +kubebuilder:printcolumn:name="addressMatcher",type=string,JSONPath=`.spec.frontend.addressMatcher.ip`
// +kubebuilder:printcolumn:name="serviceEndpointRedirect",type=string,JSONPath=`.spec.backend.serviceEndpoint.redirectMode`
// +kubebuilder:printcolumn:name="enabled",type=boolean,JSONPath=`.spec.enabled`
type BalancingPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BalancingPolicySpec `json:"spec"`
	// +optional
	Status PolicyStatus `json:"status,omitzero"`
}

// BalancingPolicySpec is what the user wishes of a BalancingPolicy.
type BalancingPolicySpec struct {
	// Enabled is false to withdraw the policy everywhere.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool         `json:"enabled,omitempty"`
	Config  *PolicyConfig `json:"config,omitempty"`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the frontend of a policy cannot change: delete it and make another"
	Frontend Frontend `json:"frontend"`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the backend of a policy cannot change: delete it and make another"
	Backend BalancingBackend `json:"backend"`
}

// BalancingBackend is where captured connections go: exactly one of the two.
// +kubebuilder:validation:XValidation:rule="has(self.serviceEndpoint) != has(self.addressEndpoint)",message="give exactly one of serviceEndpoint and addressEndpoint"
type BalancingBackend struct {
	ServiceEndpoint *ServiceEndpoint `json:"serviceEndpoint,omitempty"`
	AddressEndpoint *AddressEndpoint `json:"addressEndpoint,omitempty"`
}

// RedirectMode is which address stands for a pod (balancing §6).
// +kubebuilder:validation:Enum=podEndpoint;hostPort;nodeProxy
type RedirectMode string

// The modes. Unset means PodEndpoint.
const (
	PodEndpoint RedirectMode = "podEndpoint"
	HostPort    RedirectMode = "hostPort"
	NodeProxy   RedirectMode = "nodeProxy"
)

// ServiceEndpoint chooses pods of all namespaces.
type ServiceEndpoint struct {
	EndpointSelector metav1.LabelSelector `json:"endpointSelector"`
	// +kubebuilder:default=podEndpoint
	// +optional
	RedirectMode RedirectMode `json:"redirectMode,omitempty"`
	// +kubebuilder:validation:MinItems=1
	ToPorts []PortInfo `json:"toPorts"`
}

// AddressEndpoint lists addresses. One that is listed twice gets twice as many connections.
type AddressEndpoint struct {
	// +kubebuilder:validation:MinItems=1
	Addresses []string `json:"addresses"`
	// +kubebuilder:validation:MinItems=1
	ToPorts []PortInfo `json:"toPorts"`
	// HealthCheck is how each host finds out which of them answer. Unset means that TCP ports are dialled.
	HealthCheck *HealthCheck `json:"healthCheck,omitempty"`
}

// HealthCheck says how addresses are probed (balancing §14). A number that is 0 means its default.
type HealthCheck struct {
	// Type UDP sends an empty datagram to ports of UDP, and counts only a refusal as no answer; those of TCP are dialled.
	// +kubebuilder:default=TCP
	// +kubebuilder:validation:Enum=TCP;HTTP;HTTPS;ICMP;UDP;None
	// +optional
	Type string `json:"type,omitempty"`
	// Port that is probed in place of each of toPorts.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// Path that HTTP and HTTPS ask for, / by default.
	Path string `json:"path,omitempty"`
	// ExpectedStatuses that HTTP and HTTPS take for an answer; none means 200 to 399.
	ExpectedStatuses []int32 `json:"expectedStatuses,omitempty"`
	// IntervalSeconds between two probes.
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +optional
	IntervalSeconds int32 `json:"intervalSeconds,omitempty"`
	// TimeoutSeconds of a probe.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// HealthyThreshold is how many answers in a row make an address good again.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +optional
	HealthyThreshold int32 `json:"healthyThreshold,omitempty"`
	// UnhealthyThreshold is how many missing answers in a row make it bad.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +optional
	UnhealthyThreshold int32 `json:"unhealthyThreshold,omitempty"`
}

// BalancingPolicyList is what the API server lists.
// +kubebuilder:object:root=true
type BalancingPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BalancingPolicy `json:"items"`
}
