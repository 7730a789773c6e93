// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"net/netip"

	"fairlead.io/fairlead/sim/event"
)

func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// pathText is one path of a switch in a line of text.
func pathText(p event.Path) string {
	text := fmt.Sprintf("%s via %s med %d pref %d", addressText(p.NextHop), p.Member, p.MED, p.LocalPref)
	if p.Best {
		text += " best"
	}
	if p.Stale {
		text += " stale"
	}
	if p.LongLived {
		text += " long-lived"
	}
	return text
}
