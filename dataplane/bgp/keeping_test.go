// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// A peer keeps what it was told from when it was met, or lost, for as long as it was asked to; not after a leave.
func TestKeepingEndsWithTimeOrLeave(t *testing.T) {
	var k Keeping
	at := func(n int) time.Time { return time.Unix(0, 0).Add(time.Duration(n) * time.Second) }
	is := func(n int, want ...Peer) {
		t.Helper()
		var addresses []netip.Addr
		for _, p := range want {
			addresses = append(addresses, p.Address)
		}
		if got := k.Peers(at(n)); !slices.Equal(got, addresses) {
			t.Errorf("after %d s %v may keep something, want %v", n, got, addresses)
		}
	}
	a := Peer{Address: netip.MustParseAddr("192.0.2.1"), Restart: GracefulRestart{Mode: RestartNone}}.Normal(64512) // 30 s
	b := Peer{Address: netip.MustParseAddr("192.0.2.2"), Restart: GracefulRestart{StaleTime: 9 * time.Second}}.Normal(64512)
	k.Met(b, at(0)) // 40 s
	k.Met(a, at(0))
	is(29, a, b)
	is(30, b)
	k.Lost(a.Address, at(35))
	is(39, a, b)
	is(40, a)
	is(65)
	k.Lost(a.Address, at(70))
	k.Left(a.Address)
	is(71)
	k.Lost(a.Address, at(72)) // nothing to it is left
	is(73)
	k.Met(b, at(80))
	b.HoldTime = 3 * time.Second // 13 s; but what it was told before, it keeps as long as before
	k.Met(b, at(81))
	is(120, b)
	is(121)
}
