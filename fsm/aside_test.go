// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"testing"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
)

// A member steps aside only while one that stays has announced what was there, and by the drain that lasts. Drawn histories
// come here seldom.
func TestAMemberStepsAsideOnceAnotherAnnounces(t *testing.T) {
	s := formed(t)
	answer := func(c fsm.Command, want fsm.Reject) {
		t.Helper()
		if o := fsmtest.Try(t, s, c); o.Reject != want {
			t.Errorf("%T: %v, not %v", c, o.Reject, want)
		}
	}
	aside := func() fsm.Revision {
		d, _ := fsm.Get[*fsm.Drain](s.Read(), fsm.TableDrains, "member/m1")
		return d.Aside
	}
	for _, name := range []string{"m1", "m2", "m3"} {
		tell(t, s, &fsm.ReportMember{Server: fsm.ServerID(name + "-x"), Name: name, Format: fsm.NewestFormat, Run: "r"})
	}
	announced := func(name string, upto fsm.Revision) {
		tell(t, s, &fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{{Server: fsm.ServerID(name + "-x"), Run: "r", Upto: upto}}})
	}
	tell(t, s, &fsm.BeginDrain{Of: fsm.DrainMember, Name: "m1"})
	since := s.Read().Revision()
	answer(&fsm.BeginDrain{Of: fsm.DrainMember, Name: "m2"}, fsm.RejectInUse)
	answer(&fsm.StepAside{Name: "m2", Since: since}, fsm.RejectNotFound)
	announced("m1", since) // its own word does not count
	announced("m2", fsm.Revision{Epoch: since.Epoch, Index: since.Index - 1})
	answer(&fsm.StepAside{Name: "m1", Since: since}, fsm.RejectInUse)
	announced("m2", since)
	answer(&fsm.StepAside{Name: "m1", Since: fsm.Revision{Epoch: since.Epoch, Index: since.Index - 1}}, fsm.RejectStaleRevision)
	tell(t, s, &fsm.StepAside{Name: "m1", Since: since})
	first := aside()
	tell(t, s, &fsm.StepAside{Name: "m1", Since: since})
	if v := s.Read(); first.IsZero() || aside() != first || !v.Aside("m1") || v.Aside("m2") || len(v.Speakers()) != 2 {
		t.Errorf("aside since %s, then %s; %d speakers", first, aside(), len(v.Speakers()))
	}
	tell(t, s, &fsm.EndDrain{Of: fsm.DrainMember, Name: "m1"})
	if v := s.Read(); v.Aside("m1") || len(v.Speakers()) != 3 {
		t.Error("aside after the drain")
	}
}
