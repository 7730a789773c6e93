// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// shop is a folder of objects of outside load balancers that somebody edits, and the drivers that they name.
type shop struct {
	mu      sync.Mutex
	w       world.World
	edition uint64
	changed chan struct{}
	calls   []OutsideCall
}

func (s *shop) World() world.World {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.w.Clone()
	w.Source, w.Cluster, w.Complete, w.Kinds = "folder", "folder", true, nil
	for _, k := range world.Kinds() {
		w.Kinds = append(w.Kinds, world.KindView{Kind: k, Listed: true, Complete: true, Lists: s.edition, Version: s.edition})
	}
	w.Sort()
	return w
}

func (s *shop) Changed() <-chan struct{} { return s.changed }
func (s *shop) Relist(...world.Kind)     {}
func (s *shop) Begin()                   {}

// apply has the objects of a draft come, or take the places of those of their names.
func (s *shop) apply(d world.World) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.edition++
	s.w.Drivers = applied(s.w.Drivers, d.Drivers, func(o *world.Driver) world.ID { return o.ID })
	s.w.LoadBalancers = applied(s.w.LoadBalancers, d.LoadBalancers, func(o *world.OutsideBalancer) world.ID { return o.ID })
	s.w.BackendGroups = applied(s.w.BackendGroups, d.BackendGroups, func(o *world.BackendGroup) world.ID { return o.ID })
	poke(s.changed)
}

// become has the folder hold what a draft does, and nothing else.
func (s *shop) become(d world.World) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.edition++
	s.w = d.Clone()
	poke(s.changed)
}

func applied[T any](have, come []*T, id func(*T) world.ID) []*T {
	have = slices.Clone(have)
	for _, o := range come {
		have = slices.DeleteFunc(have, func(p *T) bool { return id(p) == id(o) })
	}
	return append(have, come...)
}

// driver is one that does what it is asked, and keeps what that was.
func (s *shop) driver(name string) (Driver, bool) {
	return &told{do: func(_ context.Context, a fsm.Action, r Request) Answer {
		c := OutsideCall{Driver: name, Action: a.String(), Balancer: ThingName(string(r.Balancer.ID))}
		out := Answer{Result: fsm.ResultSucceeded}
		switch {
		case a == fsm.ActionAddress:
			out.Address = "192.0.2.200:" + r.Binding.Backend.Name
		case a == fsm.ActionCreateBalancer:
			out.Returned = r.Balancer.Spec
		}
		if r.Binding != nil {
			c.Backend, c.Owner = string(r.Binding.ID), ThingName(r.Binding.Owner)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls = append(s.calls, c)
		return out
	}}, true
}

// made are the calls that drivers got since they were last forgotten.
func (s *shop) made() []OutsideCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func drawKV(t *rapid.T, name string) []world.KV {
	return []world.KV{{Key: "k", Value: rapid.SampledFrom([]string{"1", "2"}).Draw(t, name)}}
}

// drawShop draws objects whose names collide with others drawn so.
func drawShop(t *rapid.T) (w world.World) {
	meta := func(name string) world.Meta {
		return world.Meta{ID: world.ID{Namespace: "shop", Name: name}, UID: "uid-" + name}
	}
	some := func(names ...string) []string {
		return rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID).Draw(t, "names")
	}
	for _, name := range some("d1", "d2") {
		w.Drivers = append(w.Drivers, &world.Driver{Meta: meta(name), URL: "http://192.0.2." + name[1:], Draining: rapid.Bool().Draw(t, "draining")})
	}
	for _, name := range some("l1", "l2", "l3") { // driver and spec never change
		at := []string{"d1", "d2"}[name[1]%2]
		w.LoadBalancers = append(w.LoadBalancers, &world.OutsideBalancer{
			Meta: meta(name), Driver: at, DriverID: meta(at).ID, Finalizer: true, Spec: []world.KV{{Key: "vip", Value: name}}, Attributes: drawKV(t, "attributes"),
		})
	}
	for _, name := range some("g1", "g2", "g3") {
		g := world.BackendGroup{Meta: meta(name), LoadBalancers: some("l1", "l2", "l3", "none"), Balancing: world.Balancing{Parameters: drawKV(t, "parameters")}}
		if rapid.Bool().Draw(t, "static") {
			g.IsStatic, g.Static = true, some("192.0.2.8:80", "192.0.2.9:80")
		} else {
			g.Pods = &world.PodSelection{ByLabel: true, Selector: drawKV(t, "selector"), Ports: []world.BackendPort{{Port: 80, Protocol: "TCP"}}}
		}
		w.BackendGroups = append(w.BackendGroups, &g)
	}
	return w
}

func drawPods(t *rapid.T) (pods []*world.Pod) {
	for i := range 4 {
		pods = append(pods, &world.Pod{
			Meta: world.Meta{ID: world.ID{Namespace: "shop", Name: fmt.Sprint("p", i)}, UID: fmt.Sprint("uid-p", i)}, IP: fmt.Sprint("10.0.0.", i+1),
			Ready: rapid.Bool().Draw(t, "ready"), Running: true, Labels: drawKV(t, "labels"),
		})
	}
	return pods
}

// spellCalls are calls in an order that does not depend on when they were made, without what only a forecast has.
func spellCalls(calls []OutsideCall) []string {
	var out []string
	for _, c := range calls {
		out = append(out, strings.Join([]string{c.Driver, c.Action, c.Balancer, c.Backend, c.Owner}, "|"))
	}
	slices.Sort(out)
	return out
}

// shopSettles is as long as a leader takes at most for what a shop holds, in a bubble's time.
const shopSettles = 15 * time.Second

// lead runs a leader over the shop until stop is called, and gives what it knows once it has settled.
func (s *shop) lead(f failer) (g *liveGroup, in OutsideInput, stop func()) {
	s.changed = make(chan struct{}, 1)
	g = newLiveGroup(f)
	l, err := New(Config{
		Sources: []NamedSource{{"folder", s}}, Record: g.state, Group: g, Clock: newWall(), Log: slog.New(slog.DiscardHandler),
		Drivers: s.driver, Random: rand.New(rand.NewPCG(1, 2)), Limits: fastLimits(), Timing: Timing{Checkpoint: time.Hour, Spacing: 100 * time.Millisecond},
	})
	if err != nil {
		f.Fatalf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx, 1) }()
	stop = func() { cancel(); <-ended }
	time.Sleep(shopSettles)
	in, why := l.AskedOutside(ctx)
	if why != "" {
		stop()
		f.Fatalf("the leader gives nothing: %s", why)
	}
	return g, in, stop
}

// foretells fails unless the calls that are foretold of a draft are those that are made once it is applied, which it gives.
func (s *shop) foretells(f failer, d Draft) []OutsideCall {
	g, in, stop := s.lead(f)
	defer stop()
	digest := g.state.Digest()
	said, err := ForeseeOutside(context.Background(), in, d)
	if err != nil {
		f.Fatalf("%v", err)
	}
	if g.state.Digest() != digest {
		f.Fatalf("to foresee changes the record")
	}
	s.mu.Lock()
	s.calls = nil
	s.mu.Unlock()
	if d.InPlaceOf == "" {
		s.apply(*d.World)
		time.Sleep(shopSettles)
	} else {
		for range 2 { // what is gone is so once it was read twice
			s.become(*d.World)
			time.Sleep(shopSettles)
		}
	}
	if got, want := spellCalls(said.Calls), spellCalls(s.made()); !slices.Equal(got, want) {
		f.Fatalf("foretold:\n%s\nmade:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return said.Calls
}

// The calls that are foretold of a draft are those that drivers get once it is applied, each as often: here by the loops that ship and
// drivers that do what they are asked.
func TestPropertyForetoldCallsAreThoseThatAreMade(t *testing.T) {
	foretold := 0
	testkit.Check(t, func(rt *rapid.T) {
		s := &shop{edition: 1, w: drawShop(rt)}
		s.w.Pods = drawPods(rt)
		draft := drawShop(rt)
		why := bubble(t, func(f failer) {
			foretold += len(s.foretells(f, Draft{World: &draft}))
		})
		if why != "" {
			rt.Fatal(why)
		}
	})
	if foretold == 0 {
		t.Error("nothing was foretold")
	}
}

// So it is with a draft that stands for all of a folder, once the folder is like it.
func TestPropertyForetoldCallsInPlaceOfAFolderAreThoseThatAreMade(t *testing.T) {
	actions, foretold := []string{"deregister", "create-balancer", "delete-balancer"}, map[string]int{}
	missing := func() string {
		for _, action := range actions {
			if foretold[action] == 0 {
				return fmt.Sprintf("no %s was foretold", action)
			}
		}
		return ""
	}
	testkit.CheckUntil(t, missing, func(rt *rapid.T) {
		s := &shop{edition: 1, w: drawShop(rt)}
		s.w.Pods = drawPods(rt)
		draft := drawShop(rt)
		draft.Pods = slices.DeleteFunc(drawPods(rt), func(*world.Pod) bool { return rapid.IntRange(0, 3).Draw(rt, "gone") == 0 })
		draft.Kinds = s.World().Kinds // it is complete
		why := bubble(t, func(f failer) {
			for _, c := range s.foretells(f, Draft{World: &draft, InPlaceOf: "folder"}) {
				foretold[c.Action]++
			}
		})
		if why != "" {
			rt.Fatal(why)
		}
	})
}

// Two groups have a pod on one load balancer. Where it goes to a third one it is not taken off: that has its address told and registers it,
// and once more to settle that the others no longer do. Where one group lets go of it the other one registers it once more, and where that is gone,
// too, which takes a second list to be sure of, it is taken off.
func TestForetoldCallsOfAPodOfTwoGroups(t *testing.T) {
	meta := func(name string) world.Meta {
		return world.Meta{ID: world.ID{Namespace: "shop", Name: name}, UID: "uid-" + name}
	}
	group := func(name, selects string) *world.BackendGroup {
		return &world.BackendGroup{Meta: meta(name), LoadBalancers: []string{"l1"}, Balancing: world.Balancing{Pods: &world.PodSelection{
			ByLabel: true, Selector: []world.KV{{Key: "app", Value: selects}}, Ports: []world.BackendPort{{Port: 80, Protocol: "TCP"}},
		}}}
	}
	with := func(groups ...*world.BackendGroup) world.World {
		return world.World{
			Drivers: []*world.Driver{{Meta: meta("d1"), URL: "http://192.0.2.1"}},
			LoadBalancers: []*world.OutsideBalancer{{
				Meta: meta("l1"), Driver: "d1", DriverID: meta("d1").ID, Finalizer: true, Spec: []world.KV{{Key: "vip", Value: "l1"}},
			}},
			BackendGroups: groups,
			Pods:          []*world.Pod{{Meta: meta("web-0"), IP: "10.0.0.1", Ready: true, Running: true, Labels: []world.KV{{Key: "app", Value: "web"}}}},
		}
	}
	for _, c := range []struct {
		name, inPlaceOf string
		draft           world.World
		calls           []string
	}{
		{
			"goes-to-another", "", with(group("also", "none"), group("blue", "none"), group("green", "web")),
			[]string{"address BackendGroup shop/green", "ensure BackendGroup shop/green", "ensure BackendGroup shop/green"},
		},
		{"let-go-of-and-gone", "folder", with(group("blue", "none")), []string{"ensure BackendGroup shop/also", "deregister BackendGroup shop/also"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &shop{edition: 1, w: with(group("also", "web"), group("blue", "web"))}
			c.draft.Kinds = s.World().Kinds
			why := bubble(t, func(f failer) {
				var got []string
				for _, call := range s.foretells(f, Draft{World: &c.draft, InPlaceOf: c.inPlaceOf}) {
					got = append(got, call.Action+" "+call.Owner)
				}
				if !slices.Equal(got, c.calls) {
					f.Fatalf("calls: %q, want %q", got, c.calls)
				}
			})
			if why != "" {
				t.Fatal(why)
			}
		})
	}
}

// A draft that stands for all of a folder takes off what is not in it: the calls that are foretold are those that are made once the folder is
// like it. On top of the folder the same draft takes nothing off; a folder that is none is an error.
func TestForetoldCallsInPlaceOfAFolderAreThoseThatAreMade(t *testing.T) {
	meta := func(name string) world.Meta {
		return world.Meta{ID: world.ID{Namespace: "shop", Name: name}, UID: "uid-" + name}
	}
	folder := func(at ...string) (w world.World) {
		w.Drivers = []*world.Driver{{Meta: meta("d1"), URL: "http://192.0.2.1"}}
		w.LoadBalancers = []*world.OutsideBalancer{{
			Meta: meta("l1"), Driver: "d1", DriverID: meta("d1").ID, Finalizer: true, Spec: []world.KV{{Key: "vip", Value: "l1"}},
		}}
		for _, a := range at {
			w.BackendGroups = append(w.BackendGroups, &world.BackendGroup{Meta: meta("g" + a), LoadBalancers: []string{"l1"}, IsStatic: true, Static: []string{"192.0.2." + a + ":80"}})
		}
		return w
	}
	s, draft := &shop{edition: 1, w: folder("8", "9")}, folder("8", "7")
	draft.Kinds = s.World().Kinds // it is complete
	why := bubble(t, func(f failer) {
		_, in, stop := s.lead(f)
		defer stop()
		foresee := func(source string) (actions string, said OutsideForecast) {
			said, err := ForeseeOutside(context.Background(), in, Draft{World: &draft, InPlaceOf: source})
			if err != nil {
				f.Fatalf("%v", err)
			}
			for _, c := range said.Calls {
				actions += c.Action + " " + c.Owner + ", "
			}
			return actions, said
		}
		got, _ := foresee("")
		if want := "ensure BackendGroup shop/g7, "; got != want {
			f.Fatalf("on top of the folder: %s, want %s", got, want)
		}
		if _, err := ForeseeOutside(context.Background(), in, Draft{World: &draft, InPlaceOf: "nowhere"}); err == nil {
			f.Fatalf("a folder that is none is stood for")
		}
		got, said := foresee("folder")
		if !strings.Contains(got, "deregister BackendGroup shop/g9") {
			f.Fatalf("what is not in the draft stays: %s", got)
		}
		s.mu.Lock()
		s.calls = nil
		s.mu.Unlock()
		for range 2 { // what is gone is so once it was read twice
			s.become(draft)
			time.Sleep(shopSettles)
		}
		if got, want := spellCalls(said.Calls), spellCalls(s.made()); !slices.Equal(got, want) {
			f.Fatalf("foretold:\n%s\nmade:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
	if why != "" {
		t.Fatal(why)
	}
}
