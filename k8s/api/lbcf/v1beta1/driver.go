// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LoadBalancerDriver is the address of a driver: an HTTP server that operates outside load balancers of one make.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=driver
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.url`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Draining",type=string,JSONPath=`.metadata.labels.lbcf\.tkestack\.io/driver-draining`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:pruning:PreserveUnknownFields
type LoadBalancerDriver struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +nullable
	Spec LoadBalancerDriverSpec `json:"spec"`
	// +nullable
	Status LoadBalancerDriverStatus `json:"status"`
}

// DriverTypeWebhook is the one type of driver that there is.
const DriverTypeWebhook = "Webhook"

// LoadBalancerDriverSpec says how a driver is called.
// +kubebuilder:pruning:PreserveUnknownFields
type LoadBalancerDriverSpec struct {
	// DriverType is Webhook; it cannot change.
	// +nullable
	DriverType string `json:"driverType"`
	// URL (http or https) gets the name of the webhook appended to its path; it cannot change.
	// +nullable
	URL string `json:"url"`
	// Webhooks are the timeouts of the driver's webhooks; those that are not listed are added.
	// +nullable
	Webhooks []WebhookConfig `json:"webhooks"`
	// AcceptDryRunCall lets calls be made that must change nothing.
	// +nullable
	AcceptDryRunCall bool `json:"acceptDryRunCall,omitempty"`
}

// WebhookConfig is one webhook of a driver.
// +kubebuilder:pruning:PreserveUnknownFields
type WebhookConfig struct {
	// +nullable
	Name string `json:"name"`
	// Timeout is the whole time that a call may take, such as 10s (the default); at most 1m.
	// +nullable
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// LoadBalancerDriverStatus is what became of a driver.
// +kubebuilder:pruning:PreserveUnknownFields
type LoadBalancerDriverStatus struct {
	// +nullable
	Conditions []Condition `json:"conditions"`
}

// LoadBalancerDriverList is what the API server lists.
// +kubebuilder:object:root=true
type LoadBalancerDriverList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []LoadBalancerDriver `json:"items"`
}
