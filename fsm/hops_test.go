// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// routed is a group of a format with an address that can be routed.
type routed struct {
	tb      testing.TB
	state   *State
	address netip.Addr
}

func newRouted(tb testing.TB, format uint32) *routed {
	r := &routed{tb, New(), netip.MustParseAddr("203.0.113.1")}
	r.apply(&InitGroup{Group: "g", Format: format})
	r.apply(&PutService{Service: Service{ID: "a/b", UID: "u", AllNodes: true}})
	r.apply(&Allocate{Address: r.address, Service: "a/b"})
	return r
}

func (r *routed) apply(c Command) {
	r.tb.Helper()
	if out := r.state.ApplyEntries([]LogEntry{entry(r.tb, r.state, r.state.Applied()+1, c)})[0][0]; out.Reject != Accepted {
		r.tb.Fatal(out.Err())
	}
}

func (r *routed) set(hops []HopSpec) { r.apply(&SetRoute{Prefix: HostPrefix(r.address), Hops: hops}) }

func (r *routed) route() *Route {
	route, _ := Get[*Route](r.state.Read(), TableRoutes, HostPrefix(r.address).String())
	return route
}

// workers are the next hops of nodes from one to another.
func workers(from, to int) (out []HopSpec) {
	for i := from; i < to; i++ {
		out = append(out, HopSpec{NodeID(fmt.Sprintf("worker-%05d.example.com", i)), netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})})
	}
	return out
}

// slowMerge and slowChange say the same as merge and hopChange, hop by hop, as the first releases had it: members of those are in one
// group with us.
func slowMerge(have []NextHop, want []HopSpec, now Revision) (out []NextHop) {
	for _, h := range have {
		if keep := slices.Contains(want, h.spec()); keep == h.Withdrawing {
			h.Withdrawing, h.Since = !keep, now
		}
		out = append(out, h)
	}
	for _, s := range want {
		if !slices.ContainsFunc(out, func(n NextHop) bool { return n.spec() == s }) {
			out = append(out, NextHop{Hop: &Hop{s.Node, s.Address}, Since: now})
		}
	}
	slices.SortFunc(out, compareHops)
	return out
}

func slowChange(old, next []NextHop) string {
	var what []string
	for _, n := range next {
		i := slices.IndexFunc(old, func(o NextHop) bool { return o.spec() == n.spec() })
		verb := "want"
		if i >= 0 {
			verb = map[bool]string{true: "withdraw", false: "want again"}[n.Withdrawing]
		}
		if i < 0 || old[i].Withdrawing != n.Withdrawing {
			what = append(what, verb+" "+string(n.Node())+" "+n.Address().String())
		}
	}
	return strings.Join(what, ", ")
}

// However a route's next hops change, the record holds of them what the first releases held, in their words.
func TestPropertyNextHopsChangeAsTheyAlwaysDid(t *testing.T) {
	spec := rapid.Custom(func(t *rapid.T) HopSpec {
		return HopSpec{NodeID(rapid.SampledFrom([]string{"n1", "n2", "n3", "n10"}).Draw(t, "node")),
			netip.MustParseAddr(rapid.SampledFrom([]string{"192.0.2.1", "192.0.2.2", "::ffff:192.0.2.1", "fe80::1%eth0", "fe80::1%eth1"}).Draw(t, "address"))}
	})
	testkit.Check(t, func(t *rapid.T) {
		var have []NextHop
		for i := range rapid.IntRange(1, 8).Draw(t, "changes") {
			c := &SetRoute{Hops: rapid.SliceOfN(spec, 0, 12).Draw(t, "hops")}
			now := Revision{1, Index(i + 1)}
			next, want := merge(have, c.wanted(), now), slowMerge(have, c.Hops, now)
			if !slices.EqualFunc(next, want, func(a, b NextHop) bool { return markOf(a) == markOf(b) }) {
				t.Fatalf("%v, and %v wanted, are\n%v, were\n%v", have, c.Hops, next, want)
			}
			if got, want := hopChange(have, next, -1), slowChange(have, next); got != want {
				t.Fatalf("%q, was %q", got, want)
			}
			have = next
		}
	})
}

// What a walk along two lists asks for grows as they do, and not with the product of their lengths.
func TestNextHopsAreComparedOnceEach(t *testing.T) {
	for _, n := range []int{100, 1000} {
		asked := 0
		pairs(workers(0, n), workers(n/2, n+n/2), func(a, b HopSpec) int { asked++; return compareSpecs(a, b) }, func(_, _ *HopSpec) {})
		if asked > 2*n {
			t.Errorf("%d comparisons of %d next hops with as many", asked, n)
		}
	}
}

// A node that is lost costs each route of ten times as many next hops about ten times as much memory, and a history says as much of it.
func TestChangesOfARouteCostWhatItsNextHopsDo(t *testing.T) {
	cost := func(n int) (bytes uint64, history int) {
		r := newRouted(t, NewestFormat)
		r.set(workers(0, n))
		data := entry(t, r.state, r.state.Applied()+1, &SetRoute{Prefix: HostPrefix(r.address), Hops: workers(n/2, n+n/2)})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r.state.ApplyEntries([]LogEntry{data})
		runtime.ReadMemStats(&after)
		for _, step := range r.route().History {
			history += len(step.What)
		}
		return after.TotalAlloc - before.TotalAlloc, history
	}
	few, said := cost(100)
	many, saidOfMany := cost(1000)
	if many > 20*few {
		t.Errorf("%d bytes for 1,000 next hops, %d for 100", many, few)
	}
	if most := 2 * (hopsInStep + 1) * 64; saidOfMany > most || said > most {
		t.Errorf("the history says %d bytes of 1,000 next hops, %d of 100, want %d at most", saidOfMany, said, most)
	}
}

// The words of a step are bounded from format 2 on; members of format 1 are in one group with those that knew no bound.
func TestStepsAreBoundedFromFormat2On(t *testing.T) {
	for format, want := range map[uint32]string{
		1: "want worker-00007.example.com 10.1.0.7, want worker-00008.example.com 10.1.0.8, want worker-00009.example.com 10.1.0.9",
		2: "want worker-00007.example.com 10.1.0.7, and 2 more",
	} {
		r := newRouted(t, format)
		r.set(workers(0, 10))
		if got := r.route().History[0].What; !strings.HasSuffix(got, want) {
			t.Errorf("format %d: %q, want it to end in %q", format, got, want)
		}
		r.apply(&PutNode{ID: "n1", Eligible: true})
		r.apply(&PutNode{ID: "n1", Why: strings.Repeat("é", maxStep)})
		n, _ := Get[*Node](r.state.Read(), TableNodes, "n1")
		if got := len(n.History[1].What); format == 1 && got < 2*maxStep || format == 2 && got > maxStep {
			t.Errorf("format %d: a step of %d bytes", format, got)
		}
	}
}

// A node goes without a look at the routes, whether they came one by one or with a snapshot; one that is named is told which route names it.
func TestANodeGoesWithoutALookAtTheRoutes(t *testing.T) {
	for name, state := range map[string]func(*testing.T, *State) *State{
		"applied":  func(_ *testing.T, s *State) *State { return s },
		"restored": restored,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRouted(t, NewestFormat)
			r.apply(&PutNode{ID: "worker-00000.example.com"})
			r.apply(&PutNode{ID: "n1"})
			r.set(workers(0, 2))
			r.set(workers(0, 3)) // one more than there were
			r.state = state(t, r.state)
			routes := r.state.rows.tables[TableRoutes]
			named := func(i int) bool { return !routes.none(refHop, string(workers(i, i+1)[0].Node)) }
			if !named(0) || !named(1) || !named(2) || named(3) {
				t.Fatal("next hops are counted wrongly")
			}
			remove := func(node NodeID) Outcome {
				return r.state.ApplyEntries([]LogEntry{entry(t, r.state, r.state.Applied()+1, &DeleteNode{ID: node})})[0][0]
			}
			if out := remove("worker-00000.example.com"); out.Reject != RejectInUse || out.Have != "route 203.0.113.1/32" {
				t.Fatalf("a node that a route names: %+v", out)
			}
			there := routes.order
			routes.order = order{runs: []*run{{len: 1, slots: [runSize]uint32{1 << 20}}}, count: 1} // whoever looks for routes does not get over this
			if out := remove("n1"); out.Reject != Accepted {
				t.Fatal(out.Err())
			}
			routes.order = there
			r.set(workers(1, 3))
			h := r.route().NextHops[0]
			r.apply(&FinishWithdrawal{Prefix: HostPrefix(r.address), Node: h.Node(), Address: h.Address(), Since: h.Since})
			if named(0) || !named(1) {
				t.Fatal("a next hop that went is counted")
			}
			if out := remove("worker-00000.example.com"); out.Reject != Accepted {
				t.Fatal(out.Err())
			}
		})
	}
}

// BenchmarkRouteLosesANode is what each address costs when one of the nodes that it leads to is lost.
func BenchmarkRouteLosesANode(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("hops-%d", n), func(b *testing.B) {
			r := newRouted(b, NewestFormat)
			r.set(workers(0, n))
			for i := 0; b.Loop(); i++ {
				r.set(workers(i%2, n)) // it comes back every other time
			}
		})
	}
}

// BenchmarkRouteFirstSet is what an address costs that leads to many nodes at once.
func BenchmarkRouteFirstSet(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("hops-%d", n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				r := newRouted(b, NewestFormat)
				data := entry(b, r.state, r.state.Applied()+1, &SetRoute{Prefix: HostPrefix(r.address), Hops: workers(0, n)}).Data
				b.StartTimer()
				r.state.ApplyEntries([]LogEntry{{Index: r.state.Applied() + 1, Term: 1, Data: data}})
			}
		})
	}
}

// BenchmarkNodeGoes is what the end of a node costs in a record with many routes that do not name it.
func BenchmarkNodeGoes(b *testing.B) {
	const routes = 10_000
	r := newRouted(b, NewestFormat)
	for i := range routes {
		a := netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)})
		r.apply(&Allocate{Address: a, Service: "a/b"})
		r.apply(&SetRoute{Prefix: HostPrefix(a), Hops: workers(0, 10)})
	}
	for b.Loop() {
		b.StopTimer()
		r.apply(&PutNode{ID: "n1"})
		gone := entry(b, r.state, r.state.Applied()+1, &DeleteNode{ID: "n1"})
		b.StartTimer()
		r.state.ApplyEntries([]LogEntry{gone})
	}
}
