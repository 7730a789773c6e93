// SPDX-License-Identifier: Apache-2.0

package world

// Of these every Service has several, so that each is a number. Zero is none: nobody chose, or nothing was read.
type (
	// ServiceType is spec.type of a Service.
	ServiceType uint8
	// TrafficPolicy says which endpoints may serve traffic that arrives at a node.
	TrafficPolicy uint8
	// FamilyPolicy says whether a Service is of one family or of both.
	FamilyPolicy uint8
	// NextHops says which nodes attract the traffic of a Service.
	NextHops uint8
)

// The types of Service.
const (
	ClusterIP ServiceType = iota + 1
	NodePort
	LoadBalancer
	ExternalName
)

// The traffic policies.
const (
	PolicyCluster TrafficPolicy = iota + 1
	PolicyLocal
)

// The family policies.
const (
	SingleStack FamilyPolicy = iota + 1
	PreferDualStack
	RequireDualStack
)

// The ways to choose next hops.
const (
	// NextHopsEndpoints takes the nodes that carry an endpoint. It is the default.
	NextHopsEndpoints NextHops = iota + 1
	// NextHopsAll takes every eligible node; for externalTrafficPolicy Cluster only.
	NextHopsAll
)

// String is how manifests spell it.
func (t ServiceType) String() string {
	return [...]string{"", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName"}[t]
}

// String is how manifests spell it.
func (p TrafficPolicy) String() string { return [...]string{"", "Cluster", "Local"}[p] }

// String is how manifests spell it.
func (p FamilyPolicy) String() string {
	return [...]string{"", "SingleStack", "PreferDualStack", "RequireDualStack"}[p]
}

// String is how manifests spell it.
func (n NextHops) String() string { return [...]string{"", "endpoints", "all"}[n] }

// MarshalText gives what String does.
func (t ServiceType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// MarshalText gives what String does.
func (p TrafficPolicy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// MarshalText gives what String does.
func (p FamilyPolicy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// MarshalText gives what String does.
func (n NextHops) MarshalText() ([]byte, error) { return []byte(n.String()), nil }
