// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"net/netip"
	"slices"
)

// Link is an interface of a node that can answer for addresses, as the node's agent sees it.
type Link struct {
	Name string `json:"name"`
	// Up says that it is switched on and has a carrier.
	Up bool `json:"up"`
	// Deaf says that it has heard nobody for a while although it asked, and did hear somebody before: the cable is in,
	// but leads nowhere.
	Deaf bool `json:"deaf"`
	// Prefixes are the networks that it is in.
	Prefixes []netip.Prefix `json:"prefixes"`
}

// Works tells whether clients can be expected to reach the node by this link.
func (l Link) Works() bool { return l.Up && !l.Deaf }

// Equal tells whether two links are the same in all they say.
func (l Link) Equal(o Link) bool {
	return l.Name == o.Name && l.Up == o.Up && l.Deaf == o.Deaf && slices.Equal(l.Prefixes, o.Prefixes)
}

// Beside tells whether two links are in one segment, as far as is known: they are in one network. The link-local one of
// IPv6 is another in every segment.
func (l Link) Beside(o Link) bool {
	return slices.ContainsFunc(l.Prefixes, func(p netip.Prefix) bool {
		return !p.Addr().IsLinkLocalUnicast() && slices.Contains(o.Prefixes, p)
	})
}

// Near tells whether an address is in one of the link's networks.
func (l Link) Near(address netip.Addr) bool {
	return slices.ContainsFunc(l.Prefixes, func(p netip.Prefix) bool { return p.Contains(address) })
}

// Serving lists which of a node's links are to answer for an address: of those that are named (no names mean all) the
// ones whose network it is in, and all of them when it is in none's.
func Serving(links []Link, names []string, address netip.Addr) []Link {
	var named, inside []Link
	for _, l := range links {
		if len(names) > 0 && !slices.Contains(names, l.Name) {
			continue
		}
		named = append(named, l)
		if l.Near(address) {
			inside = append(inside, l)
		}
	}
	if len(inside) > 0 {
		return inside
	}
	return named
}
