// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
)

func TestEmptyServersJoinThroughAnyMember(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	empty := w.clientFor(w.endpoint(pki.Request{Role: pki.Member, Name: "m4"}), "m3")
	request := &fairleadv1.JoinRequest{Name: "m4", ServerId: "m4-x", Address: "192.0.2.4:7444"}
	joined, err := empty.Join.Join(w.ctx(), request)
	if err != nil || joined.GetGroup() != "g1" || joined.GetLeader() != "m1" {
		t.Fatalf("joined %v, %v", joined, err)
	}
	request.Last = 17
	if _, err := empty.Join.Join(w.ctx(), request); !errors.Is(err, admin.Removed) || !strings.Contains(err.Error(), "move its data folder away") {
		t.Fatalf("a removed server joins: %v", err)
	}
	report := &fairleadv1.ReportRequest{Name: "m4", ServerId: "m4-x", Version: "v2", Applied: &fairleadv1.Revision{Epoch: 1, Index: 40}}
	if _, err := empty.Join.Report(w.ctx(), report); !errors.Is(err, admin.Forbidden) {
		t.Fatalf("an empty server reports: %v", err)
	}
	answer, err := w.client(pki.Member, "m4", "m3").Join.Report(w.ctx(), report)
	if err != nil || answer.GetFormat() != 3 {
		t.Fatalf("report: %v, %v", answer, err)
	}
	leave := &fairleadv1.LeaveRequest{Name: "m4", ServerId: "m4-x"}
	if _, err := w.client(pki.Member, "m4", "m3").Join.Leave(w.ctx(), leave); err != nil {
		t.Fatalf("leave: %v", err)
	}
	if _, err := w.client(pki.Member, "m3", "m3").Join.Leave(w.ctx(), leave); !errors.Is(err, admin.Forbidden) {
		t.Fatalf("m3 leaves for m4: %v", err)
	}
	if got, want := w.group.history(), []string{"m1: join m4-x for m4 ()", "m1: report m4-x v2 applied 40 for m4 ()", "m1: leave m4-x for m4 ()"}; !slices.Equal(got, want) {
		t.Fatalf("done %q", got)
	}
}

func TestFoundersConfirmOnlyWhatTheyWereTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	founder := w.clientFor(w.endpoint(pki.Request{Role: pki.Member, Name: "m1"}), "m2")
	members := []*fairleadv1.FoundingMember{{Name: "m1", Address: "192.0.2.1:7444"}, {Name: "m2", Address: "192.0.2.2:7444"}, {Name: "m3", Address: "192.0.2.3:7444"}}
	confirmed, err := founder.Join.Confirm(w.ctx(), &fairleadv1.ConfirmRequest{Token: "open sesame", Members: members})
	if err != nil || !confirmed.GetEmpty() || confirmed.GetServerId() != "m2-x" {
		t.Fatalf("confirmed %v, %v", confirmed, err)
	}
	for name, test := range map[string]struct {
		request *fairleadv1.ConfirmRequest
		want    admin.Code
	}{
		"other-token": {&fairleadv1.ConfirmRequest{Token: "open barley", Members: members}, admin.BootstrapMismatch},
		"other-list":  {&fairleadv1.ConfirmRequest{Token: "open sesame", Members: members[:2]}, admin.BootstrapMismatch},
		"no-token":    {&fairleadv1.ConfirmRequest{Members: members}, admin.Invalid},
		"endless":     {&fairleadv1.ConfirmRequest{Token: "open sesame", Members: slices.Repeat(members, 30)}, admin.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := founder.Join.Confirm(w.ctx(), test.request)
			if !errors.Is(err, test.want) {
				t.Fatalf("error %v, want %s", err, test.want)
			}
		})
	}
	if log := w.member("m2").log.String(); strings.Contains(log, "sesame") || strings.Contains(log, "barley") {
		t.Errorf("the token is in the log:\n%s", log)
	}
}
