// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
	"log/slog"
	"net/netip"
	"testing"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
)

// Routes hang on marks of members only by whether somebody was not waited for: a mark makes no routes to be reported by another
// mark, but for the one by which a member that was away has caught up.
func TestOnlyTheMarkThatEndsADoubtMakesRoutes(t *testing.T) {
	state := fsm.New()
	apply := applyTo(t, state)
	mark := func() {
		t.Helper()
		rev := state.Read().Revision()
		apply(&fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{{Server: "m2-x", Run: "r", Upto: rev, Withdrawn: rev}}})
	}
	hop := func(n int) fsm.HopSpec {
		return fsm.HopSpec{Node: fsm.NodeID(fmt.Sprint("n", n)), Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})}
	}
	ad := fsm.Advertisement{Name: "all"}
	ad.Terms.AggregateV4 = 31
	apply(&fsm.InitGroup{Group: "g", Format: fsm.NewestFormat}, &fsm.PutSettings{Settings: fsm.Settings{Unsteered: true}},
		&fsm.ReportMember{Server: "m2-x", Name: "m2", Format: fsm.NewestFormat, Run: "r"}, &fsm.PutAdvertisement{Advertisement: ad}, &fsm.PutPeer{Peer: aSwitch})
	prefix := func(i int) netip.Prefix { return fsm.HostPrefix(netip.AddrFrom4([4]byte{203, 0, 113, byte(i)})) }
	for i := range 2 {
		id := fsm.ServiceID(fmt.Sprint("shop/", i))
		apply(&fsm.PutService{Service: fsm.Service{ID: id}}, &fsm.Allocate{Address: prefix(i).Addr(), Service: id},
			&fsm.SetRoute{Prefix: prefix(i), Hops: []fsm.HopSpec{hop(1), hop(2)}})
	}
	r := newRoutes(state, "m1", config.BGP{}, nil, slog.New(slog.DiscardHandler))
	routes := func(want int) bgp.Routes {
		t.Helper()
		out := r.Routes()
		if out.Paths.Len() != want {
			t.Fatalf("%d paths, want %d: %v", out.Paths.Len(), want, out.Paths)
		}
		return out
	}
	if first, last := before(state.Read(), "m1"), before(state.Read(), "m3"); first != 0 || last != 1 {
		t.Errorf("of m2 %d come before m1, and %d before m3", first, last)
	}
	was := routes(2)
	mark()
	if now := routes(2); now.Revision != was.Revision {
		t.Errorf("a mark made routes of %s out of those of %s", now.Revision, was.Revision)
	}
	for i := range 2 { // m2 is away, and node 2 goes
		apply(&fsm.SetRoute{Prefix: prefix(i), Hops: []fsm.HopSpec{hop(1)}})
		apply(&fsm.FinishWithdrawal{
			Prefix: prefix(i), Node: "n2", Address: hop(2).Address, Since: state.Read().Revision(), Excused: []fsm.ServerID{"m2-x"},
		})
	}
	was = routes(2) // of single addresses
	mark()
	after := routes(1)
	if after.Revision == was.Revision || after.Since != was.Revision || len(after.Touched) != 3 {
		t.Errorf("routes of %s became those of %s, which differ from %s at %v", was.Revision, after.Revision, after.Since, after.Touched)
	}
	mark()
	if now := routes(1); now.Revision != after.Revision {
		t.Errorf("a mark made routes of %s out of those of %s", now.Revision, after.Revision)
	}
}

var aSwitch = fsm.Peer{Name: "switch", Address: netip.MustParseAddr("192.0.2.254"), ASN: 65001}

// Where members peer with nobody, they hold no paths: nodes announce, or nobody does. As soon as somebody is there to be told, all
// paths are there as well.
func TestWhoPeersWithNobodyHoldsNoPaths(t *testing.T) {
	state := fsm.New()
	apply := applyTo(t, state)
	address := netip.MustParseAddr("203.0.113.1")
	byNodes := aSwitch
	byNodes.Name, byNodes.Address, byNodes.Nodes.Speak = "of-nodes", netip.MustParseAddr("192.0.2.253"), true
	apply(&fsm.InitGroup{Group: "g", Format: fsm.NewestFormat}, &fsm.PutSettings{Settings: fsm.Settings{Unsteered: true}}, &fsm.PutPeer{Peer: byNodes},
		&fsm.PutService{Service: fsm.Service{ID: "shop/web"}}, &fsm.Allocate{Address: address, Service: "shop/web"})
	set := func(nodes ...byte) {
		var hops []fsm.HopSpec
		for _, n := range nodes {
			hops = append(hops, fsm.HopSpec{Node: fsm.NodeID(fmt.Sprint("n", n)), Address: netip.AddrFrom4([4]byte{192, 0, 2, n})})
		}
		apply(&fsm.SetRoute{Prefix: fsm.HostPrefix(address), Hops: hops})
	}
	set(1)
	r := newRoutes(state, "m1", config.BGP{}, func(bgp.Peer, string) (bgp.Secret, bool) { return "", false }, slog.New(slog.DiscardHandler))
	want := func(paths, peers int, anew bool) {
		t.Helper()
		before := r.derived.Revision
		switch now := r.Routes(); {
		case now.Paths.Len() != paths || len(now.Peers) != peers:
			t.Fatalf("%d paths for %d peers, want %d for %d", now.Paths.Len(), len(now.Peers), paths, peers)
		case anew && now.Since != (bgp.Revision{}), !anew && now.Since != before:
			t.Fatalf("routes say that they differ from those of %s, which were of %s", now.Since, before)
		}
	}
	want(0, 0, true)
	set(1, 2)
	want(0, 0, false)
	apply(&fsm.PutPeer{Peer: aSwitch})
	want(2, 1, true)
	set(1, 2, 3)
	want(3, 1, false)
	apply(&fsm.DeletePeer{Name: aSwitch.Name})
	want(0, 0, true)
	signed := aSwitch
	signed.PasswordFrom = "file:no/such" // which may come any moment
	apply(&fsm.PutPeer{Peer: signed})
	want(3, 0, true)
}
