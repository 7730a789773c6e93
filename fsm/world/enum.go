// SPDX-License-Identifier: Apache-2.0

package world

import "encoding/json"

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
	// Families are the IP families that a Service wants, primary first.
	Families uint8
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

// familyLists are the families by number.
var familyLists = [...][]Family{nil, {IPv4}, {IPv6}, {IPv4, IPv6}, {IPv6, IPv4}}

// FamiliesOf is a list of families, of which each counts once, where it stands first.
func FamiliesOf(list ...Family) (f Families) {
	for _, family := range list {
		switch {
		case f == 0 && family == IPv4:
			f = 1
		case f == 0 && family == IPv6:
			f = 2
		case f == 1 && family == IPv6, f == 2 && family == IPv4:
			f += 2
		}
	}
	return f
}

// List lists them. Nobody writes to it.
func (f Families) List() []Family { return familyLists[f] }

// MarshalJSON gives the list.
func (f Families) MarshalJSON() ([]byte, error) { return json.Marshal(f.List()) }

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
