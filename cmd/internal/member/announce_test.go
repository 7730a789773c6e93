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
		&fsm.ReportMember{Server: "m2-x", Name: "m2", Format: fsm.NewestFormat, Run: "r"}, &fsm.PutAdvertisement{Advertisement: ad})
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
