// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"strings"
	"testing"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/pki"
)

func (w *world) status(member string) *fairleadv1.StatusResponse {
	w.t.Helper()
	status, err := w.client(pki.Viewer, "bob", member).Raft.Status(w.ctx(), &fairleadv1.StatusRequest{})
	if err != nil {
		w.t.Fatal(err)
	}
	return status
}

func TestStatusShowsEachMemberAsItSeesItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group.edit(func() { w.group.members[2].Healthy = false })
	for _, asked := range []string{"m1", "m2", "m3"} {
		status := w.status(asked)
		if status.GetLeader() != "m1" || status.GetAnsweredBy() != asked+"-x" || status.GetVoters() != 3 || status.GetHealthyVoters() != 2 || status.GetQuorum() != 2 {
			t.Fatalf("%s says %v", asked, status)
		}
		for i, m := range status.GetMembers() {
			state := "Follower"
			if m.GetName() == "m1" {
				state = "Leader"
			}
			if m.GetUnreachable() != "" || m.GetState() != state || m.GetApplied() != 42 || m.GetDigest() != "d1" || m.LastContactMs == nil {
				t.Errorf("%s says of %s: %v", asked, m.GetName(), m)
			}
			if m.GetHealthy() != (i < 2) || m.GetLeader() != (i == 0) {
				t.Errorf("%s does not take the leader's word on %s: %v", asked, m.GetName(), m)
			}
		}
		if !strings.Contains(status.GetAdvice(), "if one more voter is lost, changes wait; start m3 again") {
			t.Errorf("%s advises %q", asked, status.GetAdvice())
		}
	}
}

func TestStatusIsAnsweredWithoutQuorum(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group.edit(func() { w.group.leader = "" })
	w.member("m1").stop()
	w.member("m3").stop()
	status := w.status("m2")
	if status.GetLeader() != "" || status.GetHealthyVoters() != 1 {
		t.Fatalf("status %v", status)
	}
	for _, m := range status.GetMembers() {
		if (m.GetUnreachable() == "") != (m.GetName() == "m2") || strings.Contains(m.GetUnreachable(), "\n") {
			t.Errorf("%s is unreachable: %q", m.GetName(), m.GetUnreachable())
		}
	}
	for _, part := range []string{"no quorum", "1 of 3 voters are healthy, 2 are needed", "traffic goes on", "start m1, m3 again", "raft recover"} {
		if !strings.Contains(status.GetAdvice(), part) {
			t.Errorf("advice lacks %q: %s", part, status.GetAdvice())
		}
	}
}

func TestLocalStatusAsksNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.client(pki.Viewer, "bob", "m2").Raft.Status(w.ctx(), &fairleadv1.StatusRequest{Local: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"m1", "m3"} {
		if got := w.member(name).counter(t, "fairlead_api_requests_total"); got != 0 {
			t.Errorf("%s was asked", name)
		}
	}
}

func TestStatusNamesMembersWhoseRecordsDiffer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group.edit(func() { w.member("m3").view.digest = "d2" })
	if advice := w.status("m2").GetAdvice(); !strings.Contains(advice, "m1 and m3 have different records at index 42") {
		t.Fatalf("advice %q", advice)
	}
}

func TestPeersAreAnsweredByTheAskedMemberAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	peers, err := w.client(pki.Viewer, "bob", "m3").Raft.Peers(w.ctx(), &fairleadv1.PeersRequest{})
	if err != nil || peers.GetLeader() != "m1" || len(peers.GetMembers()) != 3 || peers.GetMembers()[1].GetServerId() != "m2-x" {
		t.Fatalf("peers %v, %v", peers, err)
	}
}
