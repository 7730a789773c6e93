// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"net/netip"
	"slices"
	"testing"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/netnstest"
)

// Balancing §13.6: programs of a host that listen at proxy ports are found, on all addresses or on the tunnel's, and nobody else: not at
// other addresses, ports or protocols, and no connections.
// Rule: balancing §13.
func TestProgramsAtProxyPortsAreFound(t *testing.T) {
	ns := netnstest.New(t, "host")
	ns.Run("ip", "address", "add", "10.250.0.1/32", "dev", "lo")
	ns.Run("ip", "address", "add", "fd00:250::1/128", "dev", "lo", "nodad")
	service := &desired.Service{Name: "a", Addresses: []netip.Addr{netip.MustParseAddr("10.250.0.1"), netip.MustParseAddr("fd00:250::1")}}
	for _, p := range []desired.Port{{Protocol: 6, Number: 7000}, {Protocol: 17, Number: 7000}, {Protocol: 6, Number: 7001}} {
		service.Frontends = append(service.Frontends, desired.Frontend{Port: p})
	}
	listen := func(network, at string) {
		if network == "udp" {
			ns.ListenPacket(network, at)
		} else {
			ns.Listen(network, at)
		}
	}
	for _, step := range []struct {
		network, at string
		want        []desired.Port
	}{
		{"tcp", "127.0.0.1:7000", nil},
		{"udp", "127.0.0.1:7001", nil},
		{"tcp", "0.0.0.0:7002", nil},
		{"udp", ":7000", []desired.Port{{Protocol: 17, Number: 7000}}},
		{"tcp", "[fd00:250::1]:7001", []desired.Port{{Protocol: 6, Number: 7001}, {Protocol: 17, Number: 7000}}},
		{"tcp", "10.250.0.1:7000", []desired.Port{{Protocol: 6, Number: 7000}, {Protocol: 6, Number: 7001}, {Protocol: 17, Number: 7000}}},
	} {
		listen(step.network, step.at)
		if got, err := Listening(ns.FD(), []*desired.Service{service}); err != nil || !slices.Equal(got, step.want) {
			t.Errorf("with %s %s: %v, %v; want %v", step.network, step.at, got, err, step.want)
		}
	}
	if got, err := Listening(ns.FD(), nil); err != nil || len(got) > 0 {
		t.Errorf("without proxy ports: %v, %v", got, err)
	}
}
