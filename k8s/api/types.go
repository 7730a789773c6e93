// SPDX-License-Identifier: Apache-2.0

// Package api holds the Go form of the configuration objects that Fairlead reads besides Kubernetes' own: address
// pools, BGP peers, advertisements, BFD profiles, communities and policies.
//
// The group fairlead.io/v1alpha1 spells them as MetalLB's metallb.io does, field by field, so that manifests of
// either group decode into the same structs. A field is here when it is used or when a user must be told that it
// is not. The definitions of our group's kinds (deploy/crds) are generated from them. Start reading at IPAddressPool.
//
// +groupName=fairlead.io
// +versionName=v1alpha1
package api

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

//go:generate ./generate.sh

// Groups and versions whose objects decode into the types of this package.
const (
	GroupVersion = "fairlead.io/v1alpha1"

	MetalLBV1Beta1 = "metallb.io/v1beta1"
	MetalLBV1Beta2 = "metallb.io/v1beta2"
)

// Status is what another controller wrote about an object. It is accepted wherever its group allows one, and
// never read.
type Status = json.RawMessage

// IPAddressPool is a set of addresses for Services of type LoadBalancer.
type IPAddressPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec IPAddressPoolSpec `json:"spec"`
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status Status `json:"status,omitempty"`
}

// IPAddressPoolSpec is what the user wishes of a pool.
type IPAddressPoolSpec struct {
	// Addresses are prefixes (203.0.113.0/24), ranges (203.0.113.10-203.0.113.20) or single addresses.
	Addresses []string `json:"addresses"`
	// AutoAssign lets Services have an address without naming the pool; unset means yes.
	AutoAssign *bool `json:"autoAssign,omitempty"`
	// AvoidBuggyIPs keeps IPv4 addresses that end in .0 and .255 back.
	AvoidBuggyIPs bool `json:"avoidBuggyIPs,omitempty"`
	// Exclude takes addresses out, written as in Addresses. MetalLB has no such field: there it is the annotation
	// fairlead.io/exclude, with commas between.
	Exclude []string `json:"exclude,omitempty"`
	// Drain empties the pool: who has addresses of it keeps them, and nobody gets any. For MetalLB's pools it is the
	// annotation fairlead.io/drain.
	Drain bool `json:"drain,omitempty"`
	// AllocateTo narrows who may have addresses of the pool.
	AllocateTo *ServiceAllocation `json:"serviceAllocation,omitempty"`
}

// ServiceAllocation narrows who may have addresses of a pool.
type ServiceAllocation struct {
	// Priority orders pools for automatic assignment, lower first; 0 comes last.
	Priority           int                    `json:"priority,omitempty"`
	Namespaces         []string               `json:"namespaces,omitempty"`
	NamespaceSelectors []metav1.LabelSelector `json:"namespaceSelectors,omitempty"`
	ServiceSelectors   []metav1.LabelSelector `json:"serviceSelectors,omitempty"`
}

// BGPPeer is a BGP neighbour.
type BGPPeer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BGPPeerSpec `json:"spec"`
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status Status `json:"status,omitempty"`
}

// BGPPeerSpec is what the user wishes of a session.
type BGPPeerSpec struct {
	// +kubebuilder:validation:Format=int64
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	MyASN uint32 `json:"myASN"`
	// +kubebuilder:validation:Format=int64
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	PeerASN uint32 `json:"peerASN,omitempty"`
	// LocalASN takes the place of MyASN in this session, and in the paths on it.
	// +kubebuilder:validation:Format=int64
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	LocalASN uint32 `json:"localASN,omitempty"`
	// DynamicASN is not supported: PeerASN must be given.
	DynamicASN  string `json:"dynamicASN,omitempty"`
	PeerAddress string `json:"peerAddress,omitempty"`
	// Interface is behind which the switch is, in the place of PeerAddress (an unnumbered session). Only with mode node: each node
	// finds the switch of its own link.
	Interface     string                 `json:"interface,omitempty"`
	SourceAddress string                 `json:"sourceAddress,omitempty"`
	PeerPort      *int32                 `json:"peerPort,omitempty"`
	HoldTime      *metav1.Duration       `json:"holdTime,omitempty"`
	KeepaliveTime *metav1.Duration       `json:"keepaliveTime,omitempty"`
	ConnectTime   *metav1.Duration       `json:"connectTime,omitempty"`
	RouterID      string                 `json:"routerID,omitempty"`
	NodeSelectors []metav1.LabelSelector `json:"nodeSelectors,omitempty"`
	Password      string                 `json:"password,omitempty"`
	// +optional
	PasswordSecret         corev1.SecretReference `json:"passwordSecret,omitzero"`
	BFDProfile             string                 `json:"bfdProfile,omitempty"`
	EnableGracefulRestart  bool                   `json:"enableGracefulRestart,omitempty"`
	EBGPMultiHop           bool                   `json:"ebgpMultiHop,omitempty"`
	VRF                    string                 `json:"vrf,omitempty"`
	DisableMP              bool                   `json:"disableMP,omitempty"`
	DualStackAddressFamily bool                   `json:"dualStackAddressFamily,omitempty"`

	// What follows MetalLB has no fields for: there they are annotations (docs/bgp.md).

	// Mode is who peers with the switch: group (every member, the default) or node (every node that nodeSelectors choose, for
	// itself).
	Mode string `json:"mode,omitempty"`
	// TTLSecurity is how many hops away the switch may be (RFC 5082).
	TTLSecurity *int32 `json:"ttlSecurity,omitempty"`
	// SendMax is how many paths of a prefix the switch is sent at most.
	SendMax *int32 `json:"sendMax,omitempty"`
	// Passive waits for the switch to dial.
	Passive bool `json:"passive,omitempty"`
	// Restart is long-lived, plain or none.
	Restart     string           `json:"restart,omitempty"`
	RestartTime *metav1.Duration `json:"restartTime,omitempty"`
	StaleTime   *metav1.Duration `json:"staleTime,omitempty"`
	// KeepOnNotification asks the switch to keep paths also when the session ends by a NOTIFICATION (RFC 8538).
	KeepOnNotification bool `json:"keepOnNotification,omitempty"`
}

// BGPAdvertisement says how addresses of pools are announced.
type BGPAdvertisement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec BGPAdvertisementSpec `json:"spec,omitzero"`
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status Status `json:"status,omitempty"`
}

// BGPAdvertisementSpec is what the user wishes of an announcement.
type BGPAdvertisementSpec struct {
	AggregationLength   *int32 `json:"aggregationLength,omitempty"`
	AggregationLengthV6 *int32 `json:"aggregationLengthV6,omitempty"`
	// +kubebuilder:validation:Format=int64
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	LocalPref              uint32                 `json:"localPref,omitempty"`
	Communities            []string               `json:"communities,omitempty"`
	IPAddressPools         []string               `json:"ipAddressPools,omitempty"`
	IPAddressPoolSelectors []metav1.LabelSelector `json:"ipAddressPoolSelectors,omitempty"`
	NodeSelectors          []metav1.LabelSelector `json:"nodeSelectors,omitempty"`
	Peers                  []string               `json:"peers,omitempty"`
	// ServiceSelectors choose the Services whose addresses it is about. Without any it is about all.
	ServiceSelectors []metav1.LabelSelector `json:"serviceSelectors,omitempty"`
	// MED is a field of ours; for MetalLB's it is the annotation fairlead.io/med.
	MED *int64 `json:"med,omitempty"`
	// Weights is readyEndpoints if switches shall be told, by the link bandwidth community, how many ready endpoints are behind each
	// next hop. A field of ours; for MetalLB's it is the annotation fairlead.io/weights.
	// +kubebuilder:validation:Enum=readyEndpoints
	Weights string `json:"weights,omitempty"`
}

// L2Advertisement says for which pools ARP and NDP are answered.
type L2Advertisement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec L2AdvertisementSpec `json:"spec,omitzero"`
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status Status `json:"status,omitempty"`
}

// L2AdvertisementSpec chooses pools, nodes and interfaces; what is left out means all.
type L2AdvertisementSpec struct {
	IPAddressPools         []string               `json:"ipAddressPools,omitempty"`
	IPAddressPoolSelectors []metav1.LabelSelector `json:"ipAddressPoolSelectors,omitempty"`
	NodeSelectors          []metav1.LabelSelector `json:"nodeSelectors,omitempty"`
	Interfaces             []string               `json:"interfaces,omitempty"`
	// ServiceSelectors are not supported: an advertisement that has them is refused.
	ServiceSelectors []metav1.LabelSelector `json:"serviceSelectors,omitempty"`
	// PreferredNodeSelectors are not supported: any node that may answer does.
	PreferredNodeSelectors []PreferredNodeSelector `json:"preferredNodeSelectors,omitempty"`
}

// PreferredNodeSelector chooses nodes that shall answer rather than others.
type PreferredNodeSelector struct {
	Weight int32 `json:"weight,omitempty"`
	// +optional
	Preference metav1.LabelSelector `json:"preference,omitzero"`
}

// BFDProfile is how fast sessions that name it shall notice that the other end is gone. It is not supported: sessions go by
// their hold times.
type BFDProfile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec BFDProfileSpec `json:"spec,omitzero"`
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status Status `json:"status,omitempty"`
}

// BFDProfileSpec has MetalLB's fields; intervals are in milliseconds.
type BFDProfileSpec struct {
	ReceiveInterval  *uint32 `json:"receiveInterval,omitempty"`
	TransmitInterval *uint32 `json:"transmitInterval,omitempty"`
	DetectMultiplier *uint32 `json:"detectMultiplier,omitempty"`
	EchoInterval     *uint32 `json:"echoInterval,omitempty"`
	EchoMode         *bool   `json:"echoMode,omitempty"`
	PassiveMode      *bool   `json:"passiveMode,omitempty"`
	MinimumTTL       *uint32 `json:"minimumTtl,omitempty"`
}

// AddressPolicy limits which addresses the Services of some namespaces may have. It only takes away: of several that are
// about a namespace each holds. It is of our group alone, and of the whole cluster.
//
// +kubebuilder:resource:scope=Cluster
type AddressPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec AddressPolicySpec `json:"spec,omitzero"`
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status Status `json:"status,omitempty"`
}

// AddressPolicySpec says whom a policy is about, and what it limits.
type AddressPolicySpec struct {
	// Namespaces that it is about, beside those that NamespaceSelectors choose; with neither it is about all.
	Namespaces         []string               `json:"namespaces,omitempty"`
	NamespaceSelectors []metav1.LabelSelector `json:"namespaceSelectors,omitempty"`
	// MaxAddresses is how many addresses of pools the Services of one namespace may have together; unset means any number.
	// +kubebuilder:validation:Minimum=0
	MaxAddresses *int32 `json:"maxAddresses,omitempty"`
	// ExternalIPs are the addresses that Services may name in spec.externalIPs, written as those of a pool. Unset allows
	// all, an empty list none.
	// +optional
	ExternalIPs []string `json:"externalIPs,omitzero"`
}

// Community gives names to BGP communities.
type Community struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec CommunitySpec `json:"spec,omitzero"`
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status Status `json:"status,omitempty"`
}

// CommunitySpec lists the names.
type CommunitySpec struct {
	Communities []CommunityAlias `json:"communities,omitempty"`
}

// CommunityAlias is one name for one community.
type CommunityAlias struct {
	Name  string `json:"name,omitempty"`
	Value string `json:"value,omitempty"`
}
