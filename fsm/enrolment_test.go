// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
)

// outcome is what becomes of one command on top of the state.
func outcome(t *testing.T, s *fsm.State, c fsm.Command) fsm.Reject {
	t.Helper()
	return fsmtest.Try(t, s, c).Reject
}

// Drawn histories seldom show one token twice, hence this one.
func TestTokenIsGoodForItsNodeOnce(t *testing.T) {
	s, id := fsm.New(), fsm.EnrolmentID(strings.Repeat("ab", 32))
	tell(t, s, &fsm.InitGroup{Group: "g1", Format: 2}, &fsm.PutEnrolment{ID: id, Node: "edge1", TTL: time.Hour})
	for i, step := range []struct {
		command fsm.Command
		want    fsm.Reject
	}{
		{&fsm.PutEnrolment{ID: id, Node: "edge2", TTL: time.Hour}, fsm.RejectExists},
		{&fsm.UseEnrolment{ID: id, Node: "edge2"}, fsm.RejectInvalid},
		{&fsm.UseEnrolment{ID: id, Node: "edge1"}, fsm.Accepted},
		{&fsm.UseEnrolment{ID: id, Node: "edge1"}, fsm.RejectWrongState},
		{&fsm.DeleteEnrolment{ID: id}, fsm.Accepted},
		{&fsm.UseEnrolment{ID: id, Node: "edge1"}, fsm.RejectNotFound},
	} {
		if have := outcome(t, s, step.command); have != step.want {
			t.Fatalf("step %d: %s, want %s", i, have, step.want)
		}
	}
}

// Members of format 1 would stop at it.
func TestNothingIsEnrolledBeforeFormatTwo(t *testing.T) {
	s := fsm.New()
	tell(t, s, &fsm.InitGroup{Group: "g1", Format: 1})
	if have := outcome(t, s, &fsm.PutEnrolment{ID: fsm.EnrolmentID(strings.Repeat("ab", 32)), Node: "edge1", TTL: time.Hour}); have != fsm.RejectFormat {
		t.Fatal(have)
	}
}
