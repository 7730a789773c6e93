// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PolicyConfig says on which hosts a policy is effective (balancing §8): it limits clients, not backends.
type PolicyConfig struct {
	// NodeLabelSelector chooses the nodes of the cluster on which it is; unset or empty means all.
	NodeLabelSelector *metav1.LabelSelector `json:"nodeLabelSelector,omitempty"`
	// EnableOutCluster has it effective on hosts that are no nodes of the cluster, too.
	// +kubebuilder:default=true
	// +optional
	EnableOutCluster *bool `json:"enableOutCluster"`
}

// Frontend is what a policy captures: exactly one of the two.
// +kubebuilder:validation:XValidation:rule="has(self.serviceMatcher) != has(self.addressMatcher)",message="give exactly one of serviceMatcher and addressMatcher"
type Frontend struct {
	// ServiceMatcher captures the ClusterIPs of a Service.
	ServiceMatcher *ServiceMatcher `json:"serviceMatcher,omitempty"`
	// AddressMatcher captures a virtual address, which need not exist anywhere.
	AddressMatcher *AddressMatcher `json:"addressMatcher,omitempty"`
}

// ServiceMatcher names a Service of any namespace.
type ServiceMatcher struct {
	// +kubebuilder:validation:MinLength=1
	Namespace string `json:"namespace"`
	// +kubebuilder:validation:MinLength=1
	ServiceName string `json:"serviceName"`
	// ToPorts are the ports of the Service that are captured; none means all.
	ToPorts []PortInfo `json:"toPorts,omitempty"`
}

// AddressMatcher is a virtual address with its ports.
type AddressMatcher struct {
	// IP is an IPv4 or an IPv6 address, without zone.
	// +kubebuilder:validation:Pattern=`^\s*[0-9a-fA-F:.]+\s*$`
	IP string `json:"ip"`
	// +kubebuilder:validation:MinItems=1
	ToPorts []PortInfo `json:"toPorts"`
}

// PortInfo is a port of a frontend or of a backend. The two are joined by name and protocol, never by number (balancing §5).
type PortInfo struct {
	// Port is a number from 1 to 65535, as a text; zeros in front of it do no harm.
	// +kubebuilder:validation:Pattern=`^0*([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])$`
	Port string `json:"port"`
	// +kubebuilder:validation:Enum=TCP;UDP
	Protocol string `json:"protocol"`
	Name     string `json:"name,omitempty"`
}

// PolicyStatus is what became of a policy. It is written by the controllers alone.
type PolicyStatus struct {
	// ObservedGeneration is the generation of the policy that the rest is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Accepted, Programmed, BackendsAvailable and Conflict.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Frontends are how many places are captured, each an address with a port and a protocol.
	// +optional
	Frontends int32 `json:"frontends"`
	// Backends are how many addresses connections get.
	// +optional
	Backends int32 `json:"backends"`
	// Nodes are how many have acknowledged the policy as it is now and carry it out.
	// +optional
	Nodes int32 `json:"nodes"`
	// Pods are those that the policy selects and that run, by namespace.
	// +listType=map
	// +listMapKey=namespace
	// +kubebuilder:validation:MaxItems=100
	Pods []NamespacePods `json:"pods,omitempty"`
}

// NamespacePods are pods of one namespace.
type NamespacePods struct {
	Namespace string `json:"namespace"`
	// Selected are those that run and that the policy selects, Ready those of them that are ready.
	// +optional
	Selected int32 `json:"selected"`
	// +optional
	Ready int32 `json:"ready"`
}
