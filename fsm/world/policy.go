// SPDX-License-Identifier: Apache-2.0

package world

// AddressPolicy limits which addresses the Services of some namespaces may have. Where several are about a namespace each
// of them holds.
type AddressPolicy struct {
	Meta
	Homed
	// Namespaces and NamespaceSelectors choose the namespaces together; with neither, all are meant.
	Namespaces         []string
	NamespaceSelectors []Selector
	// HasQuota says that MaxAddresses is how many addresses of pools the Services of one namespace may have together.
	HasQuota     bool
	MaxAddresses int
	// LimitsExternalIPs says that Services may name only addresses of ExternalIPs in spec.externalIPs.
	LimitsExternalIPs bool
	ExternalIPs       []Range
}
