// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/agents"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cmd/internal/machine"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// captured is a member under somebody else's control: it has a certificate and a record of its own, in which nobody was revoked.
type captured struct {
	service *agents.Service
	api     *grouptest.API
}

func (w *world) capture(t *testing.T, name string) *captured {
	t.Helper()
	own := grouptest.NewGroup(t)
	own.Apply(t, &fsm.PutNode{ID: "n1"})
	service, err := agents.New(agents.Options{
		Member: name, Record: own, Proposer: own, Contact: own.Contact, Barrier: own.Barrier, Log: quiet,
		Tuning: agents.Tuning{Look: 5 * time.Millisecond, Behind: 200 * time.Millisecond, Alone: time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- service.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("captured member: %v", err)
		}
	})
	return &captured{service, w.certified.Serve(t, name, func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewAgentServiceHandler(service, o...)
	})}
}

// heard is when it last heard of the node.
func (c *captured) heard() (at time.Time) {
	beats, _ := c.service.Beats()
	for _, b := range beats {
		at = b.At
	}
	return at
}

// An agent that follows a member which is revoked hears of that from another one: it leaves it at once, and keeps away from it also when it
// starts anew where nobody else answers, until an operator takes that back.
func TestAgentsKeepAwayFromRevokedMembers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	evil := w.capture(t, "m2")
	honest := w.api.Address
	w.api.Stop() // so that the agent has nobody else to follow
	c := w.config(t)
	c.Members = []string{evil.api.Address, honest}
	p := start(t, c)
	testkit.Until(t, "the captured member is followed", func() bool { return p.Status().Member == evil.api.Address })

	for i := range 20 { // the group goes on without the captured member, whose record notes at most who came to it
		w.group.Apply(t, &fsm.PutNode{ID: fsm.NodeID(fmt.Sprintf("other-%d", i))})
	}
	w.group.Apply(t, &fsm.Revoke{Of: "member", Name: "m2"})
	w.api = w.serve(honest, "m1")
	testkit.Until(t, "the other member is followed", func() bool { return p.Status().Member == honest })
	since := evil.heard()
	// The rounds in which it would have come back, had it wanted to: heartbeats to m1 go on all along.
	for range 5 {
		before := w.heard()
		testkit.Until(t, "another heartbeat", func() bool { return w.heard().After(before) })
	}
	if evil.heard().After(since) {
		t.Error("the revoked member hears of the node")
	}
	if info, err := os.Stat(filepath.Join(c.StateDir, "revoked.state")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kept: %v, %v", info, err)
	}

	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	w.api.Stop()
	log := &testkit.Log{}
	p = startLogging(t, c, slog.New(slog.NewTextHandler(log, nil)))
	testkit.Until(t, "the revoked member is refused", func() bool {
		return log.Count("certificates of member/m2 were revoked") > 0
	})
	if evil.heard().After(since) || p.Status().Member != "" {
		t.Errorf("after a restart it has to do with %q", p.Status().Member)
	}

	w.group.Apply(t, &fsm.EndRevocation{Of: "member", Name: "m2"})
	w.api = w.serve(honest, "m1")
	testkit.Until(t, "the member is heard again", func() bool { return evil.heard().After(since) })
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if err := node.Cleanup(t.Context(), c, machine.Agent(), quiet); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(c.StateDir); err == nil && slices.ContainsFunc(left, func(e os.DirEntry) bool { return e.Name() == "revoked.state" }) {
		t.Error("cleaning up leaves the list")
	}
}

// heard is when m1 last heard of the node.
func (w *world) heard() time.Time { return (&captured{service: w.service}).heard() }
