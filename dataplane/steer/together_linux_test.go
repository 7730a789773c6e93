// SPDX-License-Identifier: Apache-2.0

package steer_test

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/nat"
)

// Our own translation takes the place of kube-proxy's.
func TestWorksTogetherWithOurOwnTranslation(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.node.Run("nft", "delete", "table", "inet", "proxy")
	state := serviceState(t, wanted(vip4, vip6), desired.Service{
		Name: "default/web", Addresses: []netip.Addr{vip4, vip6},
		Frontends: []desired.Frontend{{Name: "http", Port: desired.Port{Protocol: 6, Number: 80}}},
		Endpoints: []desired.Endpoint{endpoint("10.244.0.2"), endpoint("2001:db8:f::2")},
	})
	translation, err := nat.New(nat.Options{Node: "node", NetNS: l.node.FD(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := l.steer()
	for _, apply := range []func(context.Context, desired.State) error{
		func(ctx context.Context, w desired.State) error { _, err := s.Apply(ctx, w); return err },
		func(ctx context.Context, w desired.State) error { _, err := translation.Apply(ctx, w); return err },
	} {
		if err := apply(context.Background(), state); err != nil {
			t.Fatal(err)
		}
	}
	l.client.SetSysctl("ipv4/ping_group_range", "0 0")
	if err := ping(l.client, vip4, unix.AF_INET, unix.IPPROTO_ICMP, 8, 0); err != nil {
		t.Error(err)
	}
	for _, a := range []netip.Addr{vip4, vip6} {
		wantWord(t, l.client, a, 80, "pod")
		wantWord(t, l.node, a, 80, "pod")
		wantRefused(t, l.client, a, 4711)
	}
}

func endpoint(address string) desired.Endpoint {
	return desired.Endpoint{
		Address: netip.MustParseAddr(address), Node: "node", Ready: true, Serving: true,
		Ports: []desired.EndpointPort{{Name: "http", Port: desired.Port{Protocol: 6, Number: 8080}}},
	}
}
