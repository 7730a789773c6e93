// SPDX-License-Identifier: Apache-2.0

package webhook

import "encoding/json"

// Map is what the protocol says with free names and values. Nil is null on the wire, and means the same as empty.
type Map = map[string]string

// Operation says what a validation is for.
type Operation string

// What validations are for.
const (
	Create Operation = "Create"
	Update Operation = "Update"
)

// BackendType is what kind of backends a group has.
type BackendType string

// The kinds of backends.
const (
	Pod     BackendType = "Pod"
	Service BackendType = "Service"
	Static  BackendType = "Static"
)

// Attempt is what requests have in common that may be sent again until they succeed (lbcf §3.3). The fields of requests are
// always on the wire, but for those that say omitempty.
type Attempt struct {
	// RecordID is equal at all attempts of one operation on one object, RetryID different at each.
	RecordID string `json:"recordID"`
	RetryID  string `json:"retryID"`
	// DryRun asks to change nothing, and to answer as if.
	DryRun bool `json:"dryRun"`
}

// ValidateLoadBalancerRequest asks whether a load balancer may be as its user writes it (lbcf §3.4).
type ValidateLoadBalancerRequest struct {
	DryRun        bool      `json:"dryRun"`
	Operation     Operation `json:"operation"`
	LBSpec        Map       `json:"lbSpec"`
	Attributes    Map       `json:"attributes"`
	OldAttributes Map       `json:"oldAttributes,omitempty"` // of updates
}

// CreateLoadBalancerRequest asks for a load balancer, or to find the one that LBSpec means (lbcf §3.5).
type CreateLoadBalancerRequest struct {
	Attempt
	LBSpec     Map `json:"lbSpec"`
	Attributes Map `json:"attributes"`
}

// LoadBalancerRequest asks to give a load balancer its attributes (lbcf §3.6), or to delete it (§3.7).
type LoadBalancerRequest struct {
	Attempt
	LBInfo     Map `json:"lbInfo"`
	Attributes Map `json:"attributes"`
	// LBSpec is there when one is to be deleted whose identity nobody knows: its creation was asked for and never confirmed.
	// LBCF did not send it; drivers may ignore it.
	LBSpec Map `json:"lbSpec,omitempty"`
}

// ValidateBackendRequest asks whether backends may join a load balancer with these parameters (lbcf §3.8).
type ValidateBackendRequest struct {
	DryRun      bool        `json:"dryRun"`
	BackendType BackendType `json:"backendType"`
	Operation   Operation   `json:"operation"`
	LBInfo      Map         `json:"lbInfo"`
	Parameters  Map         `json:"parameters"`
	// OldParameters are those before an update. LBCF's documentation calls them oldParameters: they are sent by both names
	// and read by either.
	OldParameters Map `json:"OldParameters,omitempty"`
}

// MarshalJSON writes OldParameters by both names.
func (r ValidateBackendRequest) MarshalJSON() ([]byte, error) {
	type once ValidateBackendRequest
	return json.Marshal(struct {
		once
		Documented Map `json:"oldParameters,omitempty"`
	}{once(r), r.OldParameters})
}

// GenerateBackendAddrRequest asks by which address the load balancer knows a backend (lbcf §3.9). One of the backends is nil.
type GenerateBackendAddrRequest struct {
	Attempt
	LBInfo         Map             `json:"lbInfo"`
	LBAttributes   Map             `json:"lbAttributes"`
	Parameters     Map             `json:"parameters"`
	PodBackend     *PodBackend     `json:"podBackend"`
	ServiceBackend *ServiceBackend `json:"serviceBackend"`
}

// PodBackend is a port of a pod.
type PodBackend struct {
	// Pod is the whole Pod as Kubernetes writes it, without kind and apiVersion.
	Pod  json.RawMessage `json:"pod"`
	Port Port            `json:"port"`
}

// ServiceBackend is a node port of a Service on one node.
type ServiceBackend struct {
	// Service is the whole Service as Kubernetes writes it; the node port is in there.
	Service       json.RawMessage `json:"service"`
	Port          Port            `json:"port"` // of the Service, not of the node
	NodeName      string          `json:"nodeName"`
	NodeAddresses []NodeAddress   `json:"nodeAddresses"`
}

// NodeAddress is one of a Node's status.addresses.
type NodeAddress struct {
	Type    string `json:"type"`
	Address string `json:"address"`
}

// Port is a port of a backend. Both numbers are sent, since old drivers read PortNumber (lbcf §3.9).
type Port struct {
	PortNumber int32  `json:"portNumber"`
	Port       int32  `json:"port"`
	Protocol   string `json:"protocol,omitempty"`
}

// PortOf is the port of that number.
func PortOf(number int32, protocol string) Port {
	return Port{PortNumber: number, Port: number, Protocol: protocol}
}

// Number is the port's number, by whichever name it came. Zero: it has none.
func (p Port) Number() int32 {
	if p.Port > 0 {
		return p.Port
	}
	return p.PortNumber
}

// BackendRequest asks to register a backend (lbcf §3.10), or to deregister it (§3.11).
type BackendRequest struct {
	Attempt
	LBInfo      Map    `json:"lbInfo"`
	BackendAddr string `json:"backendAddr"`
	Parameters  Map    `json:"parameters"`
	// InjectedInfo is what the last successful registration answered; nil before.
	InjectedInfo Map `json:"injectedInfo"`
}

// JudgePodDeregisterRequest asks which pods shall stay although they are not ready (lbcf §3.12).
type JudgePodDeregisterRequest struct {
	DryRun bool `json:"dryRun"`
	// NotReadyPods are whole Pods as Kubernetes writes them.
	NotReadyPods []json.RawMessage `json:"notReadyPods"`
}
