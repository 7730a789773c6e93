// SPDX-License-Identifier: Apache-2.0

package member

import (
	"net/netip"
	"testing"

	"fairlead.io/fairlead/fsm"
)

// What was withdrawn is reported once somebody waits for it, beside what was announced; before format 2, in its place.
func TestWithdrawalsAreReportedWhenAwaited(t *testing.T) {
	prefix := netip.MustParsePrefix("203.0.113.1/32")
	for _, format := range []uint32{1, 2} {
		s := fsm.New()
		tell := applyTo(t, s)
		tell(&fsm.InitGroup{Group: "g1", Format: format})
		tell(&fsm.PutNode{ID: "n1", UID: "u1"})
		tell(&fsm.PutService{Service: fsm.Service{ID: "shop/a", UID: "u1"}})
		tell(&fsm.Allocate{Address: prefix.Addr(), Service: "shop/a"})
		tell(&fsm.ReportMember{Server: "m1", Name: "m1", Format: 2, Run: "r"})
		tell(&fsm.SetRoute{Prefix: prefix, Hops: []fsm.HopSpec{{Node: "n1", Address: netip.MustParseAddr("192.0.2.1")}}})
		before := s.Read().Revision()
		var w waits
		reports := func(m marks, want fsm.AnnouncedMark) {
			t.Helper()
			have, _ := fsm.Get[*fsm.Member](s.Read(), fsm.TableMembers, "m1")
			want.Server, want.Run = "m1", "r"
			got := w.markFor(s.Read(), have, m)
			if got != want {
				t.Errorf("format %d: reports %+v, want %+v", format, got, want)
			}
			if got.News(have) {
				tell(&fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{got}})
			}
		}
		reports(marks{announced: before, withdrawn: before}, fsm.AnnouncedMark{Upto: before})
		tell(&fsm.SetRoute{Prefix: prefix})
		since := s.Read().Revision()
		if format == 1 {
			reports(marks{announced: since, withdrawn: before}, fsm.AnnouncedMark{Upto: before})
			reports(marks{announced: since, withdrawn: since}, fsm.AnnouncedMark{Upto: since})
		} else {
			reports(marks{announced: since, withdrawn: before}, fsm.AnnouncedMark{Upto: since})
			reports(marks{announced: since, withdrawn: since}, fsm.AnnouncedMark{Upto: since, Withdrawn: since})
			reports(marks{announced: since, withdrawn: since}, fsm.AnnouncedMark{Upto: since})
		}
		tell(&fsm.FinishWithdrawal{Prefix: prefix, Node: "n1", Address: netip.MustParseAddr("192.0.2.1"), Since: since})
	}
}

// What nobody waited for is looked at again once the routes are others.
func TestAwaitedWithdrawalsAreSeenWhenRoutesChange(t *testing.T) {
	prefix := netip.MustParsePrefix("203.0.113.1/32")
	s := fsm.New()
	tell := applyTo(t, s)
	tell(&fsm.InitGroup{Group: "g1", Format: 2})
	tell(&fsm.PutNode{ID: "n1", UID: "u1"})
	tell(&fsm.PutService{Service: fsm.Service{ID: "shop/a", UID: "u1"}})
	tell(&fsm.Allocate{Address: prefix.Addr(), Service: "shop/a"})
	tell(&fsm.SetRoute{Prefix: prefix, Hops: []fsm.HopSpec{{Node: "n1", Address: netip.MustParseAddr("192.0.2.1")}}})
	upto := s.Read().Revision()
	upto.Index += 100
	var w waits
	for range 2 {
		if w.look(s.Read(), fsm.Revision{}, upto) {
			t.Error("a withdrawal is awaited, and there is none")
		}
		tell(&fsm.PutNode{ID: "n2", UID: "u2"})
	}
	tell(&fsm.SetRoute{Prefix: prefix})
	if !w.look(s.Read(), fsm.Revision{}, upto) {
		t.Error("nobody waits for a withdrawal that began meanwhile")
	}
	if since := s.Read().Revision(); w.look(s.Read(), since, upto) {
		t.Error("a withdrawal is awaited that was told already")
	}
}
