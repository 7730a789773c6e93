// SPDX-License-Identifier: Apache-2.0

package world

import "net/netip"

// AddressType is the type of a node's address.
type AddressType string

// The types of node addresses that can be a next hop.
const (
	InternalIP AddressType = "InternalIP"
	ExternalIP AddressType = "ExternalIP"
)

// Node is a machine of the cluster.
type Node struct {
	Meta
	Addresses []NodeAddress
	// Ready is the Ready condition, and true for a manifest that states no conditions: a file has no heartbeat.
	Ready              bool
	NetworkUnavailable bool
	// Unschedulable is a cordon; pods that are there still serve.
	Unschedulable bool
	// Excluded is the label node.kubernetes.io/exclude-from-external-load-balancers: never a next hop.
	Excluded bool
	// Taints are the keys of its taints, each once, in order.
	Taints []string
	// Labels are all of them: groups select nodes by any.
	Labels []KV
	BootID string
	// Proxies are proxy addresses that an administrator gave it, at most one of each family: what is behind their ports is up to them.
	Proxies []netip.Addr
	// PodCIDRs are what its pods have addresses of, where the cluster says so.
	PodCIDRs []netip.Prefix
	// NodeID is the id that it has by annotation, 0 for none.
	NodeID uint32
}

// NodeAddress is one address of a node. The order among those of one type and family is the node's own: the first
// is the one to use.
type NodeAddress struct {
	Type    AddressType
	Address netip.Addr
}

// Address gives the first address of a type and family.
func (n Node) Address(t AddressType, f Family) (netip.Addr, bool) {
	for _, a := range n.Addresses {
		if a.Type == t && FamilyOf(a.Address) == f {
			return a.Address, true
		}
	}
	return netip.Addr{}, false
}

// Pool is a set of addresses to give to Services.
type Pool struct {
	Meta
	Homed
	// Ranges are what may be given out, without what the user excluded.
	Ranges []Range
	// AutoAssign lets Services that ask for nothing in particular have addresses of it.
	AutoAssign bool
	// AvoidBuggyIPs keeps IPv4 addresses that end in .0 and .255 back.
	AvoidBuggyIPs bool
	// Drain says that the pool is being emptied: it gives nothing out.
	Drain bool
	// Priority orders pools for automatic assignment, lower first; zero comes last.
	Priority int
	// Namespaces and NamespaceSelectors choose together from which namespaces Services may have addresses; with neither, from all.
	Namespaces         []string
	NamespaceSelectors []Selector
	// ServiceSelectors choose among those Services, each of them some; none means all.
	ServiceSelectors []Selector
	// KeepAnswering has nodes that answer for its addresses on their segments go on when they cannot reach the group.
	KeepAnswering bool
	// OnlyAdvertised has its addresses announced by BGP only where an Advertisement is about them, as MetalLB does with its own.
	OnlyAdvertised bool
	// Labels are what advertisements select pools by.
	Labels []KV
}

// Namespace is what Services live in. Its labels are what pools and policies select it by.
type Namespace struct {
	Meta
	Labels []KV
}

// Range is a run of addresses of one family, both ends included.
type Range struct {
	From netip.Addr
	To   netip.Addr
}

// RangeOf are the addresses of a prefix.
func RangeOf(p netip.Prefix) Range {
	last := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(last)*8; bit++ {
		last[bit/8] |= 0x80 >> (bit % 8)
	}
	to, _ := netip.AddrFromSlice(last)
	return Range{From: p.Masked().Addr(), To: to}
}

// Contains tells whether a lies in the range.
func (r Range) Contains(a netip.Addr) bool {
	return a.BitLen() == r.From.BitLen() && r.From.Compare(a) <= 0 && a.Compare(r.To) <= 0
}

// Overlaps tells whether the ranges have an address in common.
func (r Range) Overlaps(o Range) bool {
	return r.From.BitLen() == o.From.BitLen() && r.From.Compare(o.To) <= 0 && o.From.Compare(r.To) <= 0
}

// String is "from-to", or the one address.
func (r Range) String() string {
	if r.From == r.To {
		return r.From.String()
	}
	return r.From.String() + "-" + r.To.String()
}
