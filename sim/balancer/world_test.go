// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/balancer"
	"fairlead.io/fairlead/sim/check"
	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/program"
	"fairlead.io/fairlead/sim/stage"
	"fairlead.io/fairlead/sim/vm"
)

// Members as they ship put backends on outside balancers and take them off again, through everything that drivers may
// do, while pods come and go at the same few addresses, somebody else has backends there, and leaders are killed.
func TestMembersOperateAsTheRulesSay(t *testing.T) {
	testkit.Long(t, "builds the program of simulated processes")
	p, err := program.Find(t.Context(), program.Options{})
	if err != nil {
		t.Fatal(err)
	}
	module, err := vm.Load(context.Background(), p.Code, p.Cache)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = module.Close(context.Background()) }()
	g := raise(t, module)
	defer g.Strike()
	load := balancer.NewWorkload(g.World, g.Group().NewHand("hand"), g.rules.View, g.Balancers())
	g.every(3*time.Second, 40*time.Second, 500*time.Millisecond, load.Act)
	for _, name := range []string{"c1", "c2"} {
		g.World.At(2*time.Second, func() { g.Group().Register(name, []string{"a", "b"}, 300*time.Millisecond) })
	}
	for i, f := range balancer.Faults() {
		for k, d := range g.Balancers() {
			g.fault(time.Duration(4+5*i+2*k)*time.Second, 4*time.Second, string(f), []string{d.Machine()}, func() func() {
				return d.Begin(f, balancer.Scope{Share: []float64{0, 0.5}[k]})
			})
		}
	}
	for _, at := range []time.Duration{12 * time.Second, 27 * time.Second} {
		g.fault(at, 2*time.Second, "kill", nil, func() func() {
			leader := g.leader
			g.Kill(leader)
			return func() { g.Start(leader) }
		})
	}
	g.every(4*time.Second, 40*time.Second, 2*time.Second, func() { g.byHand(load) })
	if err := g.World.Run(60 * time.Second); err != nil {
		t.Fatal(err)
	}
	for _, v := range g.rules.Finish(g.World.Now()) {
		t.Error(v)
	}
	for _, id := range []string{"S2", "S4", "S5", "S6", "S7", "L2", "L3"} {
		if g.rules.Counts()[id] == 0 {
			t.Errorf("%s was never put to the test: %v", id, g.rules.Counts())
		}
	}
	g.settled()
}

// guarded is a stage whose rules are checked.
type guarded struct {
	*stage.Stage
	t      *testing.T
	rules  *check.Set
	leader string
	faults int
}

func raise(t *testing.T, module *vm.Module) *guarded {
	w := engine.New(1)
	topology := check.Topology{
		Members: []string{"m1", "m2", "m3"}, Switches: []string{"s1"},
		Nodes: []check.Node{{Name: "n1", Addresses: []netip.Addr{stage.NodeAddress(0)}}},
		Balancers: []check.Balancer{
			{Name: stage.BalancerName(0), Identity: stage.BalancerIdentity(0)}, {Name: stage.BalancerName(1), Identity: stage.BalancerIdentity(1)},
		},
	}
	tuning := stage.Tuning()
	rules, err := check.New(check.Options{
		Topology: topology,
		Bounds:   check.Bounds{Settle: tuning.Settle, L2: tuning.RetryCap + tuning.Settle + 10*time.Second},
		Violated: func(v check.Violation) { w.Fail(v) },
	})
	if err != nil {
		t.Fatal(err)
	}
	g := &guarded{t: t, rules: rules}
	w.Hear(rules.Hear)
	w.Hear(func(e event.Stamped) {
		if x, ok := e.Event.(event.Leading); ok && x.On {
			g.leader = x.Process
		}
	})
	g.Stage = stage.New(w, stage.Options{Members: 3, Nodes: 1, Switches: 1, Balancers: 2, Record: rules.View, Program: module})
	g.Raise()
	g.tick()
	return g
}

// tick has the rules look at the time.
func (g *guarded) tick() {
	g.rules.Tick(g.World.Now())
	g.World.After(10*time.Millisecond, g.tick)
}

// every does something again and again, at random.
func (g *guarded) every(from, until, mean time.Duration, do func()) {
	var next func()
	next = func() {
		if g.World.Now() > until {
			return
		}
		do()
		g.World.After(time.Duration(g.World.Random("test").ExpFloat64()*float64(mean)), next)
	}
	g.World.At(from, next)
}

func (g *guarded) fault(at, lasts time.Duration, name string, on []string, begin func() (end func())) {
	g.faults++
	id := g.faults
	g.World.At(at, func() {
		g.World.Publish(event.FaultBegan{ID: id, Fault: name, On: on})
		end := begin()
		g.World.After(lasts, func() {
			end()
			g.World.Publish(event.FaultEnded{ID: id, Fault: name, On: on})
		})
	})
}

// byHand has somebody else put a backend where pods may come to be, for a while.
func (g *guarded) byHand(load *balancer.Workload) {
	d := g.Balancers()[g.World.Random("test").IntN(2)]
	balancer, address := d.Balancers()[0], load.Address()
	if d.AddByHand(balancer, address) {
		g.World.After(5*time.Second, func() { d.RemoveByHand(balancer, address) })
	}
}

// settled compares the record with what is outside, once nothing is wrong any more.
func (g *guarded) settled() {
	v := g.rules.View()
	want := map[string]bool{}
	for _, b := range fsm.List[*fsm.Binding](v, fsm.TableBindings) {
		if want[string(b.Identity)+" "+b.Address] = true; b.State != fsm.BindingBound {
			g.t.Errorf("%s at %s is %s: %s", b.ID, b.Address, b.State, b.Reason)
		}
	}
	have := map[string]bool{}
	for _, d := range g.Balancers() {
		for _, e := range d.Entries(d.Balancers()[0]) {
			have[string(balancer.Identity(d.Name(), d.Balancers()[0]))+" "+e.Address] = true
		}
	}
	if !maps.Equal(want, have) {
		g.t.Errorf("outside are %v, wanted %v", slices.Sorted(maps.Keys(have)), slices.Sorted(maps.Keys(want)))
	}
	if len(want) == 0 {
		g.t.Error("nothing was wanted in the end")
	}
	for _, op := range fsm.List[*fsm.Operation](v, fsm.TableOperations) {
		if op.Open || !op.Unsettled.IsZero() {
			g.t.Errorf("%s is open (%t) or unsettled (%s)", op.Subject, op.Open, op.Unsettled)
		}
	}
}
