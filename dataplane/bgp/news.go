// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"net/netip"
	"slices"
)

// news collects what changed from one set of routes to newer ones, as far as their source tells.
type news struct {
	known   bool     // touched is all that changed
	upto    Revision // of the routes that were taken in last
	touched map[netip.Prefix]bool
}

// take adds what routes say of themselves.
func (n *news) take(routes Routes) {
	switch {
	case !n.known || routes.Revision == n.upto:
		return
	case routes.Since == (Revision{}) || routes.Since != n.upto:
		n.known = false
		return
	}
	n.upto = routes.Revision
	if n.touched == nil {
		n.touched = map[netip.Prefix]bool{}
	}
	for _, p := range routes.Touched {
		n.touched[p] = true
	}
}

// prefixes lists what changed, in order; nil if that is not known.
func (n *news) prefixes() []netip.Prefix {
	if !n.known {
		return nil
	}
	out := make([]netip.Prefix, 0, len(n.touched))
	for p := range n.touched {
		out = append(out, p)
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return out
}
