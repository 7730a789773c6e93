// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/dataplane/bgp/frrtest"
	"fairlead.io/fairlead/e2e/lab"
)

// whole is the prefix of Services 0 to 3.
var whole = netip.MustParsePrefix("203.0.0.0/30")

func aggregate(l *lab.Lab, length int) {
	l.Manifests.Put("ad.yaml", fmt.Sprintf(`apiVersion: metallb.io/v1beta1
kind: BGPAdvertisement
metadata: {name: ad}
spec: {aggregationLength: %d}
`, length))
}

// routes waits until a switch has exactly these next hops of the prefix and of the addresses of it.
func routes(wait func(netip.Prefix, ...netip.Addr), of map[netip.Prefix][]int) {
	for _, p := range []netip.Prefix{whole, prefix(0), prefix(1), prefix(2), prefix(3)} {
		var want []netip.Addr
		for _, n := range of[p] {
			want = append(want, lab.NodeAddress(n))
		}
		wait(p, want...)
	}
}

func together(nodes ...int) map[netip.Prefix][]int { return map[netip.Prefix][]int{whole: nodes} }

func apart(of ...[]int) map[netip.Prefix][]int {
	out := map[netip.Prefix][]int{}
	for i, nodes := range of {
		out[prefix(i)] = nodes
	}
	return out
}

// A prefix takes the place of its addresses at BIRD and at FRR while all of them are announced alike, and gives it back to them
// otherwise. Both ways no address is without a route at any look, by whichever prefix. A member that is killed in between does
// not lead packets astray: what switches keep of it is a longer prefix.
func TestAggregateStandsForItsAddresses(t *testing.T) {
	at := netip.MustParseAddr("127.0.0.77")
	l := started(t, lab.Options{})
	var members []birdtest.Neighbor
	for i := 1; i <= 3; i++ {
		members = append(members, birdtest.Neighbor{Address: netip.AddrFrom4([4]byte{127, 0, 0, byte(10 + i)}), ASN: lab.ASN})
	}
	frr := frrtest.StartAt(t, at, members...)
	l.Manifests.Peer("frr", lab.ASN, frrtest.ASN, frr.Address(), frr.Port())
	for i := 1; i <= 3; i++ {
		l.Manifests.Service(i, 1, 2)
	}
	both := func(of map[netip.Prefix][]int) {
		t.Helper()
		routes(l.Bird.WaitNextHops, of)
		routes(frr.WaitNextHops, of)
	}
	all := []int{1, 2}
	both(apart(all, all, all, all))
	var stops []func()
	for i := range 2 {
		stop, count := l.Bird.WatchAddress(lab.VIP(i)), frr.WatchEither(prefix(i), whole)
		stops = append(stops, func() {
			t.Helper()
			if n, total := birdtest.Gaps(stop()); n > 0 {
				t.Errorf("BIRD had no way to %s %d times, for %s in all", lab.VIP(i), n, total)
			}
			if looks, gaps := count(); gaps > 0 || looks == 0 {
				t.Errorf("FRR had no way to %s at %d of %d looks", lab.VIP(i), gaps, looks)
			}
		})
	}

	aggregate(l, 30)
	both(together(1, 2))
	l.Manifests.Service(3, 1) // one address has other next hops
	both(apart(all, all, all, []int{1}))
	l.Manifests.Service(3, 1, 2)
	both(together(1, 2))
	for i := range 4 { // all move
		l.Manifests.Service(i, 2, 3)
	}
	both(together(2, 3))
	l.Manifests.Remove("svc-2.yaml") // an address is nobody's
	both(apart([]int{2, 3}, []int{2, 3}, nil, []int{2, 3}))

	// What is kept of a member that is away leads to nodes that serve, or others come before it.
	l.Member("m3").Kill()
	l.Manifests.Service(2, 2, 3)
	l.Bird.WaitNextHops(whole, lab.NodeAddress(2), lab.NodeAddress(3))
	frr.WaitNextHops(whole, lab.NodeAddress(2), lab.NodeAddress(3))
	aside := []int{1, 3}
	for i := range 4 {
		l.Manifests.Service(i, aside...)
	}
	both(apart(aside, aside, aside, aside)) // a switch may still keep paths via node 2
	l.Member("m3").Start()
	both(together(aside...))
	for _, stop := range stops {
		stop()
	}
}

// Nodes that peer themselves do the same, each for itself and all together.
func TestNodesAnnounceAggregates(t *testing.T) {
	l, _, b := withSpeakers(t, 2)
	for i := 1; i <= 3; i++ {
		l.Manifests.Service(i, 1, 2)
	}
	all := []int{1, 2}
	routes(b.WaitNextHops, apart(all, all, all, all))
	stop := b.WatchAddress(lab.VIP(0))
	aggregate(l, 30)
	routes(b.WaitNextHops, together(1, 2))
	l.Manifests.Service(3, 1)
	routes(b.WaitNextHops, apart(all, all, all, []int{1}))
	l.Manifests.Service(3, 1, 2)
	routes(b.WaitNextHops, together(1, 2))
	aggregate(l, 8)
	routes(b.WaitNextHops, apart(all, all, all, all))
	if n, total := birdtest.Gaps(stop()); n > 0 {
		t.Errorf("no way to %s %d times, for %s in all", lab.VIP(0), n, total)
	}
	if log := l.Leader().Log(); !strings.Contains(log, "a /8 is announced only where all its addresses are") {
		t.Errorf("nothing tells why a /8 is not announced:\n%s", log)
	}
}
