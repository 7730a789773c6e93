// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"maps"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
)

// Settled is what was announced by the newest record outside a quarantine. The zero value announced nothing.
type Settled struct {
	View  *fsm.View // that record; nil for none
	Paths bgp.Paths // of single addresses, and of prefixes beside them
}

// Keep adds to the paths of a record in quarantine those that were announced before: a restored record knows less
// than was agreed on, and nothing is withdrawn until a complete view has filled it again (design §4). What it says is
// to be withdrawn is not kept. An address that is another Service's by the restored record stays with those nodes that it
// was announced by: those of the other one serve other pods.
func Keep(v *fsm.View, paths bgp.Paths, before Settled) bgp.Paths {
	type hop struct {
		prefix netip.Prefix
		via    netip.Addr
	}
	known := map[hop]bool{}
	for p := range paths.All() {
		known[hop{p.Prefix, p.NextHop}] = true
	}
	withdrawn := map[hop]bool{}
	for _, r := range fsm.List[*fsm.Route](v, fsm.TableRoutes) {
		for _, h := range r.NextHops {
			if h.Withdrawing {
				withdrawn[hop{r.Prefix, h.Address()}] = true
			}
		}
	}
	kept := map[netip.Prefix][]bgp.Path{}
	for prefix := range before.Paths.Prefixes() {
		changed := before.ownerChanged(v, prefix)
		had := slices.DeleteFunc(before.Paths.Of(prefix), func(p bgp.Path) bool {
			at := hop{prefix, p.NextHop}
			return withdrawn[at] || !changed && known[at]
		})
		switch {
		case changed:
			kept[prefix] = had
		case len(had) > 0:
			kept[prefix] = append(paths.Of(prefix), had...)
		}
	}
	at := slices.Collect(maps.Keys(kept))
	return paths.With(at, func(prefix netip.Prefix) []bgp.Path { return kept[prefix] }).WithoutBare(at)
}

// ownerChanged tells whether an address that was announced belongs to others by a restored record.
func (s Settled) ownerChanged(v *fsm.View, prefix netip.Prefix) bool {
	if s.View == nil || !prefix.IsSingleIP() || !s.Paths.Has(prefix) {
		return false
	}
	was, is := s.View.Owners(prefix.Addr().String()), v.Owners(prefix.Addr().String())
	return len(was)+len(is) > 0 && !slices.ContainsFunc(was, func(a *fsm.Allocation) bool {
		return slices.ContainsFunc(is, func(b *fsm.Allocation) bool { return a.Service == b.Service })
	})
}
