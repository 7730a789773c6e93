// SPDX-License-Identifier: Apache-2.0

package records_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/pki"
	service "fairlead.io/fairlead/cluster/records"
	"fairlead.io/fairlead/fsm"
)

func watch(t *testing.T, g *grouptest.Group, kinds ...string) *connect.ServerStreamForClient[fairleadv1.WatchResponse] {
	t.Helper()
	client := serve(t, service.Options{Member: "m1", Record: g, Leader: g, Settle: 20 * time.Millisecond})(pki.Viewer)
	stream, err := client.Record.Watch(t.Context(), &fairleadv1.WatchRequest{Kinds: kinds})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stream.Close() })
	return stream
}

// The first word says where things stand; after that, which kinds changed.
func TestWatchTellsWhichKindsChanged(t *testing.T) {
	t.Parallel()
	g := grouptest.NewGroup(t)
	g.Apply(t, &fsm.PutService{Service: fsm.Service{ID: "ns/s"}})
	stream := watch(t, g, "svc", "pools", "nodes")
	next := func(want ...string) {
		t.Helper()
		if !stream.Receive() {
			t.Fatal(stream.Err())
		}
		m := stream.Msg()
		if !slices.Equal(m.GetKinds(), want) || fsm.Index(m.GetRevision().GetIndex()) != g.Read().Applied() {
			t.Errorf("kinds %v at %v, want %v at %s", m.GetKinds(), m.GetRevision(), want, g.Read().Revision())
		}
	}
	next("services", "pools", "nodes")
	g.Apply(t, &fsm.PutRegister{ID: "p"}) // nobody asked
	g.Apply(t, &fsm.PutPool{Pool: fsm.Pool{Name: "p", Ranges: []fsm.Range{{From: addr("192.0.2.0"), To: addr("192.0.2.9")}}}})
	next("pools")
	// An address shows in the service and in its pool's count.
	g.Apply(t, &fsm.Allocate{Address: addr("192.0.2.1"), Service: "ns/s", Pool: "p"})
	next("services", "pools")
	g.Apply(t, &fsm.PutNode{ID: "n1"}) // the state of a hop hangs on its node
	next("services", "nodes")
}

// Who is slow hears of many changes at once.
func TestWatchCoalesces(t *testing.T) {
	t.Parallel()
	g := grouptest.NewGroup(t)
	stream := watch(t, g)
	if !stream.Receive() || !slices.Equal(stream.Msg().GetKinds(), records.Names()) {
		t.Fatalf("%v, %v", stream.Msg(), stream.Err())
	}
	const changes = 500
	go func() {
		for i := range changes {
			_, _ = g.Commit(fsm.Proposal{Command: &fsm.PutNode{ID: fsm.NodeID(fmt.Sprint(i))}}) // what failed is missing below
		}
	}()
	messages := 0
	for stream.Receive() {
		messages++
		if fsm.Index(stream.Msg().GetRevision().GetIndex()) == changes+1 {
			break
		}
	}
	if stream.Err() != nil || messages > changes/4 {
		t.Errorf("%d messages for %d changes, %v", messages, changes, stream.Err())
	}
}

func TestWatchRefusesUnknownKinds(t *testing.T) {
	t.Parallel()
	stream := watch(t, grouptest.NewGroup(t), "routes", "cats")
	if stream.Receive() || stream.Err() == nil {
		t.Errorf("%v, %v", stream.Msg(), stream.Err())
	}
}
