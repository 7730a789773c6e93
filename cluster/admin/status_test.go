// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/internal/testkit"
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
		var status *fairleadv1.StatusResponse
		testkit.Until(t, "all tell "+asked, func() bool { // on a busy machine some do not in time
			status = w.status(asked)
			return !slices.ContainsFunc(status.GetMembers(), func(m *fairleadv1.Member) bool { return m.GetUnreachable() != "" })
		})
		if status.GetLeader() != "m1" || status.GetAnsweredBy() != asked+"-x" || status.GetVoters() != 3 || status.GetHealthyVoters() != 2 || status.GetQuorum() != 2 {
			t.Fatalf("%s says %v", asked, status)
		}
		for i, m := range status.GetMembers() {
			state := "Follower"
			if m.GetName() == "m1" {
				state = "Leader"
			}
			if m.GetState() != state || m.GetApplied() != 42 || m.GetDigest() != "d1" || m.LastContactMs == nil {
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
	for odd, first := range map[string]string{"m1": "m2", "m3": "m1"} { // m1 leads: it may be the one that is wrong
		w := newWorld(t)
		w.group.edit(func() { w.member(odd).view.digest = "d2" })
		status := w.status("m2")
		if advice := status.GetAdvice(); !strings.Contains(advice, "have different records at index 42") || !strings.Contains(advice, first) || !strings.Contains(advice, odd) {
			t.Errorf("advice %q", advice)
		}
		for _, m := range status.GetMembers() {
			if m.GetHealthy() != (m.GetName() != odd) || strings.Contains(m.GetUnhealthy(), "another record at index 42") != (m.GetName() == odd) {
				t.Errorf("%s differs, and of %s it says healthy: %v, %q", odd, m.GetName(), m.GetHealthy(), m.GetUnhealthy())
			}
		}
	}
}

// Without a majority of the voters nobody's health is judged by a record, not even by the leader's.
func TestNobodyIsJudgedByARecordWithoutAMajority(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group.edit(func() { w.member("m2").view.digest, w.member("m3").view.digest = "d2", "d3" })
	status := w.status("m2")
	if advice := status.GetAdvice(); !strings.Contains(advice, "have different records at index 42") || status.GetHealthyVoters() != 3 {
		t.Errorf("advice %q, %d healthy", advice, status.GetHealthyVoters())
	}
}

// Whoever asks for the digest at an index gets that one or none.
func TestStatusTellsTheDigestThatWasAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for at, want := range map[uint64]string{42: "d1", 7: ""} {
		status, err := w.client(pki.Member, "m1", "m2").Raft.Status(w.ctx(), &fairleadv1.StatusRequest{Local: true, DigestAt: at})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range status.GetMembers() {
			if m.GetName() == "m2" && (m.GetDigest() != want || (m.GetDigestAt() == at) != (want != "")) {
				t.Errorf("at %d: %q at %d", at, m.GetDigest(), m.GetDigestAt())
			}
		}
	}
}

// Records of different indexes are not to be compared.
func TestRecordsOfDifferentIndexesMayDiffer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group.edit(func() { w.member("m3").view.digest, w.member("m3").view.digestAt = "d2", 41 })
	if status := w.status("m2"); status.GetAdvice() != "" || status.GetHealthyVoters() != 3 {
		t.Errorf("status %v", status)
	}
}

// A member whose disk hangs takes part in nothing, whatever its leader knows, and no vote is taken that is needed beside it.
func TestAMemberWhoseDiskHangsIsNotHealthy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group.edit(func() { w.member("m2").view.writing, w.member("m3").view.writing = time.Second, 7*time.Second })
	for _, asked := range []string{"m1", "m3"} {
		status := w.status(asked)
		m3 := status.GetMembers()[2]
		if status.GetHealthyVoters() != 2 || m3.GetHealthy() || m3.GetWritingMs() != 7000 || !strings.Contains(m3.GetUnhealthy(), "write of its disk for 7s") {
			t.Errorf("%s says %v", asked, status)
		}
		if advice := status.GetAdvice(); !strings.Contains(advice, "m3 has waited for a write of its disk for 7s") {
			t.Errorf("%s advises %q", asked, advice)
		}
	}
	alice := w.client(pki.Operator, "alice", "m1")
	if _, err := alice.Raft.Remove(w.ctx(), &fairleadv1.RemoveRequest{Server: "m2"}); !errors.Is(err, admin.WouldLoseQuorum) {
		t.Errorf("the good one goes: %v", err)
	}
	if _, err := alice.Raft.Remove(w.ctx(), &fairleadv1.RemoveRequest{Server: "m3"}); err != nil {
		t.Errorf("the one that hangs does not go: %v", err)
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

// A server that was removed and runs on for a while is told nothing by anybody. It must not have an operator wipe or recover the others.
func TestAFormerMemberSaysThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group.edit(func() {
		gone := w.group.members[1]
		gone.ID, gone.Name = "gone-x", "gone"
		w.member("m3").view.knows = []admin.MemberStatus{w.group.members[0], gone, w.group.members[2]} // it was told, and has no newer list
		w.group.members = w.group.members[:2]
	})
	names := func(status *fairleadv1.StatusResponse) (out []string) {
		for _, m := range status.GetMembers() {
			out = append(out, m.GetName())
		}
		return out
	}
	var status *fairleadv1.StatusResponse
	testkit.Until(t, "the leader answers it", func() bool { // on a busy machine not always in time
		status = w.status("m3")
		return status.GetLeader() == "m1"
	})
	const disclaimer = "m3-x, which answers, is no member of the group any more"
	if advice := status.GetAdvice(); !status.GetFormer() || status.GetHealthyVoters() != 2 || !strings.HasPrefix(advice, disclaimer+": what stands here is the leader's word; with two voters") {
		t.Errorf("while the leader answers it: %v", status)
	}
	if got := names(status); !slices.Equal(got, []string{"m1", "m2"}) {
		t.Errorf("while the leader answers it, it lists %v", got)
	}
	w.member("m1").stop()
	status = w.status("m3")
	if advice := status.GetAdvice(); !status.GetFormer() || status.GetLeader() != "" || !strings.HasPrefix(advice, disclaimer+" and does not know") || strings.Contains(advice, "recover") {
		t.Errorf("while nobody does: leader %q, advice %q", status.GetLeader(), advice)
	}
	if got := names(status); !slices.Equal(got, []string{"gone", "m1"}) {
		t.Errorf("while nobody answers it, it lists %v", got)
	}
	for _, m := range status.GetMembers() {
		if m.GetHealthy() || m.GetLeader() || m.GetUnhealthy() != "is not known of: m3-x, which answers, is no member any more" {
			t.Errorf("%s: %v", m.GetName(), m)
		}
	}
}

// Asked for what it knows by itself, a former member knows nothing of the others either.
func TestAFormerMemberNamesNoLeaderByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group.edit(func() { w.member("m3").view.knows = w.group.members[:2] })
	status, err := w.client(pki.Viewer, "bob", "m3").Raft.Status(w.ctx(), &fairleadv1.StatusRequest{Local: true})
	if err != nil || status.GetLeader() != "" || !status.GetFormer() {
		t.Errorf("%v, %v", status, err)
	}
}

// A removal that was never committed is undone by the next leader.
func TestWhoTheLeaderListsIsNoFormerMember(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group.edit(func() { w.member("m3").view.knows = w.group.members[:2] })
	var status *fairleadv1.StatusResponse
	testkit.Until(t, "the leader answers it", func() bool { // on a busy machine not always in time
		status = w.status("m3")
		return status.GetLeader() == "m1"
	})
	if status.GetFormer() || status.GetVoters() != 3 || status.GetAdvice() != "" {
		t.Errorf("%v", status)
	}
}
