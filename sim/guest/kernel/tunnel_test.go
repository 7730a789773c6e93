// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/api/desired/desiredtest"
	"fairlead.io/fairlead/dataplane/tunnel"
	"fairlead.io/fairlead/sim/event"
	guest "fairlead.io/fairlead/sim/guest/kernel"
)

// The tunnel that ships brings the simulated kernel to what is wanted, puts right what hands take away, and finds nothing to do then.
func TestTunnelsAreMadeAndPutRight(t *testing.T) {
	inLab(t, 1, func(l *lab) {
		var last event.Tunnel
		l.Do(func() {
			l.World.World.Hear(func(e event.Stamped) {
				if x, ok := e.Event.(event.Tunnel); ok {
					last = x
				}
			})
		})
		p := l.Process("n1")
		k := guest.Open(p.Dial, "n1")
		tun, err := k.Tunnel(tunnel.Options{Host: "n1"})
		if err != nil {
			t.Fatal(err)
		}
		want := meshed(t, 3)
		apply := func() {
			t.Helper()
			if failed, err := tun.Apply(context.Background(), want); err != nil || len(failed) > 0 {
				t.Fatalf("%v, %v", failed, err)
			}
		}
		apply()
		if len(last.Addresses) != 1 || last.Addresses[0] != netip.MustParseAddr("10.250.0.1") || len(last.Ways) != 2 || len(last.Peers) != 2 {
			t.Fatalf("made: %+v", last)
		}
		whole := last
		for range 20 {
			var what string
			l.Do(func() { what = l.node.Meddle() })
			apply()
			if fmt.Sprint(last.Addresses, last.Ways, last.Peers) != fmt.Sprint(whole.Addresses, whole.Ways, whole.Peers) {
				t.Fatalf("not put right after %s went: %+v", what, last)
			}
		}
		want = meshed(t, 2)
		apply()
		if len(last.Ways) != 1 || len(last.Peers) != 1 {
			t.Errorf("a host that left: %+v", last)
		}
		p.Kill()
	})
}

// meshed is what n1 shall have: tunnels between it and others, so many hosts in all.
func meshed(t *testing.T, hosts int) desired.State {
	t.Helper()
	var m desiredtest.Told
	for n := 1; n <= hosts; n++ {
		value, err := desired.TunnelHostValue(desired.TunnelHost{
			Underlay: netip.AddrFrom4([4]byte{192, 0, 2, byte(20 + n)}), Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 250, 0, byte(n)})}, Number: uint32(n),
		})
		m.Put(desired.TunnelHostKey(fmt.Sprint("n", n)), value, err)
	}
	own := desired.NodeMessage("g", nil, nil)
	own.Tunnels = desired.TunnelMessage(&desired.TunnelSettings{Port: 7446, VNI: 7446, Ranges: []netip.Prefix{netip.MustParsePrefix("10.250.0.0/29")}})
	return m.State(t, own)
}
