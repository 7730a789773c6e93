// SPDX-License-Identifier: Apache-2.0

package bgp_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp"
)

// A peer with a link-local address has both families, and nothing that such a session cannot do. One without the interface in its
// zone is nobody.
func TestUnnumberedPeersAskForNothingElse(t *testing.T) {
	peer := bgp.Peer{Name: "tor", Address: netip.MustParseAddr("fe80::1%eth1"), RemoteASN: 65001}
	if err := peer.Validate(65000); err != nil {
		t.Fatal(err)
	}
	if got := peer.Normal(65000).Families; !slices.Equal(got, []bgp.Family{bgp.IPv4, bgp.IPv6}) {
		t.Errorf("families %v", got)
	}
	for want, change := range map[string]func(*bgp.Peer){
		"does not sign":         func(p *bgp.Peer) { p.Password = "secret" },
		"comes from that":       func(p *bgp.Peer) { p.LocalAddress = netip.MustParseAddr("2001:db8::2") },
		"no hop away":           func(p *bgp.Peer) { p.EBGPMultihop = 2 },
		"without the interface": func(p *bgp.Peer) { p.Address = p.Address.WithZone("") },
		"nor a link-local one":  func(p *bgp.Peer) { p.Address = netip.MustParseAddr("2001:db8::1%eth1") },
		"no AS number":          func(p *bgp.Peer) { p.RemoteASN = 0 },
	} {
		p := peer
		change(&p)
		if err := p.Validate(65000); !errors.Is(err, bgp.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Policies do not know which of two peers with one link-local address is meant: the second is left out, however they are ordered.
func TestUnnumberedPeersHaveAddressesOfTheirOwn(t *testing.T) {
	peers := []bgp.Peer{
		{Name: "two", Address: netip.MustParseAddr("fe80::1%eth2"), RemoteASN: 65001},
		{Name: "one", Address: netip.MustParseAddr("fe80::1%eth1"), RemoteASN: 65001},
		{Name: "third", Address: netip.MustParseAddr("fe80::3%eth2"), RemoteASN: 65001},
	}
	normal, err := bgp.Desired{Peers: peers}.Normal(65000)
	if !errors.Is(err, bgp.ErrInvalid) || !strings.Contains(err.Error(), "two (fe80::1%eth2)") {
		t.Errorf("%v", err)
	}
	if len(normal.Peers) != 2 || normal.Peers[0].Name != "one" || normal.Peers[1].Name != "third" {
		t.Errorf("peers %v", normal.Peers)
	}
}
