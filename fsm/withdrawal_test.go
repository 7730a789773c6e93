// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"net/netip"
	"testing"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
)

// A withdrawal ends once every member says that no switch holds the path, not when it says that it announces no more;
// before format 2 it says only the latter. Drawn histories have this moment seldom.
func TestWithdrawalEndsByWhatWasWithdrawn(t *testing.T) {
	prefix, address := netip.MustParsePrefix("203.0.113.1/32"), netip.MustParseAddr("192.0.2.1")
	for _, format := range []uint32{1, 2} {
		s := fsm.New()
		tell(t, s, &fsm.InitGroup{Group: "g1", Format: format}, &fsm.ReportMember{Server: "m1", Format: 2, Run: "r"},
			&fsm.PutService{Service: fsm.Service{ID: "shop/a", UID: "u1"}}, &fsm.PutNode{ID: "n1"},
			&fsm.Allocate{Address: prefix.Addr(), Service: "shop/a"},
			&fsm.SetRoute{Prefix: prefix, Hops: []fsm.HopSpec{{Node: "n1", Address: address}}}, &fsm.SetRoute{Prefix: prefix})
		since := s.Read().Revision()
		// ends tells whether a report is taken, and the withdrawal with it.
		ends := func(mark fsm.AnnouncedMark) (reported, ended bool) {
			t.Helper()
			mark.Server, mark.Run = "m1", "r"
			o := fsmtest.Commit(t, s,
				fsm.Proposal{Actor: "test", Command: &fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{mark}}},
				fsm.Proposal{Actor: "test", Command: &fsm.FinishWithdrawal{Prefix: prefix, Node: "n1", Address: address, Since: since}})
			return o[0].Err() == nil, o[1].Err() == nil
		}
		expect := func(mark fsm.AnnouncedMark, reported, ended bool) {
			t.Helper()
			if r, e := ends(mark); r != reported || e != ended {
				t.Errorf("format %d, %+v: reported %t, ended %t; want %t, %t", format, mark, r, e, reported, ended)
			}
		}
		if format < fsm.FormatWithdrawn {
			expect(fsm.AnnouncedMark{Upto: since, Withdrawn: since}, false, false)
			expect(fsm.AnnouncedMark{Upto: since}, true, true)
			continue
		}
		expect(fsm.AnnouncedMark{Upto: since}, true, false)
		expect(fsm.AnnouncedMark{Upto: since, Withdrawn: since}, true, true)
	}
}

// A member without an AS number announces nothing: it says what it withdrew, and counts for nobody as one that announces.
func TestWithdrawalEndsByTheWordOfWhoeverAnnouncesNothing(t *testing.T) {
	prefix, address := netip.MustParsePrefix("203.0.113.1/32"), netip.MustParseAddr("192.0.2.1")
	s := fsm.New()
	tell(t, s, &fsm.InitGroup{Group: "g1", Format: fsm.NewestFormat, Settings: fsm.Settings{Unsteered: true}}, &fsm.ReportMember{Server: "m1", Format: 2, Run: "r"},
		&fsm.PutService{Service: fsm.Service{ID: "shop/a", UID: "u1"}}, &fsm.PutNode{ID: "n1"}, &fsm.PutNode{ID: "n2"},
		&fsm.Allocate{Address: prefix.Addr(), Service: "shop/a"}, &fsm.SetRoute{Prefix: prefix, Hops: []fsm.HopSpec{{Node: "n1", Address: address}}},
		&fsm.SetRoute{Prefix: prefix, Hops: []fsm.HopSpec{{Node: "n2", Address: address.Next()}}})
	since := s.Read().Revision()
	mark := func(m fsm.AnnouncedMark) fsm.Command {
		m.Server, m.Run = "m1", "r"
		return &fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{m}}
	}
	later := since
	later.Index += 100
	if o := fsmtest.Try(t, s, mark(fsm.AnnouncedMark{Withdrawn: later})); o.Err() == nil {
		t.Error("a mark of a record that is still to come was taken")
	}
	tell(t, s, mark(fsm.AnnouncedMark{Withdrawn: since}), &fsm.FinishWithdrawal{Prefix: prefix, Node: "n1", Address: address, Since: since})
	r, _ := fsm.Get[*fsm.Route](s.Read(), fsm.TableRoutes, prefix.String())
	if len(r.NextHops) != 1 || s.Read().HopState(r, r.NextHops[0]) != fsm.HopAcknowledged {
		t.Errorf("hops %+v, the first of them %s; want one that is acknowledged alone", r.NextHops, s.Read().HopState(r, r.NextHops[0]))
	}
}

// A node that announces itself holds its withdrawals up until it says that no switch holds the path, or is waited out. One that
// never spoke, or speaks no more, is not waited for. Drawn histories have this moment seldom, too.
func TestWithdrawalWaitsForANodeThatSpeaks(t *testing.T) {
	prefix, address := netip.MustParsePrefix("203.0.113.1/32"), netip.MustParseAddr("192.0.2.1")
	for name, c := range map[string]struct {
		speaks  bool
		upto    int // revisions after the withdrawal
		excused bool
		ends    bool
	}{
		"never-spoke":   {false, -1, false, true},
		"holds-it":      {true, -1, false, false},
		"withdrew-it":   {true, 0, false, true},
		"is-waited-out": {true, -1, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := fsm.New()
			tell(t, s, &fsm.InitGroup{Group: "g1", Format: fsm.NewestFormat}, &fsm.PutService{Service: fsm.Service{ID: "shop/a", UID: "u1"}},
				&fsm.PutNode{ID: "n1"}, &fsm.RegisterBoot{Node: "n1", Boot: "b1"}, &fsm.Allocate{Address: prefix.Addr(), Service: "shop/a"},
				&fsm.SetRoute{Prefix: prefix, Hops: []fsm.HopSpec{{Node: "n1", Address: address}}}, &fsm.SetRoute{Prefix: prefix})
			since := s.Read().Revision()
			upto := fsm.Revision{Epoch: since.Epoch, Index: fsm.Index(int(since.Index) + c.upto)}
			tell(t, s, &fsm.ReportSpeakers{Marks: []fsm.SpeakerMark{{Node: "n1", Boot: "b1", Speaks: true}}},
				&fsm.ReportSpeakers{Marks: []fsm.SpeakerMark{{Node: "n1", Boot: "b1", Speaks: c.speaks, Announced: upto, Withdrawn: upto}}})
			o := fsmtest.Try(t, s, &fsm.FinishWithdrawal{Prefix: prefix, Node: "n1", Address: address, Since: since, NodeExcused: c.excused})
			if ended := o.Err() == nil; ended != c.ends {
				t.Errorf("ended %t, want %t: %v", ended, c.ends, o.Err())
			}
		})
	}
}
