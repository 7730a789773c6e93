// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/testkit"
)

func planOf(c Config, services []*desired.Service) *Planner {
	p := NewPlanner(c)
	p.Step(services)
	return p
}

// script draws so that the choice falls on the endpoint of an index, whether one draw decides or one for each.
type script struct {
	index int
	of    []uint32 // how many could have come, of each draw
}

func (s *script) draw(call int, of uint32) uint32 {
	s.of = append(s.of, of)
	n := uint32(1)
	if call == 0 {
		n = uint32(s.index)
	} else if call == s.index {
		n = 0
	}
	return n % of
}

// probability is that of what was drawn: of all draws but the last any but one number would have done.
func (s *script) probability() float64 {
	p := 1.0
	for _, of := range s.of[:len(s.of)-1] {
		p *= float64(of-1) / float64(of)
	}
	return p / float64(s.of[len(s.of)-1])
}

// Whatever the Services, a packet's fate in the planned table is what Kubernetes says: K2, K3, K8-K11, K13-K17, K19, K22,
// K23, K26, K27, K29, K35, K42, and why it is turned away (K52). Every eligible endpoint is as probable as its weight says: as the others, unless it has one (K38, K40).
func TestPropertyPlannedTableDoesWhatKubernetesSays(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		config, services := genConfig().Draw(t, "config"), genServices().Draw(t, "services")
		rules := planOf(config, services).Ruleset()
		for _, p := range rapid.SliceOfN(genPacket(services), 1, 8).Draw(t, "packets") {
			want := kubernetes(config, services, p)
			if want.agreed && len(want.endpoints) > 1 {
				hashedEvenly(t, rules, config, services, p)
				continue
			}
			got := map[netip.AddrPort]float64{}
			for i := range want.draws() {
				m := newMachine(rules) // without a memory
				drawn := &script{index: i}
				m.draw = drawn.draw
				f := m.walk(p)
				if f.verdict != want.verdict {
					t.Fatalf("%+v: %s, want %s", p, f.verdict, want.verdict)
				}
				if why := reasonOf(t, f); why != want.reason {
					t.Fatalf("%+v: counted as %q, want %q", p, why, want.reason)
				}
				if f.verdict != "translated" {
					if f.masqueraded {
						t.Fatalf("%+v: masqueraded", p)
					}
					continue
				}
				got[f.endpoint] += drawn.probability()
				if wantMasq := masqueraded(config, services, p, f.endpoint); f.masqueraded != wantMasq {
					t.Fatalf("%+v to %s: masqueraded %v, want %v", p, f.endpoint, f.masqueraded, wantMasq)
				}
			}
			if len(got) != len(want.endpoints) {
				t.Fatalf("%+v: endpoints %v, want %v", p, got, want.endpoints)
			}
			for _, e := range want.endpoints {
				if share := float64(want.weights[e]) / float64(want.total()); math.Abs(got[e]-share) > 1e-9 {
					t.Fatalf("%+v: %s with a probability of %f, want %f", p, e, got[e], share)
				}
			}
		}
	})
}

// reasonOf is what a packet was counted as, once at most.
func reasonOf(t *rapid.T, f fate) string {
	if len(f.tallied) > 1 {
		t.Fatalf("a packet was counted by %v", f.tallied)
	}
	if len(f.tallied) == 0 {
		return ""
	}
	chain := f.tallied[0]
	if reasons[chain] == "" {
		t.Fatalf("chain %s counts, and no metric tells of it", chain)
	}
	return reasons[chain]
}

// K36: a client meets the same endpoint again while it is eligible, whatever else changes, and another one at once
// when it is not.
// Rule: K36.
func TestPropertyClientKeepsItsEndpointWhileItIsEligible(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		config := genConfig().Draw(t, "config")
		planner := NewPlanner(config)
		rules := config.layout()
		m := newMachine(rules)
		m.draw = func(_ int, of uint32) uint32 { return rapid.Uint32Range(0, of-1).Draw(t, "draw") }
		last := map[packet]netip.AddrPort{}
		services := genServices().Draw(t, "services")
		for range rapid.IntRange(1, 5).Draw(t, "steps") {
			services = drawSuccessors(t, services)
			change, _ := planner.Step(services)
			applyTo(t, rules, change)
			for _, name := range change.DropSets {
				delete(m.memory, name)
			}
			for p, before := range last {
				if !slices.Contains(kubernetes(config, services, p).endpoints, before) || kubernetes(config, services, p).affinity == 0 {
					delete(last, p)
				}
			}
			for _, p := range rapid.SliceOfN(genPacket(services), 1, 6).Draw(t, "packets") {
				want := kubernetes(config, services, p)
				f := m.walk(p)
				if want.affinity == 0 || f.verdict != "translated" {
					continue
				}
				if before, ok := last[p]; ok && f.endpoint != before {
					t.Fatalf("%+v: went to %s, was with %s", p, f.endpoint, before)
				}
				last[p] = f.endpoint
			}
		}
	})
}

// K43: a change leads exactly from what the table held to what it shall hold, in an order that the kernel takes, and
// touches nothing of Services that did not change.
func TestPropertyChangeLeadsFromOneTableToTheNext(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		config := genConfig().Draw(t, "config")
		planner := NewPlanner(config)
		have := planner.Ruleset()
		var services []*desired.Service
		for range rapid.IntRange(1, 5).Draw(t, "steps") {
			next := genServices().Draw(t, "next")
			for i, s := range next {
				for _, was := range services {
					if s.Name == was.Name && rapid.Bool().Draw(t, "same") {
						next[i] = was
					}
				}
			}
			was, moved := config, rapid.IntRange(0, 3).Draw(t, "moved") == 3
			if moved {
				config.Zone = rapid.SampledFrom([]string{"", "z1", "z2"}).Draw(t, "to zone")
				planner.Move(config.Zone)
			}
			change, _ := planner.Step(next)
			before, rest := change.Split()
			applyTo(t, have, before)
			for _, p := range rapid.SliceOfN(genPacket(services), 0, 4).Draw(t, "packets") {
				if until := kubernetes(was, services, p); len(until.endpoints) < 2 {
					m := newMachine(have)
					m.draw = (&script{}).draw
					if f := m.walk(p); f.verdict != until.verdict {
						t.Fatalf("%+v: %s after the preparation, was %s", p, f.verdict, until.verdict)
					}
				}
			}
			applyTo(t, have, rest)
			want := planOf(config, next).Ruleset()
			sameRuleset(t, have, want)
			sameRuleset(t, planner.Ruleset(), want)
			if have, want := planner.Problems(), planOf(config, next).Problems(); !slices.Equal(have, want) {
				t.Fatalf("problems %v, want %v", have, want)
			}
			if again, flows := planner.Step(next); !again.Empty() || len(flows) > 0 {
				t.Fatalf("nothing changed, but %+v, flows %v", again, flows)
			}
			services = next
		}
	})
}

// A table in whatever state of ours becomes any other one.
func TestPropertyDiffLeadsAnywhere(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		from := planOf(genConfig().Draw(t, "from"), genServices().Draw(t, "services")).Ruleset()
		to := planOf(genConfig().Draw(t, "to"), genServices().Draw(t, "next")).Ruleset()
		applyTo(t, from, Diff(from, to))
		sameRuleset(t, from, to)
		if c := Diff(from, to); !c.Empty() {
			t.Fatalf("nothing differs, but %+v", c)
		}
	})
}

// applyTo carries a change out in the kernel's order, and fails where the kernel would.
func applyTo(t *rapid.T, r Ruleset, c Change) {
	for _, s := range c.AddSets {
		if _, ok := r.Sets[s.Name]; ok {
			t.Fatalf("set %s is there already", s.Name)
		}
		r.Sets[s.Name] = s
	}
	for _, chain := range c.AddChains {
		if _, ok := r.Chains[chain.Name]; ok {
			t.Fatalf("chain %s is there already", chain.Name)
		}
		r.Chains[chain.Name] = chain
	}
	for _, chain := range c.Refill {
		r.Chains[chain.Name] = chain
	}
	for _, e := range c.Remove {
		if data, ok := r.Elements[e.Set][e.Key]; !ok || data != e.Data {
			t.Fatalf("element %q of %s is not there", e.Key, e.Set)
		}
		delete(r.Elements[e.Set], e.Key)
	}
	for _, e := range c.Add {
		if _, ok := r.Elements[e.Set][e.Key]; ok {
			t.Fatalf("element %q of %s is there already", e.Key, e.Set)
		}
		r.put([]Element{e})
	}
	for _, name := range c.DropChains {
		delete(r.Chains, name)
	}
	nothingIsLedTo(t, r, c.DropChains)
	for _, name := range c.DropSets {
		delete(r.Sets, name)
		delete(r.Elements, name)
	}
	nothingDangles(t, r)
}

// nothingIsLedTo fails where a verdict names a chain that goes: sets that go do so later.
func nothingIsLedTo(t *rapid.T, r Ruleset, gone []string) {
	for set, elements := range r.Elements {
		for _, verdict := range elements {
			if _, chain, _ := strings.Cut(verdict, " "); r.Sets[set].Verdict && slices.Contains(gone, chain) {
				t.Fatalf("chain %s goes while an element of %s leads to it", chain, set)
			}
		}
	}
}

// nothingDangles holds the table to what the kernel asks: what is named is there.
func nothingDangles(t *rapid.T, r Ruleset) {
	verdict := func(v string) {
		if _, chain, ok := strings.Cut(v, " "); ok {
			if _, there := r.Chains[chain]; !there {
				t.Fatalf("%s: no such chain", v)
			}
		}
	}
	for set, elements := range r.Elements {
		s, ok := r.Sets[set]
		if !ok && len(elements) > 0 {
			t.Fatalf("elements of set %s, which is not there", set)
		}
		for _, data := range elements {
			if s.Verdict {
				verdict(data)
			}
		}
	}
	for _, c := range r.Chains {
		for _, rule := range c.Rules {
			for _, op := range rule {
				switch o := op.(type) {
				case Verdict:
					verdict(o.Is)
				case Member, Branch, Get, Remember:
					name := reflect.ValueOf(o).Field(0).String()
					if _, ok := r.Sets[name]; !ok {
						t.Fatalf("%T of set %s, which is not there", o, name)
					}
				}
			}
		}
	}
}

func sameRuleset(t *rapid.T, got, want Ruleset) {
	if !reflect.DeepEqual(got.Sets, want.Sets) || !reflect.DeepEqual(got.Chains, want.Chains) {
		t.Fatalf("sets and chains %v %v, want %v %v", slices.Sorted(maps.Keys(got.Sets)), slices.Sorted(maps.Keys(got.Chains)),
			slices.Sorted(maps.Keys(want.Sets)), slices.Sorted(maps.Keys(want.Chains)))
	}
	flat := func(r Ruleset) map[string]string {
		out := map[string]string{}
		for set, elements := range r.Elements {
			for key, data := range elements {
				out[fmt.Sprintf("%s %q", set, key)] = data
			}
		}
		return out
	}
	if a, b := flat(got), flat(want); !maps.Equal(a, b) {
		t.Fatalf("elements\n%v\nwant\n%v", a, b)
	}
}

// A range of addresses is in the set if a prefix has it, and no end stands where another range begins.
func TestPropertySpansCoverWhatThePrefixesCover(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		ranges := some(rangesOf, 0, len(rangesOf)).Draw(t, "ranges")
		for _, f := range []family{ipv4, ipv6} {
			elements := intervals("s", f, ranges)
			rules := newRuleset()
			rules.Sets["s"] = Set{Name: "s", Key: []Type{f.addressType}, Interval: true}
			rules.put(elements)
			if len(rules.Elements["s"]) != len(elements) {
				t.Fatalf("%v: ranges touch: %q", ranges, elements)
			}
			for _, a := range append(addrs("0.0.0.0", "203.0.113.127", "203.0.113.128", "203.0.114.0", "255.255.255.255", "::", "fd00:0:0:1::"), clients...) {
				if familyOf(a) != f {
					continue
				}
				w := walker{machine: newMachine(rules)}
				w.write(0, string(a.AsSlice()))
				if in := w.member(Member{"s", 0}); in != allowedBy(ranges, a) {
					t.Fatalf("%v: %s is in: %v", ranges, a, in)
				}
			}
		}
	})
}
