// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Values of EnsurePolicy.Policy. Any other value means what IfNotSucc means.
const (
	IfNotSucc = "IfNotSucc"
	Always    = "Always"
)

// EnsurePolicy says whether what succeeded is ensured again.
// +kubebuilder:pruning:PreserveUnknownFields
type EnsurePolicy struct {
	// Policy is IfNotSucc (ensure until it succeeded) or Always (ensure for ever, periodically).
	// +nullable
	Policy string `json:"policy"`
	// MinPeriod is the time between two calls under Always, such as 1m30s; at least 30s, by default 1m.
	// +nullable
	MinPeriod *metav1.Duration `json:"minPeriod,omitempty"`
}

// PortSelector names a port. The effective port is Port if it is above 0, else PortNumber.
// +kubebuilder:pruning:PreserveUnknownFields
type PortSelector struct {
	// PortNumber is deprecated: use port.
	// +nullable
	PortNumber *int32 `json:"portNumber,omitempty"`
	// Port is the number of the port, 1 to 65535.
	// +nullable
	Port int32 `json:"port"`
	// Protocol is TCP (the default) or UDP.
	// +nullable
	Protocol string `json:"protocol,omitempty"`
}

// Values of DeregisterPolicy and of DeregisterWebhook.FailurePolicy.
const (
	IfNotReady   = "IfNotReady"
	IfNotRunning = "IfNotRunning"
	Webhook      = "Webhook"   // a policy only
	DoNothing    = "DoNothing" // a failure policy only
)

// DeregisterWebhook names the driver that is asked which pods stay registered although they are not ready.
// +kubebuilder:pruning:PreserveUnknownFields
type DeregisterWebhook struct {
	// DriverName is the LoadBalancerDriver whose judgePodDeregister is called.
	// +nullable
	DriverName string `json:"driverName"`
	// FailurePolicy is what happens when the driver gives no answer: DoNothing (the default), IfNotReady or IfNotRunning.
	// +nullable
	FailurePolicy *string `json:"failurePolicy"`
}

// SelectPodByLabel selects pods by their labels.
// +kubebuilder:pruning:PreserveUnknownFields
type SelectPodByLabel struct {
	// Selector are labels that a pod must have, all of them.
	// +nullable
	Selector map[string]string `json:"selector"`
	// Except are names of pods that are left out.
	// +nullable
	Except []string `json:"except,omitempty"`
}

// Condition is something that holds of an object, or does not.
// +kubebuilder:pruning:PreserveUnknownFields
type Condition struct {
	// +nullable
	Type string `json:"type"`
	// Status is True, False or Unknown.
	// +nullable
	Status metav1.ConditionStatus `json:"status"`
	// LastTransitionTime is when status changed last.
	// +nullable
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
	// Reason is a word for programs to compare.
	// +nullable
	Reason string `json:"reason,omitempty"`
	// Message is what the driver said.
	// +nullable
	Message string `json:"message"`
}

// Values of Condition.Type and Condition.Reason.
const (
	ConditionAccepted         = "Accepted"         // of a LoadBalancerDriver
	ConditionCreated          = "Created"          // of a LoadBalancer and of one of a Bind
	ConditionAttributesSynced = "AttributesSynced" // of a LoadBalancer
	ConditionRegistered       = "Registered"       // of a BackendRecord
	ConditionReady            = "Ready"            // of a load balancer of a Bind

	ReasonOperationFailed = "OperationFailed"
)
