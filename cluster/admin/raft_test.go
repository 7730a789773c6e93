// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/internal/testkit"
)

// A follower hands every verb on to the leader, which learns from the follower who asked.
func TestFollowersHandOnToTheLeaderWithTheActor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group.edit(func() {
		w.group.members = append(w.group.members, admin.MemberStatus{Member: admin.Member{ID: "m4-x", Name: "m4", Healthy: true}})
		w.group.record = []byte("the record")
	})
	alice := w.client(pki.Operator, "alice", "m3")
	ctx := w.ctx()
	if _, err := alice.Raft.Add(ctx, &fairleadv1.AddRequest{Name: "m5", ServerId: "m5-x", Address: "192.0.2.5:7444", Reason: "more"}); err != nil {
		t.Error(err)
	}
	if _, err := alice.Raft.Add(ctx, &fairleadv1.AddRequest{Name: "m4", ServerId: "m4-x", Address: "192.0.2.4:7444", Suffrage: fairleadv1.Suffrage_SUFFRAGE_VOTER}); err != nil {
		t.Error(err)
	}
	if _, err := alice.Raft.Add(ctx, &fairleadv1.AddRequest{Name: "m4", ServerId: "m4-x", Address: "192.0.2.4:7444", Suffrage: fairleadv1.Suffrage_SUFFRAGE_NONVOTER}); err != nil {
		t.Error(err)
	}
	if r, err := alice.Raft.Remove(ctx, &fairleadv1.RemoveRequest{Server: "m4", Force: true, Reason: "old"}); err != nil || r.GetConfigurationIndex() != 4 {
		t.Errorf("remove: %v, %v", r, err)
	}
	if r, err := alice.Raft.Snapshot(ctx, &fairleadv1.SnapshotRequest{}); err != nil || r.GetIndex() != 42 {
		t.Errorf("snapshot: %v, %v", r, err)
	}
	if r, err := alice.Raft.Finalize(ctx, &fairleadv1.FinalizeRequest{Force: true}); err != nil || r.GetFormat() != 2 {
		t.Errorf("finalize: %v, %v", r, err)
	}
	if r, err := alice.Raft.Transfer(ctx, &fairleadv1.TransferRequest{Server: "m2"}); err != nil || r.GetLeader() != "m2" {
		t.Errorf("transfer: %v, %v", r, err)
	}
	if _, err := alice.Raft.Snapshot(ctx, &fairleadv1.SnapshotRequest{}); err != nil {
		t.Errorf("snapshot at the new leader: %v", err)
	}
	want := []string{
		"m1: add non-voter m5-x for operator/alice (certificate N, by way of m3) (more)",
		"m1: add voter m4-x for operator/alice (certificate N, by way of m3) ()",
		"m1: demote m4-x for operator/alice (certificate N, by way of m3) ()",
		"m1: remove m4-x for operator/alice (certificate N, by way of m3) (old), force",
		"m1: snapshot for operator/alice (certificate N, by way of m3) ()",
		"m1: finalize for operator/alice (certificate N, by way of m3) (), force",
		"m1: transfer to m2-x for operator/alice (certificate N, by way of m3) ()",
		"m2: snapshot for operator/alice (certificate N, by way of m3) ()",
	}
	if got := w.group.history(); !slices.Equal(got, want) {
		t.Fatalf("done:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestChangesThatWouldLoseTheQuorumNeedForce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group.edit(func() { w.group.members[2].Healthy = false })
	alice := w.client(pki.Operator, "alice", "m2")
	_, err := alice.Raft.Remove(w.ctx(), &fairleadv1.RemoveRequest{Server: "m2"})
	var refusal *admin.Refusal
	if !errors.As(err, &refusal) || refusal.Code != admin.WouldLoseQuorum || !refusal.ForceOverrides || len(w.group.history()) != 0 {
		t.Fatalf("without force: %v; done %q", err, w.group.history())
	}
	r, err := alice.Raft.Remove(w.ctx(), &fairleadv1.RemoveRequest{Server: "m2", Force: true})
	if err != nil || !strings.Contains(r.GetWarning(), "forced") || len(w.group.history()) != 1 {
		t.Fatalf("with force: %v, %v", r, err)
	}
}

func TestAddRefusesWhatCannotBeAMember(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	alice := w.client(pki.Operator, "alice", "m1")
	for _, req := range []*fairleadv1.AddRequest{
		{ServerId: "m4-x", Address: "192.0.2.4:7444"},
		{Name: "m4", Address: "192.0.2.4:7444"},
		{Name: "m4", ServerId: "m4-x", Address: "192.0.2.4"},
	} {
		if _, err := alice.Raft.Add(w.ctx(), req); !errors.Is(err, admin.Invalid) || len(w.group.history()) != 0 {
			t.Errorf("%v: %v", req, err)
		}
	}
}

func TestNobodyLeads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group.edit(func() { w.group.leader = "" })
	alice := w.client(pki.Operator, "alice", "m2")
	_, err := alice.Raft.Snapshot(w.ctx(), &fairleadv1.SnapshotRequest{})
	if !errors.Is(err, admin.NotLeader) || !strings.Contains(err.Error(), "nobody leads") || !strings.Contains(err.Error(), "raft status") {
		t.Fatalf("error %v", err)
	}
}

// Who asks a follower is told whether the leader may have got the request.
func TestUnansweredRequestsAreSaidToBeSure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	alice := w.client(pki.Operator, "alice", "m2")
	arrived, release := make(chan struct{}), make(chan struct{})
	w.member("m1").view.onSnapshot = func() { close(arrived); <-release }
	result := make(chan error, 1)
	go func() {
		_, err := alice.Raft.Snapshot(w.ctx(), &fairleadv1.SnapshotRequest{})
		result <- err
	}()
	<-arrived
	w.member("m1").cut()
	err := <-result
	close(release)
	if !errors.Is(err, admin.UnknownOutcome) || !admin.Unsure(err) || !strings.Contains(err.Error(), "it may be done") {
		t.Errorf("the leader fell silent: %v", err)
	}
	w.member("m1").stop()
	_, err = alice.Raft.Snapshot(w.ctx(), &fairleadv1.SnapshotRequest{})
	if !errors.Is(err, admin.Unreachable) || admin.Unsure(err) {
		t.Errorf("the leader is gone: %v", err)
	}
	w.member("m2").stop()
	_, err = alice.Raft.Snapshot(w.ctx(), &fairleadv1.SnapshotRequest{})
	if !errors.Is(err, admin.Unreachable) || admin.Unsure(err) {
		t.Errorf("nobody is there: %v", err)
	}
}

// Two members that take each other for the leader do not play a request back and forth.
func TestRequestsAreHandedOnOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.group.edit(func() {
		w.member("m2").view.believes = "m3-x"
		w.member("m3").view.believes = "m2-x"
	})
	alice := w.client(pki.Operator, "alice", "m2")
	_, err := alice.Raft.Snapshot(w.ctx(), &fairleadv1.SnapshotRequest{})
	if !errors.Is(err, admin.NotLeader) || !strings.Contains(err.Error(), "m2 took m3 for the leader, which it is not") {
		t.Fatalf("error %v", err)
	}
	for _, name := range []string{"m2", "m3"} {
		if got := w.member(name).counter(t, "fairlead_api_requests_total", "/fairlead.v1.RaftService/Snapshot"); got != 1 {
			t.Errorf("%s got the request %v times", name, got)
		}
	}
}

func backup(w *world, client *admin.Client) ([]byte, *fairleadv1.BackupSummary, error) {
	stream, err := client.Raft.Backup(w.ctx(), &fairleadv1.BackupRequest{})
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = stream.Close() }()
	var data []byte
	var summary *fairleadv1.BackupSummary
	for stream.Receive() {
		data = append(data, stream.Msg().GetData()...)
		if s := stream.Msg().GetSummary(); s != nil {
			summary = s
		}
	}
	return data, summary, stream.Err()
}

// restore sends data in pieces under a header that may tell lies.
func restore(w *world, client *admin.Client, header *fairleadv1.RestoreHeader, data []byte, piece int) (*fairleadv1.RestoreResponse, error) {
	stream, err := client.Raft.Restore(w.ctx())
	if err != nil {
		return nil, err
	}
	err = stream.Send(&fairleadv1.RestoreRequest{Part: &fairleadv1.RestoreRequest_Header{Header: header}})
	for part := range slices.Chunk(data, piece) {
		if err == nil {
			err = stream.Send(&fairleadv1.RestoreRequest{Part: &fairleadv1.RestoreRequest_Data{Data: part}})
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return stream.CloseAndReceive()
}

func headerOf(data []byte) *fairleadv1.RestoreHeader {
	sum := sha256.Sum256(data)
	return &fairleadv1.RestoreHeader{SizeBytes: uint64(len(data)), Sha256: sum[:], Reason: "practice"}
}

// What Backup gave, through whichever member, Restore takes, through whichever member and in whatever pieces.
func TestPropertyRestoreTakesWhatBackupGave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clients := []*admin.Client{w.client(pki.Operator, "alice", "m1"), w.client(pki.Operator, "alice", "m2")}
	testkit.Check(t, func(r *rapid.T) {
		size := rapid.SampledFrom([]int{0, 1, 256<<10 - 1, 256 << 10, 256<<10 + 1, 700_000}).Draw(r, "size")
		record, random := make([]byte, size), rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "bytes"), 0))
		for i := range record {
			record[i] = byte(random.Uint32())
		}
		w.group.edit(func() { w.group.record = record })
		from, to := rapid.SampledFrom(clients).Draw(r, "from"), rapid.SampledFrom(clients).Draw(r, "to")
		data, summary, err := backup(w, from)
		if err != nil || !bytes.Equal(data, record) || summary.GetSizeBytes() != uint64(size) || summary.GetRevision().GetIndex() != 42 {
			r.Fatalf("%d of %d bytes backed up, %v, %v", len(data), size, summary, err)
		}
		w.group.edit(func() { w.group.record = nil })
		header := &fairleadv1.RestoreHeader{SizeBytes: summary.GetSizeBytes(), Sha256: summary.GetSha256()}
		restored, err := restore(w, to, header, data, rapid.SampledFrom([]int{100_000, 1 << 20}).Draw(r, "piece"))
		if err != nil || restored.GetRevision().GetEpoch() != 2 {
			r.Fatalf("restore: %v, %v", restored, err)
		}
		w.group.edit(func() {
			if !bytes.Equal(w.group.record, record) {
				r.Fatal("restored something else")
			}
		})
	})
	for _, entry := range w.group.history() {
		if !strings.HasPrefix(entry, "m1: ") || !strings.Contains(entry, "operator/alice") {
			t.Fatalf("done: %s", entry)
		}
	}
}

func TestRestoreChangesNothingUnlessAllOfItCame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := bytes.Repeat([]byte("record "), 50_000)
	for name, test := range map[string]struct {
		header *fairleadv1.RestoreHeader
		data   []byte
		says   string
	}{
		"cut-short":  {headerOf(data), data[:200_000], "200000 of 350000 bytes came"},
		"too-long":   {headerOf(data[:200_000]), data, "more than the announced 200000 bytes"},
		"altered":    {headerOf(data), append([]byte("R"), data[1:]...), "SHA-256"},
		"no-digest":  {&fairleadv1.RestoreHeader{SizeBytes: 350_000}, data, "no header"},
		"no-header":  {nil, data, "no header"},
		"only-a-lie": {headerOf(data), nil, "0 of 350000 bytes"},
	} {
		for _, member := range []string{"m1", "m2"} {
			t.Run(name+"-at-"+member, func(t *testing.T) {
				_, err := restore(w, w.client(pki.Operator, "alice", member), test.header, test.data, 100_000)
				if !errors.Is(err, admin.Invalid) || !strings.Contains(err.Error(), test.says) || len(w.group.history()) != 0 {
					t.Fatalf("%v; done %q", err, w.group.history())
				}
			})
		}
	}
}

func TestRestoreShowsABoundedDifference(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	header := headerOf([]byte("x"))
	header.DryRun = true
	r, err := restore(w, w.client(pki.Operator, "alice", "m2"), header, []byte("x"), 10)
	if err != nil || len(r.GetDifferences()) != admin.MaxDifferences || r.GetMoreDifferences() != 7 || len(w.group.history()) != 0 {
		t.Fatalf("%d differences and %d more, %v", len(r.GetDifferences()), r.GetMoreDifferences(), err)
	}
}
