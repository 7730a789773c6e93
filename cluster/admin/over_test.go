// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/internal/testkit"
)

// carrier takes requests to a handler within the process, as a caller whom it vouches for.
type carrier struct {
	to     http.Handler
	caller *admin.Caller // nil: nobody
	cut    error
	idle   bool
}

func (c *carrier) Do(r *http.Request) (*http.Response, error) {
	if c.cut != nil {
		return nil, c.cut
	}
	ctx := r.Context()
	if c.caller != nil {
		ctx = admin.WithCaller(ctx, *c.caller)
	}
	w := httptest.NewRecorder() // knows no deadlines
	served := httptest.NewRequest(r.Method, r.URL.String(), r.Body).WithContext(ctx)
	served.Header = r.Header
	c.to.ServeHTTP(w, served)
	return w.Result(), nil
}

func (c *carrier) CloseIdleConnections() { c.idle = true }

func carried(t *testing.T, log *testkit.Log) (*admin.Server, *memberView) {
	t.Helper()
	server, err := admin.NewServer(admin.ServerOptions{Log: slog.New(slog.NewTextHandler(log, nil)), Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	view := &memberView{group: &sharedGroup{leader: "m1-x", members: []admin.MemberStatus{{Member: admin.Member{ID: "m1-x", Name: "m1", Voter: true}}}}, id: "m1-x"}
	server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewRaftServiceHandler(admin.NewRaftService(view, nil, slog.New(slog.DiscardHandler)), o...)
	})
	server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewAgentServiceHandler(&echoAgents{}, o...)
	})
	return server, view
}

func callerOf(role pki.Role, name string) *admin.Caller {
	return &admin.Caller{Identity: pki.Identity{Role: role, Name: name}, Membership: pki.Membership{Group: "g1", Epoch: 1}}
}

func TestHandlerHoldsCallersThatSomebodyElseEstablishedToTheTableOfRoles(t *testing.T) {
	t.Parallel()
	log := &testkit.Log{}
	server, _ := carried(t, log)
	for caller, allowed := range map[*admin.Caller]bool{
		callerOf(pki.Operator, "alice"): true, callerOf(pki.Member, "m2"): true, callerOf(pki.Agent, "n1"): false, nil: false,
	} {
		client := admin.NewClientOver(&carrier{to: server.Handler(), caller: caller}, "m1:7443")
		_, err := client.Raft.Peers(t.Context(), &fairleadv1.PeersRequest{})
		var refusal *admin.Refusal
		if refused := errors.As(err, &refusal) && refusal.Code == admin.Forbidden; refused == allowed || allowed && err != nil {
			t.Errorf("caller %v: %v", caller, err)
		}
	}
	if strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("a request without a connection of its own has no deadline to set:\n%s", log)
	}
}

func TestClientOverADoerTellsWhetherARequestGotThereAndGivesUpIdleConnections(t *testing.T) {
	t.Parallel()
	way := &carrier{cut: fmt.Errorf("carry: %w", admin.Unreachable)}
	peers := admin.NewPeersOver(func(address string) *admin.Client { return admin.NewClientOver(way, address) })
	client := peers.Client("m1:7443")
	if client != peers.Client("m1:7443") || client.Server() != "m1:7443" {
		t.Errorf("another client, or of %q", client.Server())
	}
	_, err := client.Raft.Peers(t.Context(), &fairleadv1.PeersRequest{})
	if !errors.Is(err, admin.Unreachable) || admin.Unsure(err) {
		t.Errorf("the request surely was not carried, but: %v", err)
	}
	way.cut = errors.New("cut in the middle")
	if _, err = client.Raft.Peers(t.Context(), &fairleadv1.PeersRequest{}); !admin.Unsure(err) {
		t.Errorf("nobody knows whether the request got there, but: %v", err)
	}
	if peers.Close(); !way.idle {
		t.Error("idle connections are kept")
	}
}

func TestStopEndsStreamsOfHandler(t *testing.T) {
	t.Parallel()
	server, _ := carried(t, &testkit.Log{})
	server.Stop()
	client := admin.NewClientOver(&carrier{to: server.Handler(), caller: callerOf(pki.Agent, "n1")}, "m1:7443")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stream, err := client.Agent.Sync(ctx, &fairleadv1.SyncRequest{Node: "n1"})
	if err == nil {
		for stream.Receive() {
		}
		err = stream.Err()
	}
	var refusal *admin.Refusal
	if !errors.As(err, &refusal) || refusal.Code != admin.Stopped {
		t.Errorf("got %v", err)
	}
}
