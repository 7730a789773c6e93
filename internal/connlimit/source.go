// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"net"
	"net/netip"
	"time"
)

// Source is who counts as one: an IPv4 address, or a /64 of IPv6, of which one host may use every address.
func Source(remote net.Addr) string {
	at, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return remote.String()
	}
	return sourceOfAddr(at.Addr())
}

func sourceOfAddr(a netip.Addr) string {
	if a = a.Unmap(); a.Is4() {
		return a.String()
	}
	return netip.PrefixFrom(a.WithZone(""), 64).Masked().String()
}

const (
	// lately is how long a source counts from which somebody proved who he is.
	lately = time.Hour
	// maxLately is how many sources are remembered: agents of the largest clusters.
	maxLately = 8192
)

// acquaintances are sources from which somebody proved who he is lately, and those that were named.
type acquaintances struct {
	named map[string]bool
	seen  map[string]time.Time
}

func acquaintancesOf(named []netip.Addr) acquaintances {
	a := acquaintances{named: map[string]bool{}, seen: map[string]time.Time{}}
	for _, address := range named {
		a.named[sourceOfAddr(address)] = true
	}
	return a
}

func (a acquaintances) has(source string, now time.Time) bool {
	at, seen := a.seen[source]
	return a.named[source] || seen && now.Sub(at) < lately
}

// note remembers a source. The one that was noted longest ago goes where there are too many.
func (a acquaintances) note(source string, now time.Time) {
	if _, seen := a.seen[source]; !seen && len(a.seen) >= maxLately {
		last := ""
		for s, at := range a.seen {
			if last == "" || at.Before(a.seen[last]) {
				last = s
			}
		}
		delete(a.seen, last)
	}
	a.seen[source] = now
}
