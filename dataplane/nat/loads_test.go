// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"maps"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/flows"
	"fairlead.io/fairlead/internal/testkit"
)

// crumbs is in how many parts ipvs gives out a connection: one that several might have as well is theirs in equal parts.
const crumbs = 50

// ipvs gives connections to whom IPVS would, crumb by crumb (ip_vs_lc.c, ip_vs_wlc.c, ip_vs_sed.c, ip_vs_nq.c), and tells how many crumbs each got.
func ipvs(scheduler string, have, weights []int, next int) []int {
	got, has := make([]int, len(have)), make([]int, len(have))
	for i := range have {
		has[i] = have[i] * crumbs
	}
	worse := func(i, best int) bool {
		a, b, wa, wb := has[i], has[best], weights[i], weights[best]
		switch {
		case scheduler == "lc":
			wa, wb = 1, 1
		case scheduler == "nq" && (a < crumbs || b < crumbs): // an idle one is never passed by
			if a >= crumbs || b >= crumbs {
				return a >= crumbs
			}
			wa, wb = 1, 1
		case scheduler == "sed" || scheduler == "nq":
			a, b = a+crumbs, b+crumbs
		}
		return a*wb >= b*wa
	}
	for range next * crumbs {
		best := 0
		for i := range has {
			if !worse(i, best) {
				best = i
			}
		}
		has[best], got[best] = has[best]+1, got[best]+1
	}
	return got
}

// K39: the shares of connections to come are those that IPVS would give, but for the roundness of slots.
// Rule: K39.
func TestPropertySharesAreThoseOfIPVS(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		scheduler := rapid.SampledFrom([]string{"lc", "wlc", "sed", "nq"}).Draw(t, "scheduler")
		n := rapid.IntRange(2, 20).Draw(t, "endpoints")
		have := rapid.SliceOfN(rapid.SampledFrom([]int{0, 0, 1, 2, 5, 30, 200}), n, n).Draw(t, "have")
		weights := rapid.SliceOfN(rapid.SampledFrom([]int{1, 1, 2, 3, 10}), n, n).Draw(t, "weights")
		if scheduler == "lc" {
			weights = slices.Repeat([]int{1}, n)
		}
		fresh := rapid.SampledFrom([]int{0, 1, 10, 300}).Draw(t, "fresh")
		of, targets := map[flows.Endpoint]flows.Load{}, targets{}
		for i := range n {
			at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 80)
			targets.at, targets.weights = append(targets.at, at), append(targets.weights, uint32(weights[i]))
			of[flows.Endpoint{Protocol: 6, At: at}] = flows.Load{Open: have[i]}
		}
		some := of[flows.Endpoint{Protocol: 6, At: targets.at[0]}]
		some.Fresh = fresh
		of[flows.Endpoint{Protocol: 6, At: targets.at[0]}] = some

		shares := (&load{of: of}).share(lane{protocol: 6, scheduler: scheduler, targets: targets}, ipv4, dialled{}).shares
		slots, next := 0, max(2*fresh, n)
		for _, s := range shares {
			slots += s
		}
		if want := max(64, 4*n); slots != want {
			t.Fatalf("%d slots, want %d", slots, want)
		}
		want := ipvs(scheduler, have, weights, next)
		for i := range n {
			got, wants := float64(shares[i])/float64(slots)*float64(next), float64(want[i])/crumbs
			if math.Abs(got-wants) > float64(n)/crumbs+float64(next)/float64(slots)+1e-6 {
				t.Fatalf("endpoint %d gets %f of the next %d connections, and of IPVS %f: %v of %v", i, got, next, wants, shares, want)
			}
		}
	})
}

// drawLoads is a count of what endpoints of Services have.
func drawLoads(t *rapid.T, services []*desired.Service) map[flows.Endpoint]flows.Load {
	if rapid.IntRange(0, 5).Draw(t, "not counted") == 0 {
		return nil
	}
	out := map[flows.Endpoint]flows.Load{}
	for _, s := range services {
		for _, e := range slices.SortedFunc(maps.Keys(endpointsOf(s)), func(a, b flows.Endpoint) int { return a.At.Compare(b.At) }) {
			open := rapid.SampledFrom([]int{0, 0, 1, 3, 50}).Draw(t, "open")
			out[e] = flows.Load{Open: open, Fresh: rapid.IntRange(0, open).Draw(t, "fresh")}
		}
	}
	return out
}

// K39, K43: a count changes the table exactly where Services go by it, in an order that the kernel takes, and nothing if it is the
// same; whatever it is, packets go to endpoints that are eligible and to nobody else.
// Rule: K39.
func TestPropertyCountsChangeSharesAlone(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		config, services := genConfig().Draw(t, "config"), genServices().Draw(t, "services")
		planner := planOf(config, services)
		have := planner.Ruleset()
		for n := range rapid.IntRange(1, 3).Draw(t, "counts") {
			loads := drawLoads(t, services)
			change := planner.Rebalance(loads, second(n))
			if !slices.ContainsFunc(services, func(s *desired.Service) bool { return counts(s.Scheduler) }) && !change.Empty() {
				t.Fatalf("nobody goes by connections, and the table changes: %+v", change)
			}
			applyTo(t, have, change)
			sameRuleset(t, have, planner.Ruleset())
			if again := planner.Rebalance(maps.Clone(loads), second(n+1)); !again.Empty() {
				t.Fatalf("the same count changes %+v", again)
			}
			if rapid.Bool().Draw(t, "others") {
				services = drawSuccessors(t, services)
				step, _ := planner.Step(services)
				applyTo(t, have, step)
				sameRuleset(t, have, planner.Ruleset())
				if !slices.ContainsFunc(services, func(s *desired.Service) bool { return keeps(s.Scheduler) }) { // what is kept is history
					fresh := planOf(config, services)
					fresh.Rebalance(loads, second(n))
					sameRuleset(t, have, fresh.Ruleset())
				}
			}
			for _, p := range rapid.SliceOfN(genPacket(services), 1, 6).Draw(t, "packets") {
				want := kubernetes(config, services, p)
				m := newMachine(have)
				m.draw = func(_ int, of uint32) uint32 { return rapid.Uint32Range(0, of-1).Draw(t, "draw") }
				if f := m.walk(p); f.verdict != want.verdict || f.verdict == "translated" && !slices.Contains(want.endpoints, f.endpoint) {
					t.Fatalf("%+v: %s to %s, want %s to one of %v", p, f.verdict, f.endpoint, want.verdict, want.endpoints)
				}
			}
		}
	})
}

// second is a time of counts, so many seconds after the first one.
func second(n int) time.Time { return time.Unix(1_700_000_000+int64(n), 0) }

// K39: as connections come and end, endpoints come to have the same for their weight, and do not swing, however long connections last.
// Rule: K39.
func TestPropertyLoadsComeToRest(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		lasting := rapid.SampledFrom([]float64{0, 0.1, 0.5, 0.9, 0.99}).Draw(t, "of connections that are there after a second")
		weights := rapid.SampledFrom([][]float64{{1, 1}, {1, 3}, {1, 1, 2}}).Draw(t, "weights")
		arrivals := rapid.Float64Range(50, 1000).Draw(t, "new connections a second")
		have := make([]float64, len(weights))
		have[0] = rapid.Float64Range(0, 5000).Draw(t, "at first")
		total := func() (sum float64) {
			for _, h := range have {
				sum += h
			}
			return sum
		}
		fresh := 0.0
		for range 600 {
			shares := deal(fill("wlc", have, weights, max(2*fresh, float64(len(have)))), 64)
			before := total()
			for i := range have {
				have[i] = have[i]*lasting + arrivals*float64(shares[i])/64
			}
			fresh = total() - before*lasting
		}
		weight := 0.0
		for _, w := range weights {
			weight += w
		}
		for i, h := range have { // a slot is a 64th of what is new
			if want := total() * weights[i] / weight; math.Abs(h-want) > 0.06*total() {
				t.Fatalf("endpoint %d has %f of %f, want %f", i, h, total(), want)
			}
		}
	})
}
