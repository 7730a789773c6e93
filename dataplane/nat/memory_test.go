// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"context"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/api/desired/desiredtest"
	"fairlead.io/fairlead/internal/testkit"
)

// toldOf is a State that has these Services alone.
func toldOf(t desiredtest.T, services []*desired.Service) desired.State {
	t.Helper()
	var m desiredtest.Told
	for _, s := range services {
		m.Services(*s)
	}
	return m.State(t, nil)
}

// inUse is the memory of what is still needed.
func inUse() int64 {
	var m runtime.MemStats
	for range 2 { // what the first one finds weak, the second one collects
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// What is held of a Service beside what the node was told is a few words, however many endpoints it has.
func TestWhatIsHeldDoesNotGrowWithEndpoints(t *testing.T) {
	const many, most = 5000, 400 // Services, and bytes for each
	for _, endpoints := range []int{1, 40} {
		state := toldOf(t, manyServices(many, endpoints))
		n, err := Over(Options{Node: "other"}, &forgetful{})
		if err != nil {
			t.Fatal(err)
		}
		before := inUse()
		if failed, err := n.Apply(t.Context(), state); err != nil || len(failed) > 0 {
			t.Fatal(err, failed)
		}
		if held := (inUse() - before) / many; held > most {
			t.Errorf("%d bytes are held of a Service with %d endpoints, want %d at most", held, endpoints, most)
		} else {
			t.Logf("%d endpoints: %d bytes", endpoints, held)
		}
		runtime.KeepAlive(n)
		runtime.KeepAlive(state)
	}
}

// forgetful is a kernel that takes everything and keeps nothing.
type forgetful struct{ strict }

func (*forgetful) Replace(context.Context, Ruleset, bool) error { return nil }

// What a node was told is planned as Services are that somebody holds, and one that was not told anew is not planned anew.
func TestPropertyWhatWasToldIsPlannedAsWhatIsHeld(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		config := genConfig().Draw(t, "config")
		services := genServices().Draw(t, "services")
		planner := NewPlanner(config)
		state := toldOf(t, services)
		planner.step(telling(state.Told()), newDelta())
		sameRuleset(t, planner.Ruleset(), planOf(config, services).Ruleset())
		gone, fresh := planner.differing(telling(state.Told()))
		if len(gone)+len(fresh) > 0 {
			t.Fatalf("%d Services went and %d came", len(gone), len(fresh))
		}
	})
}

func BenchmarkOneServiceOf50000(b *testing.B) {
	services := manyServices(50_000, 4)
	planner := NewPlanner(Config{Node: "n1"})
	d := newDelta()
	d.blind = true
	planner.step(holding(services), d)
	b.ResetTimer()
	for i := range b.N {
		changed := *services[i%len(services)]
		changed.Endpoints = changed.Endpoints[:1+i%3]
		services[i%len(services)] = &changed
		planner.Step(services)
		planner.Problems()
	}
}
