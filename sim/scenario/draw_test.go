// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/fault"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/scenario"
	"fairlead.io/fairlead/sim/workload"
)

// A member that comes back with less than it had is the only one that may lack something: what two of three had is with the third.
func TestNobodyForgetsWhileOthersAreAway(t *testing.T) {
	forgets := 0
	for seed := range uint64(3000) {
		s := scenario.Draw(seed, scenario.Options{Duration: time.Minute, Members: 3, Nodes: 5})
		member := func(f fault.Fault) bool { return slices.ContainsFunc(f.On, func(n string) bool { return n[0] == 'm' }) }
		for _, f := range s.Faults {
			if f.Kind != "old-disk" || !member(f) {
				continue
			}
			forgets++
			for _, other := range s.Faults {
				away := slices.Contains([]string{"kill", "power", "freeze", "partition", "isolate", "lost-disk"}, other.Kind)
				if away && member(other) && !slices.Equal(other.On, f.On) && other.At <= f.End() && other.End() >= f.At {
					t.Errorf("seed %d: %s beside %s", seed, f, other)
				}
			}
		}
	}
	if forgets < 20 {
		t.Errorf("%d disks ran back", forgets)
	}
}

// options draws what a user may ask for.
func options(t *rapid.T) scenario.Options {
	return scenario.Options{
		Duration: time.Duration(rapid.IntRange(1, 120).Draw(t, "seconds")) * time.Second,
		Members:  rapid.IntRange(1, 5).Draw(t, "members"),
		Nodes:    rapid.IntRange(1, 10).Draw(t, "nodes"),
		Switches: rapid.IntRange(1, 3).Draw(t, "switches"),
		Services: rapid.IntRange(0, 30).Draw(t, "services"),

		Aggregate: rapid.SampledFrom([]int{0, 0, 30}).Draw(t, "prefixes"),
	}
}

func TestWhatIsDrawnIsValidAndEndsInTime(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		o := options(t)
		s := scenario.Generate(o).Draw(t, "scenario")
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		for _, f := range s.Faults {
			if k, _ := fault.Find(f.Kind); len(k.Excuses(s.Cast(), f)) == 0 {
				t.Fatalf("%s excuses everybody", f)
			}
			if f.End() > o.Duration*3/4 {
				t.Fatalf("%s ends at %s of %s", f, f.End(), o.Duration)
			}
		}
		if s.End() < s.Calm()+30*time.Second {
			t.Fatalf("it is over at %s, and calm at %s", s.End(), s.Calm())
		}
	})
}

func TestEqualSeedsDrawEqualScenarios(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		a, b := scenario.Draw(seed, scenario.Options{Balancers: 1}), scenario.Draw(seed, scenario.Options{Balancers: 1})
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("%s\n%s", a.Text(), b.Text())
		}
		if reflect.DeepEqual(a, scenario.Draw(seed+1, scenario.Options{Balancers: 1})) {
			t.Fatal("the next seed draws the same")
		}
	})
}

// Neither what users do nor the faults of one kind depend on whether anything else is drawn.
func TestStreamsAreIndependent(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		whole := scenario.Draw(seed, scenario.Options{Rough: true})
		if calm := scenario.Draw(seed, scenario.Options{Rough: true, NoFaults: true}); !reflect.DeepEqual(calm.Work, whole.Work) {
			t.Fatal("without faults, users do something else")
		}
		if idle := scenario.Draw(seed, scenario.Options{Rough: true, NoWork: true}); !reflect.DeepEqual(idle.Faults, whole.Faults) {
			t.Fatal("without work, other things go wrong")
		}
		weighed := scenario.Draw(seed, scenario.Options{Rough: true, Weights: true})
		weighs := func(w workload.Step) bool { return w.Do == "weigh" }
		older := func(f fault.Fault) bool {
			k, _ := fault.Find(f.Kind)
			return k.Older || f.Kind == fault.RollingUpgrade
		}
		if slices.ContainsFunc(weighed.Work, weighs) == slices.ContainsFunc(weighed.Faults, older) {
			t.Fatal("weights are given beside an older release, or in no world")
		}
		if weighed.Work = slices.DeleteFunc(weighed.Work, weighs); !slices.EqualFunc(weighed.Work, whole.Work, func(v, w workload.Step) bool { return v.String() == w.String() && v.At == w.At }) {
			t.Fatal("with weights, users do something else as well")
		}
		beside := scenario.Draw(seed, scenario.Options{Rough: true, Foul: true})
		if slices.ContainsFunc(beside.Work, func(w workload.Step) bool { return w.Do == "foul" }) == slices.ContainsFunc(beside.Faults, older) {
			t.Fatal("there are texts that cannot be recorded beside an older release, or in no world")
		}
		for _, w := range whole.Work {
			if !slices.ContainsFunc(beside.Work, func(v workload.Step) bool { return v.String() == w.String() && v.At == w.At }) {
				t.Fatalf("%s is gone beside texts that cannot be recorded", w)
			}
		}
		inside := scenario.Draw(seed, scenario.Options{Rough: true, Sockets: start.Sockets{Policies: true, ClusterIPs: true}})
		if inside.Sockets.Any() == slices.ContainsFunc(inside.Faults, older) {
			t.Fatal("something is served at sockets beside an older release, or in no world")
		}
		for _, w := range whole.Work {
			if !slices.ContainsFunc(inside.Work, func(v workload.Step) bool { return v.String() == w.String() && v.At == w.At }) {
				t.Fatalf("%s is gone where something is served at sockets", w)
			}
		}
		for _, f := range whole.Faults {
			only := scenario.Draw(seed, scenario.Options{Rough: true, Kinds: []string{f.Kind}})
			if !slices.ContainsFunc(only.Faults, func(o fault.Fault) bool { return reflect.DeepEqual(o, f) }) {
				t.Fatalf("%s at %s is gone when it is the only kind: %v", f, f.At, only.Faults)
			}
		}
	})
}

// Seeds are different enough: from calm to storms, with each kind among them, and most spare a majority of members.
func TestSeedsVary(t *testing.T) {
	kinds, calm, storms, lost := map[string]int{}, 0, 0, 0
	const seeds = 400
	for seed := range uint64(seeds) {
		s := scenario.Draw(seed, scenario.Options{Balancers: 1})
		switch n := len(s.Faults); {
		case n == 0:
			calm++
		case n >= 10:
			storms++
		}
		for _, f := range s.Faults {
			kinds[f.Kind]++
		}
		if worst(s) > 1 {
			lost++
		}
	}
	for seed := range uint64(seeds) { // kinds that other worlds have none of
		for _, f := range scenario.Draw(seed, scenario.Options{Segments: 2}).Faults {
			if k, _ := fault.Find(f.Kind); k.Segments || k.Driverless {
				kinds[f.Kind]++
			}
		}
	}
	for seed := range uint64(seeds) {
		for _, f := range scenario.Draw(seed, scenario.Options{Sockets: start.Sockets{Policies: true, Probes: true}}).Faults {
			if k, _ := fault.Find(f.Kind); k.Sockets {
				kinds[f.Kind]++
			}
		}
	}
	for _, k := range fault.All() {
		if (k.Weight > 0 || k.Share > 0) && kinds[k.Name] < 3 {
			t.Errorf("%s was drawn %d times in %d seeds", k.Name, kinds[k.Name], seeds)
		}
		if most := seeds * (k.Share + 5) / 100; k.Weight == 0 && kinds[k.Name] > most {
			t.Errorf("%s was drawn %d times in %d seeds, want %d at most", k.Name, kinds[k.Name], seeds, most)
		}
	}
	t.Logf("calm %d, storms %d, without quorum %d of %d; %v", calm, storms, lost, seeds, kinds)
	if calm < seeds/50 || storms < seeds/50 || lost < seeds/50 || lost > seeds/2 {
		t.Errorf("calm %d, storms %d, without quorum %d of %d", calm, storms, lost, seeds)
	}
}

// worst is how many members are disturbed at a time.
func worst(s scenario.Scenario) (most int) {
	for _, f := range s.Faults {
		disturbed := map[string]bool{}
		for _, o := range s.Faults {
			if o.At <= f.At && f.At <= o.End() {
				k, _ := fault.Find(o.Kind)
				for _, name := range k.Excuses(s.Cast(), o) {
					if slices.Contains(s.Cast().Members, name) {
						disturbed[name] = true
					}
				}
			}
		}
		most = max(most, len(disturbed))
	}
	return most
}
