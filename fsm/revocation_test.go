// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"fmt"
	"strings"
	"testing"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
)

func TestRevocationsLastUntilTheyAreTakenBack(t *testing.T) {
	s := formed(t)
	for i, step := range []struct {
		command fsm.Command
		want    fsm.Reject
	}{
		{&fsm.EndRevocation{Of: "agent", Name: "n1"}, fsm.RejectNotFound},
		{&fsm.Revoke{Of: "agent", Name: "n1"}, fsm.Accepted},
		{&fsm.Revoke{Of: "agent", Name: "n1"}, fsm.Accepted}, // once more changes nothing
		{&fsm.Revoke{Of: "agent", Name: "n1", Before: 1_790_000_000}, fsm.Accepted},
		{&fsm.Revoke{Of: fsm.RevokedSerial, Name: "0a1b"}, fsm.Accepted},
		{&fsm.Revoke{Of: fsm.RevokedSerial, Name: "0a1b", Before: 1}, fsm.RejectInvalid}, // one certificate is good or is not
		{&fsm.Revoke{Of: fsm.RevokedSerial, Name: "0A1B"}, fsm.RejectInvalid},
		{&fsm.Revoke{Of: fsm.RevokedSerial, Name: strings.Repeat("0", 43)}, fsm.RejectInvalid},
		{&fsm.Revoke{Of: fsm.RevokedMembership, Name: "m2", Before: 1}, fsm.RejectInvalid},
		{&fsm.Revoke{Of: "root", Name: "n1"}, fsm.RejectInvalid},
		{&fsm.Revoke{Of: "agent"}, fsm.RejectInvalid},
		{&fsm.Revoke{Of: "agent", Name: strings.Repeat("n", 254)}, fsm.RejectInvalid},
	} {
		if have := outcome(t, s, step.command); have != step.want {
			t.Fatalf("step %d: %s, want %s", i, have, step.want)
		}
	}
	r, ok := s.Read().Revoked("agent", "n1")
	if !ok || r.Before != 1_790_000_000 || len(r.History) != 2 {
		t.Errorf("the agent's is %+v", r)
	}
	if _, ok := s.Read().Revoked("host", "n1"); ok {
		t.Error("the host of that name is revoked, too")
	}
	tell(t, s, &fsm.EndRevocation{Of: "agent", Name: "n1"})
	if _, ok := s.Read().Revoked("agent", "n1"); ok {
		t.Error("it was taken back, and is there")
	}
}

// Members of format 1 would stop at the table.
func TestNothingIsRevokedBeforeFormatTwo(t *testing.T) {
	s := fsm.New()
	tell(t, s, &fsm.InitGroup{Group: "g1", Format: 1})
	if have := outcome(t, s, &fsm.Revoke{Of: "agent", Name: "n1"}); have != fsm.RejectFormat {
		t.Fatal(have)
	}
}

func TestRevocationsAreBounded(t *testing.T) {
	s := formed(t)
	for i := 0; i < 10_000; i += 500 {
		var batch []fsm.Proposal
		for j := range 500 {
			batch = append(batch, fsm.Proposal{Command: &fsm.Revoke{Of: fsm.RevokedSerial, Name: fmt.Sprintf("%x", i+j)}})
		}
		fsmtest.Commit(t, s, batch...)
	}
	if have := outcome(t, s, &fsm.Revoke{Of: fsm.RevokedSerial, Name: "ffff"}); have != fsm.RejectInUse {
		t.Errorf("one more is %s", have)
	}
	if have := outcome(t, s, &fsm.Revoke{Of: fsm.RevokedSerial, Name: "1"}); have != fsm.Accepted {
		t.Errorf("one that is there already is %s", have)
	}
	tell(t, s, &fsm.EndRevocation{Of: fsm.RevokedSerial, Name: "1"}, &fsm.Revoke{Of: fsm.RevokedSerial, Name: "ffff"})
}
