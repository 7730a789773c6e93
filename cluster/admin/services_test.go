// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"context"

	"connectrpc.com/connect"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
)

// echoAgents answers agents; Sync stays open until the caller or the server ends it.
type echoAgents struct {
	fairleadv1connect.UnimplementedAgentServiceHandler
}

func (*echoAgents) Sync(ctx context.Context, req *fairleadv1.SyncRequest, stream *connect.ServerStream[fairleadv1.SyncResponse]) error {
	if err := stream.Send(&fairleadv1.SyncResponse{Digest: []byte("for " + req.GetNode())}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func (*echoAgents) Heartbeat(_ context.Context, stream *connect.BidiStream[fairleadv1.HeartbeatRequest, fairleadv1.HeartbeatResponse]) error {
	for {
		if _, err := stream.Receive(); err != nil {
			return err
		}
		if err := stream.Send(&fairleadv1.HeartbeatResponse{InQuorum: true}); err != nil {
			return err
		}
	}
}

// panickingRecord has a fault.
type panickingRecord struct {
	fairleadv1connect.UnimplementedRecordServiceHandler
}

func (*panickingRecord) Get(context.Context, *fairleadv1.GetRequest) (*fairleadv1.GetResponse, error) {
	panic(errBoom)
}

// Propose answers with what came.
func (*panickingRecord) Propose(_ context.Context, req *fairleadv1.ProposeRequest) (*fairleadv1.ProposeResponse, error) {
	return &fairleadv1.ProposeResponse{Outcomes: req.GetProposals()}, nil
}
