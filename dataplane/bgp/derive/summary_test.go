// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"net/netip"
	"slices"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/share"
	"fairlead.io/fairlead/fsm"
)

var (
	noAdvertise = bgp.Community(65535<<16 | 65282)
	summary     = netip.MustParsePrefix("203.0.113.0/24")
)

// documentedPair is a group with one address, two nodes, and the pair of advertisements that MetalLB's documentation has: the address for
// the switch itself, and the prefix that it passes on.
func documentedPair() group {
	g := withNodes()
	g.give(1, vip(1), 1, 2)
	own, rest := fsm.Advertisement{Name: "local", Pools: []fsm.PoolName{"p"}, Communities: []uint32{uint32(noAdvertise)}, LocalPref: 100}, fsm.Advertisement{Name: "external", Pools: []fsm.PoolName{"p"}}
	rest.Terms.AggregateV4 = 24
	g.apply(&fsm.PutAdvertisement{Advertisement: own}, &fsm.PutAdvertisement{Advertisement: rest})
	return g
}

func TestMetalLBsPairOfAdvertisementsIsAnnouncedAsBoth(t *testing.T) {
	var want []bgp.Path
	for n := 1; n <= 2; n++ {
		want = append(want, bgp.Path{Prefix: summary, NextHop: host(n)},
			bgp.Path{Prefix: fsm.HostPrefix(vip(1)), NextHop: host(n), LocalPref: 100, Communities: []bgp.Community{noAdvertise}})
	}
	g := documentedPair()
	var r Rollup
	if have, _, _ := r.Follow(g.Read()); !have.Equal(bgp.NewPaths(want...)) {
		t.Errorf("announced\n%v\nwant\n%v", have, bgp.NewPaths(want...))
	}
	var s Shares
	s.Follow(g.Read())
	sent, err := share.Of(s.Of("n1").Message())
	if err != nil {
		t.Fatal(err)
	}
	want = slices.DeleteFunc(want, func(p bgp.Path) bool { return p.NextHop != host(1) })
	if have := sent.Routes(bgp.Routes{}).Paths; !have.Equal(bgp.NewPaths(want...)) {
		t.Errorf("n1 announces itself\n%v\nwant\n%v", have, bgp.NewPaths(want...))
	}
}

// A prefix goes with the last address that it is announced beside, and stays with the others.
func TestAPrefixIsAnnouncedAsLongAsAnAddressOfIt(t *testing.T) {
	g := documentedPair()
	g.give(2, vip(2), 3)
	var r Rollup
	hops := func() (out []netip.Addr) {
		paths, _, _ := r.Follow(g.Read())
		for _, p := range paths.Of(summary) {
			out = append(out, p.NextHop)
		}
		return out
	}
	if have := hops(); !slices.Equal(have, []netip.Addr{host(1), host(2), host(3)}) {
		t.Errorf("it leads to %v", have)
	}
	g.apply(&fsm.SetRoute{Prefix: fsm.HostPrefix(vip(1))})
	if have := hops(); !slices.Equal(have, []netip.Addr{host(3)}) {
		t.Errorf("without the first address it leads to %v", have)
	}
	g.apply(&fsm.SetRoute{Prefix: fsm.HostPrefix(vip(2))})
	if have := hops(); len(have) > 0 {
		t.Errorf("without any address it leads to %v", have)
	}
}

// What was announced beside addresses goes on in quarantine with them, and goes with the last one of them.
func TestQuarantineKeepsAPrefixBesideItsAddresses(t *testing.T) {
	g := documentedPair()
	var r Rollup
	r.Follow(g.Read())
	before := Settled{View: g.Read(), Paths: r.Apart()}
	empty := withNodes()
	if kept := Keep(empty.Read(), bgp.Paths{}, before); !kept.Equal(before.Paths) {
		t.Errorf("kept %v, want %v", kept, before.Paths)
	}
	g.apply(&fsm.SetRoute{Prefix: fsm.HostPrefix(vip(1))})
	if kept := Keep(g.Read(), bgp.Paths{}, before); kept.Len() > 0 {
		t.Errorf("without the address %v is kept", kept)
	}

	var s Shares
	s.Follow(documentedPair().Read())
	was := s.Of("n1").Routes(bgp.Routes{})
	if now := (share.Share{Keep: true}).Routes(was); !now.Paths.Equal(was.Paths) {
		t.Errorf("n1 keeps %v, want %v", now.Paths, was.Paths)
	}
	if now := (share.Share{Keep: true, Gone: []netip.Prefix{fsm.HostPrefix(vip(1))}}).Routes(was); now.Paths.Len() > 0 {
		t.Errorf("without the address n1 keeps %v", now.Paths)
	}
}

// What an advertisement with a mistake is about is sent to nobody under it, and to others as other advertisements say.
func TestNobodyIsSentAnythingUnderASilentAdvertisement(t *testing.T) {
	g := withNodes()
	g.give(1, vip(1), 1)
	g.apply(&fsm.PutAdvertisement{Advertisement: fsm.Advertisement{Name: "broken", Pools: []fsm.PoolName{"p"}, Peers: []fsm.PeerName{fsm.Nobody}}})
	for _, p := range Paths(g.Read()) {
		if sent, ok := p.To("tor"); ok {
			t.Errorf("tor is sent %+v", sent)
		}
	}
	g.apply(&fsm.PutAdvertisement{Advertisement: fsm.Advertisement{Name: "good", Pools: []fsm.PoolName{"p"}, Peers: []fsm.PeerName{"inside"}, Communities: []uint32{1}}})
	for _, p := range Paths(g.Read()) {
		_, tor := p.To("tor")
		if inside, ok := p.To("inside"); tor || !ok || !slices.Equal(inside.Communities, []bgp.Community{1}) {
			t.Errorf("tor is sent it: %t; inside %+v", tor, inside)
		}
	}
}
