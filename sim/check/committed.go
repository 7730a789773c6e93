// SPDX-License-Identifier: Apache-2.0

package check

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
)

// committed lists the next hops of a prefix that the group agreed on and that their nodes said they are ready for, with
// the index from which on a member knows so.
func committed(v *fsm.View, prefix netip.Prefix) map[netip.Addr]fsm.Index {
	r, ok := fsm.Get[*fsm.Route](v, fsm.TableRoutes, prefix.String())
	if !ok {
		return nil
	}
	out := map[netip.Addr]fsm.Index{}
	for _, h := range r.NextHops {
		if h.Withdrawing {
			continue
		}
		if v.Group().Settings.Unsteered {
			out[h.Address()] = h.Since.Index
			continue
		}
		n, ok := fsm.Get[*fsm.Node](v, fsm.TableNodes, string(h.Node()))
		if ok && !n.Acknowledged.IsZero() && n.Acknowledged.Compare(h.Since) >= 0 && !slices.Contains(n.Failed, prefix) {
			out[h.Address()] = max(h.Since.Index, n.AcknowledgedAt.Index)
		}
	}
	return out
}
