// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

func samplesOf(t interface{ Fatal(...any) }, h prometheus.Histogram) (n int, sum float64) {
	var m dto.Metric
	if err := h.Write(&m); err != nil {
		t.Fatal(err)
	}
	return int(m.GetHistogram().GetSampleCount()), m.GetHistogram().GetSampleSum()
}

// K52: what is measured is from the cause that the slice names to the commit, and to each node that carried it out.
// Rule: K52.
func TestLagFromTheChangeOfAnEndpoint(t *testing.T) {
	w := newWatchedGroup(t)
	p := w.metrics.programming
	mark := func(node fsm.NodeID, index fsm.Index) {
		w.Acknowledged(fsm.AppliedMark{Node: node, Boot: "1", Upto: fsm.Revision{Epoch: w.group.state.Read().Revision().Epoch, Index: index}})
	}
	before := w.group.state.Read().Revision().Index
	mark("n1", before)
	mark("n2", before)
	if n, _ := samplesOf(t, p.commits); n != 0 {
		t.Fatalf("%d changes were measured that no slice dates", n)
	}
	change := func(version uint64, ready bool, changed time.Time) world.World {
		return watch(version, func(v *world.World) {
			v.EndpointSlices[0].Version, v.EndpointSlices[0].ChangedUnixMilli = version, changed.UnixMilli()
			v.EndpointSlices[0].Endpoints[0].Ready, v.EndpointSlices[0].Endpoints[0].Serving = ready, ready
		})
	}
	if !w.show(change(101, false, w.clock.Wall().Add(-3*time.Second))) {
		t.Fatal("everything was planned for one endpoint")
	}
	if n, sum := samplesOf(t, p.commits); n != 1 || sum != 3 {
		t.Fatalf("%d changes were committed after %v s, want one after 3 s", n, sum)
	}
	w.clock.now += 2 * time.Second
	mark("n1", w.group.state.Read().Revision().Index)
	mark("n1", w.group.state.Read().Revision().Index+1) // says it again, and more
	mark("n2", before)                                  // has not come so far
	mark("n3", w.group.state.Read().Revision().Index)   // since when it has is unknown
	if n, sum := samplesOf(t, p.nodes); n != 1 || sum != 5 {
		t.Fatalf("%d nodes carried it out after %v s, want one after 5 s", n, sum)
	}
	w.clock.now += time.Minute
	w.group.entries = nil
	w.show(watch(102, func(v *world.World) { // the Service changes, the slice does not
		*v = change(101, false, w.clock.Wall().Add(-time.Hour))
		v.Services[1].Version, v.Services[1].Extra = 102, &world.Extra{Choosing: &world.Choosing{Scheduler: "rr"}}
	}))
	if !slices.ContainsFunc(slices.Concat(w.group.entries...), func(p fsm.Proposal) bool { _, is := p.Command.(*fsm.PutService); return is }) {
		t.Fatal("the Service was not proposed")
	}
	if n, _ := samplesOf(t, p.commits); n != 1 {
		t.Fatalf("%d changes of endpoints were committed, want one", n)
	}
}

// K52: however marks and commits come, each node counts once for each change that it did not have when it was heard of last.
// Rule: K52.
func TestPropertyEachNodeCountsOnceForEachChange(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		p := newProgramming()
		start := time.Unix(1000, 0)
		now, index := start, fsm.Index(1)
		type pair struct {
			at   fsm.Index
			node fsm.NodeID
		}
		committed := map[fsm.Index]time.Time{}
		newest, had := map[fsm.NodeID]fsm.AppliedMark{}, map[pair]bool{}
		want, sum := 0, 0.0
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "seconds")) * time.Second)
			if rapid.Bool().Draw(t, "commits") {
				index++
				cause := now.Add(-time.Duration(rapid.IntRange(-1, 4).Draw(t, "ago")) * time.Second)
				dated := rapid.Bool().Draw(t, "dated")
				if dated {
					p.expect(map[fsm.ServiceID]time.Time{"a/b": cause})
				}
				p.committed(&fsm.PutService{Service: fsm.Service{ID: "a/b"}}, fsm.Revision{Epoch: 1, Index: index}, now)
				if dated && !cause.After(now) {
					committed[index] = cause
				}
				continue
			}
			m := fsm.AppliedMark{
				Node: fsm.NodeID(rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node")), Boot: fsm.BootID(rapid.SampledFrom([]string{"1", "1", "1", "2"}).Draw(t, "boot")),
				Upto: fsm.Revision{Epoch: 1, Index: fsm.Index(rapid.Uint64Range(1, uint64(index)).Draw(t, "upto"))},
			}
			p.acknowledged(m, now)
			last, known := newest[m.Node]
			for at, cause := range committed {
				if at > m.Upto.Index || had[pair{at, m.Node}] {
					continue
				}
				if known && last.Boot == m.Boot {
					want, sum = want+1, sum+now.Sub(cause).Seconds()
				}
				had[pair{at, m.Node}] = true
			}
			if known && last.Boot != m.Boot { // what the boot before had is told anew
				for at := range committed {
					had[pair{at, m.Node}] = at <= m.Upto.Index
				}
			}
			if !known || last.Boot != m.Boot || last.Upto.Before(m.Upto) {
				newest[m.Node] = m
			}
		}
		if n, got := samplesOf(t, p.nodes); n != want || math.Abs(got-sum) > 1e-6 {
			t.Fatalf("%d samples of %v s together, want %d of %v", n, got, want, sum)
		}
		if len(p.changes) > maxChanges {
			t.Fatalf("%d changes are remembered", len(p.changes))
		}
	})
}
