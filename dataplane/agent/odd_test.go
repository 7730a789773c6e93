// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// odd is a member that answers what a test wants.
type odd struct {
	fairleadv1connect.UnimplementedAgentServiceHandler
	sync        func(*fairleadv1.SyncRequest) []*fairleadv1.SyncResponse
	acknowledge func(ctx context.Context) error // optional
	alone       atomic.Bool                     // it is out of touch with a quorum, and serves nobody anew
	mute        bool                            // it answers nothing
	beaten      atomic.Int64                    // heartbeats that it answered

	mu       sync.Mutex
	requests []*fairleadv1.SyncRequest
}

func (o *odd) Sync(ctx context.Context, req *fairleadv1.SyncRequest, stream *connect.ServerStream[fairleadv1.SyncResponse]) error {
	o.mu.Lock()
	o.requests = append(o.requests, req)
	o.mu.Unlock()
	if o.mute {
		<-ctx.Done()
		return ctx.Err()
	}
	if o.alone.Load() {
		return connect.NewError(connect.CodeUnavailable, errors.New("out of touch with a quorum"))
	}
	for _, m := range o.sync(req) {
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func (o *odd) Heartbeat(_ context.Context, stream *connect.BidiStream[fairleadv1.HeartbeatRequest, fairleadv1.HeartbeatResponse]) error {
	for {
		if _, err := stream.Receive(); err != nil {
			return err
		}
		if o.mute {
			continue
		}
		if err := stream.Send(&fairleadv1.HeartbeatResponse{InQuorum: !o.alone.Load()}); err != nil {
			return err
		}
		o.beaten.Add(1)
	}
}

func (o *odd) Acknowledge(ctx context.Context, _ *fairleadv1.AcknowledgeRequest) (*fairleadv1.AcknowledgeResponse, error) {
	if o.acknowledge != nil {
		if err := o.acknowledge(ctx); err != nil {
			return nil, err
		}
	}
	return &fairleadv1.AcknowledgeResponse{}, nil
}

// asked counts the streams that agents began.
func (o *odd) asked() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.requests)
}

func (o *odd) serve(t *testing.T, w *grouptest.World) string {
	t.Helper()
	return w.Serve(t, "odd", func(opts ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewAgentServiceHandler(o, opts...)
	}).Address
}

// step makes a message that puts addresses on top of what there is, with the digest of all of them.
func step(t *testing.T, group string, revision fsm.Revision, full bool, all, put []string) *fairleadv1.SyncResponse {
	t.Helper()
	value, err := desired.AddressValue(nil)
	if err != nil {
		t.Fatal(err)
	}
	var sum desired.Digest
	for _, a := range all {
		sum = sum.Plus(desired.AddressKey(netip.MustParseAddr(a)), value)
	}
	var pieces desired.Pieces
	for _, a := range put {
		if err := pieces.Put(desired.AddressKey(netip.MustParseAddr(a)), value); err != nil {
			t.Fatal(err)
		}
	}
	changes, err := pieces.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return &fairleadv1.SyncResponse{
		Revision: desired.RevisionMessage(revision), Full: full, Changes: changes, Digest: sum[:],
		Node: desired.NodeMessage(group, nil, nil),
	}
}

// A delta that does not fit is not carried out; everything is asked for instead.
func TestDeltaThatDoesNotFitIsAskedForAnew(t *testing.T) {
	t.Parallel()
	w := grouptest.NewWorld(t)
	all := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}
	o := &odd{}
	o.sync = func(req *fairleadv1.SyncRequest) []*fairleadv1.SyncResponse {
		if len(req.GetDigest()) > 0 || req.GetHave() != nil {
			return []*fairleadv1.SyncResponse{step(t, "g1", fsm.Revision{Epoch: 1, Index: 30}, true, all, all)}
		}
		return []*fairleadv1.SyncResponse{
			step(t, "g1", fsm.Revision{Epoch: 1, Index: 10}, true, all[:1], all[:1]),
			step(t, "g1", fsm.Revision{Epoch: 1, Index: 20}, false, all, all[1:2]), // one is missing
		}
	}
	n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{o.serve(t, w)}})
	testkit.Until(t, "everything is there", n.has("192.0.2.1/32", "192.0.2.2/32", "192.0.2.3/32"))
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.requests) != 2 || len(o.requests[1].GetDigest()) != 0 || o.requests[1].GetHave().GetIndex() != 10 {
		t.Errorf("requests %v", o.requests)
	}
}

// Members of another group, or such as run back, are not believed; the node keeps what it has.
func TestAgentDoesNotBelieveEveryMember(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]func(t *testing.T) *fairleadv1.SyncResponse{
		"runs-back": func(t *testing.T) *fairleadv1.SyncResponse {
			return step(t, "g1", fsm.Revision{Epoch: 1, Index: 9}, true, nil, nil)
		},
		"other-group": func(t *testing.T) *fairleadv1.SyncResponse {
			return step(t, "g2", fsm.Revision{Epoch: 9, Index: 9}, true, nil, nil)
		},
		"no-revision": func(t *testing.T) *fairleadv1.SyncResponse { return step(t, "g1", fsm.Revision{}, true, nil, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := grouptest.NewWorld(t)
			one := []string{"192.0.2.1"}
			lies := &odd{sync: func(*fairleadv1.SyncRequest) []*fairleadv1.SyncResponse { return []*fairleadv1.SyncResponse{lie(t)} }}
			truth := &odd{sync: func(*fairleadv1.SyncRequest) []*fairleadv1.SyncResponse {
				return []*fairleadv1.SyncResponse{step(t, "g1", fsm.Revision{Epoch: 1, Index: 10}, true, one, one)}
			}}
			n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{truth.serve(t, w)}})
			testkit.Until(t, "the truth is there", n.has("192.0.2.1/32"))
			n.stop()
			n = startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{lies.serve(t, w)}, store: n.store})
			testkit.Until(t, "the liar was asked again and again", func() bool {
				lies.mu.Lock()
				defer lies.mu.Unlock()
				return len(lies.requests) > 3
			})
			if !n.has("192.0.2.1/32")() || n.Status().Member != "" || n.Status().Told.Index != 10 {
				t.Errorf("%+v, %v", n.Status(), n.kernel.Told().Addresses())
			}
		})
	}
}

// A member that accepts the stream and says nothing is not waited for.
func TestAgentDoesNotWaitForOneWhoSaysNothing(t *testing.T) {
	t.Parallel()
	w := grouptest.NewWorld(t)
	mute := &odd{sync: func(*fairleadv1.SyncRequest) []*fairleadv1.SyncResponse { return nil }}
	startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{mute.serve(t, w)}, tuning: func(t *agent.Tuning) {
		t.FirstStep = 50 * time.Millisecond
	}})
	testkit.Until(t, "another attempt is made", func() bool {
		mute.mu.Lock()
		defer mute.mu.Unlock()
		return len(mute.requests) > 1
	})
}

func TestAgentSaysWhatItLacks(t *testing.T) {
	whole := agent.Options{Node: "n1", Boot: "b1", Seeds: []string{"192.0.2.1:7443"}, Log: slog.New(slog.DiscardHandler)}
	for want, spoil := range map[string]func(*agent.Options){
		"node name": func(o *agent.Options) { o.Node = "" },
		"boot id":   func(o *agent.Options) { o.Boot = "" },
		"member":    func(o *agent.Options) { o.Seeds = nil },
	} {
		o := whole
		spoil(&o)
		if _, err := agent.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
