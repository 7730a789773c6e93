// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"sync"

	"connectrpc.com/connect"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/admin"
)

// fakeRaft answers as it was told and remembers what it was asked.
type fakeRaft struct {
	former bool // it is no member any more, and nobody tells it anything
	fairleadv1connect.UnimplementedRaftServiceHandler
	refuse error
	backup []byte
	broken bool // the backup arrives damaged

	mu    sync.Mutex
	asked []string
}

func (f *fakeRaft) took(request any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, fmt.Sprint(request))
	return f.refuse
}

func (f *fakeRaft) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

func pointer[T any](v T) *T { return &v }

func threeMembers() []*fairleadv1.Member {
	member := func(n int) *fairleadv1.Member {
		return &fairleadv1.Member{
			Name: fmt.Sprintf("m%d", n), ServerId: fmt.Sprintf("m%d-k3x9", n), Suffrage: fairleadv1.Suffrage_SUFFRAGE_VOTER,
			Address: fmt.Sprintf("192.0.2.%d:7444", n), ApiAddress: fmt.Sprintf("192.0.2.%d:7443", n),
			State: "Follower", Term: 3, Applied: 120, Commit: 121, LastContactMs: pointer(int64(12)), Format: 1, Version: "v0.1.0",
			Group: "g1", Epoch: 1, Digest: "00ff", DigestAt: 119, Announced: &fairleadv1.Revision{Epoch: 1, Index: 119}, Healthy: true,
		}
	}
	leader, lost := member(1), member(3)
	leader.Leader, leader.State, leader.LastContactMs = true, "Leader", pointer(int64(0))
	lost.Suffrage, lost.Healthy, lost.Unreachable, lost.LastContactMs = fairleadv1.Suffrage_SUFFRAGE_NONVOTER, false, "connection refused\x1b[2J", nil
	lost.Unhealthy, lost.WritingMs = "has waited for a write of its disk for 3s", 3000
	return []*fairleadv1.Member{leader, member(2), lost}
}

func (f *fakeRaft) Status(_ context.Context, req *fairleadv1.StatusRequest) (*fairleadv1.StatusResponse, error) {
	if f.former {
		return &fairleadv1.StatusResponse{Group: "g1", AnsweredBy: "m4-gone", Former: true, Members: threeMembers(), Voters: 2, Quorum: 2, Advice: "ask one of them"}, f.took(req)
	}
	return &fairleadv1.StatusResponse{
		Group: "g1", Epoch: 1, Format: 1, Leader: "m1", Term: 3, ConfigurationIndex: 7, AnsweredBy: "m1-k3x9",
		Members: threeMembers(), Voters: 2, HealthyVoters: 2, Quorum: 2, Advice: "not healthy: m3; start it again or replace it",
	}, f.took(req)
}

func (f *fakeRaft) Peers(_ context.Context, req *fairleadv1.PeersRequest) (*fairleadv1.PeersResponse, error) {
	return &fairleadv1.PeersResponse{Leader: "m1", ConfigurationIndex: 7, Members: threeMembers()}, f.took(req)
}

func (f *fakeRaft) Add(_ context.Context, req *fairleadv1.AddRequest) (*fairleadv1.AddResponse, error) {
	return &fairleadv1.AddResponse{ConfigurationIndex: 8}, f.took(req)
}

func (f *fakeRaft) Remove(_ context.Context, req *fairleadv1.RemoveRequest) (*fairleadv1.RemoveResponse, error) {
	return &fairleadv1.RemoveResponse{ConfigurationIndex: 9, Warning: "if one more is lost, changes wait"}, f.took(req)
}

func (f *fakeRaft) Transfer(_ context.Context, req *fairleadv1.TransferRequest) (*fairleadv1.TransferResponse, error) {
	return &fairleadv1.TransferResponse{Leader: "m2"}, f.took(req)
}

func (f *fakeRaft) Snapshot(_ context.Context, req *fairleadv1.SnapshotRequest) (*fairleadv1.SnapshotResponse, error) {
	return &fairleadv1.SnapshotResponse{Id: "3-120", Index: 120, Term: 3, SizeBytes: 4096}, f.took(req)
}

func (f *fakeRaft) Finalize(_ context.Context, req *fairleadv1.FinalizeRequest) (*fairleadv1.FinalizeResponse, error) {
	return &fairleadv1.FinalizeResponse{Format: 2}, f.took(req)
}

func (f *fakeRaft) Backup(_ context.Context, req *fairleadv1.BackupRequest, stream *connect.ServerStream[fairleadv1.BackupResponse]) error {
	if err := f.took(req); err != nil {
		return err
	}
	for piece := range slices.Chunk(f.backup, 100_000) {
		if err := stream.Send(&fairleadv1.BackupResponse{Part: &fairleadv1.BackupResponse_Data{Data: piece}}); err != nil {
			return err
		}
	}
	sum := sha256.Sum256(f.backup)
	if f.broken {
		sum[0]++
	}
	return stream.Send(&fairleadv1.BackupResponse{Part: &fairleadv1.BackupResponse_Summary{Summary: &fairleadv1.BackupSummary{
		Group: "g1", Revision: &fairleadv1.Revision{Epoch: 1, Index: 120}, Format: 1, SizeBytes: uint64(len(f.backup)), Sha256: sum[:],
	}}})
}

// Restore answers with what it was sent, so that a test sees whether it came whole.
func (f *fakeRaft) Restore(_ context.Context, stream *connect.ClientStream[fairleadv1.RestoreRequest]) (*fairleadv1.RestoreResponse, error) {
	if !stream.Receive() {
		return nil, io.ErrUnexpectedEOF
	}
	header := stream.Msg().GetHeader()
	if f.refuse != nil {
		return nil, f.refuse // before the data is read
	}
	sum, size := sha256.New(), uint64(0)
	for stream.Receive() {
		_, _ = sum.Write(stream.Msg().GetData())
		size += uint64(len(stream.Msg().GetData()))
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	if size != header.GetSizeBytes() || !slices.Equal(sum.Sum(nil), header.GetSha256()) {
		return nil, &admin.Refusal{Code: admin.Invalid, What: "restore", Why: "not whole"}
	}
	return &fairleadv1.RestoreResponse{
		Revision: &fairleadv1.Revision{Epoch: 2, Index: 130}, Differences: []string{"service shop/web: removed"}, MoreDifferences: 3,
	}, f.took(header)
}

// fakeRecord serves documents, a page of two at a time.
type fakeRecord struct {
	fairleadv1connect.UnimplementedRecordServiceHandler
	names     []string
	documents map[string]string
	history   []*fairleadv1.Transition

	mu           sync.Mutex
	filters      []map[string]string
	linearizable []bool
}

func (f *fakeRecord) asked() []map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.filters)
}

func (f *fakeRecord) Get(_ context.Context, req *fairleadv1.GetRequest) (*fairleadv1.GetResponse, error) {
	f.mu.Lock()
	f.filters, f.linearizable = append(f.filters, req.GetFilter()), append(f.linearizable, req.GetLinearizable())
	f.mu.Unlock()
	answer := &fairleadv1.GetResponse{Revision: &fairleadv1.Revision{Epoch: 1, Index: 120}}
	for _, name := range f.names {
		switch {
		case req.GetName() != "" && req.GetName() != name, req.GetAfter() >= name:
		case len(answer.GetDocuments()) == 2:
			answer.More = true
		default:
			answer.Next = name
			answer.Documents = append(answer.Documents, f.documents[name])
		}
	}
	return answer, nil
}

func (f *fakeRecord) Describe(_ context.Context, req *fairleadv1.DescribeRequest) (*fairleadv1.DescribeResponse, error) {
	f.mu.Lock()
	f.linearizable = append(f.linearizable, req.GetLinearizable())
	f.mu.Unlock()
	answer := &fairleadv1.DescribeResponse{Revision: &fairleadv1.Revision{Epoch: 1, Index: 120}, Document: f.documents[req.GetName()]}
	if answer.GetDocument() != "" || req.GetName() == "gone" {
		answer.History = f.history
	}
	return answer, nil
}
