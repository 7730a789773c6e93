// SPDX-License-Identifier: Apache-2.0

package grouptest

import (
	"context"
	"errors"
	"io"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
)

// Beat sends one heartbeat, on a stream of its own, and gives the answer.
func Beat(ctx context.Context, client fairleadv1connect.AgentServiceClient, beat *fairleadv1.HeartbeatRequest) (*fairleadv1.HeartbeatResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := client.Heartbeat(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.CloseRequest() }() // or net/http waits for more
	// io.EOF means that the stream has ended, and that why is the answer.
	if err := stream.Send(beat); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return stream.Receive()
}
