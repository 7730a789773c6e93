// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm/world"
)

// The examples that newcomers start from are whole, free of problems, and show what they promise.
func TestQuickstartIsWhole(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := New(Options{FS: os.DirFS("../../examples/quickstart"), Dir: "quickstart", Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	for range 3 {
		s.scan()
		clock.move(time.Second)
	}
	w := s.World()
	if !w.Complete || len(w.Problems) > 0 {
		t.Fatalf("complete %t, problems %v", w.Complete, w.Problems)
	}
	if len(w.Nodes) != 3 || len(w.Pools) != 1 || len(w.Services) != 4 {
		t.Fatalf("%d nodes, %d pools, %d services", len(w.Nodes), len(w.Pools), len(w.Services))
	}
	for _, n := range w.Nodes {
		for _, f := range []world.Family{world.IPv4, world.IPv6} {
			if _, ok := n.Address(world.InternalIP, f); !ok || !n.Ready {
				t.Errorf("node %s is ready: %t, and has an address of %s: %t", n.Name, n.Ready, f, ok)
			}
		}
	}
	nodesOf := func(service string) map[string]bool {
		nodes := map[string]bool{}
		for _, slice := range w.SlicesOf(world.ID{Namespace: "default", Name: service}) {
			for _, e := range slice.Endpoints {
				node := e.At().Node
				nodes[node] = nodes[node] || e.Ready
			}
		}
		return nodes
	}
	if n := nodesOf("web"); !n["node-a"] || !n["node-b"] || n["node-c"] {
		t.Errorf("web is served by %v, want two nodes", n)
	}
	for _, s := range w.Services {
		if s.Name == "stranger" && (len(s.Extras().Requested) != 1 || w.Pools[0].Ranges[0].Contains(s.Extras().Requested[0])) {
			t.Errorf("stranger asks for %v, which should be in no pool", s.Extras().Requested)
		}
	}
}
