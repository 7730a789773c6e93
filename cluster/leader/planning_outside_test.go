// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// What a plan took over as it was is compared at once with what is wanted, and not when something else happens; a backend
// that a plan began needs no other plan.
func TestWhatWasTakenOverIsPlannedForAgain(t *testing.T) {
	for what, c := range map[string]struct {
		commands []fsm.Command
		again    bool
	}{
		"taken-over": {[]fsm.Command{&fsm.AdoptBinding{Binding: *bind("x", "192.0.2.1:80").(*fsm.PutBinding), UID: "u", Registered: true}}, true},
		"begun":      {[]fsm.Command{bind("x", "192.0.2.1:80")}, false},
		"replaced":   {[]fsm.Command{&fsm.Forget{ID: "kept"}, &fsm.AdoptBinding{Binding: *bind("kept", "192.0.2.2:80").(*fsm.PutBinding), UID: "v", Registered: true}}, true},
	} {
		t.Run(what, func(t *testing.T) {
			g := newLiveGroup(t)
			g.commit(balancer("drv/a"), &fsm.AdoptBinding{Binding: *bind("kept", "192.0.2.2:80").(*fsm.PutBinding), UID: "u", Registered: true})
			l := leaderOf(t, g, g, func(string) (Driver, bool) { return nil, false })
			o := newOutsidePlanning(l)
			o.seen, o.record = []world.World{}, g.state.Read()
			if o.changed(nil, nil, g.state.Read()) {
				t.Fatal("nothing happened, and it is planned again")
			}
			g.commit(c.commands...)
			if got := o.changed(nil, nil, g.state.Read()); got != c.again {
				t.Errorf("planned again: %v, want %v", got, c.again)
			}
		})
	}
}

// watchedSource is a source with a live watch: it lists once, and shares what has not changed.
type watchedSource struct {
	w        world.World
	reads    atomic.Uint64 // by both plans
	relisted int
	begun    int
	older    bool // it shows a version of before
}

func (s *watchedSource) World() world.World {
	version := s.reads.Add(1)
	if s.older {
		version = 1
	}
	w := s.w
	w.Source, w.Cluster, w.Complete, w.Kinds = "folder", "folder", true, nil
	for _, k := range world.Kinds() {
		w.Kinds = append(w.Kinds, world.KindView{Kind: k, Listed: true, Complete: true, Lists: 1, Version: version})
	}
	return w
}

func (s *watchedSource) Changed() <-chan struct{} { return nil }

func (s *watchedSource) Relist(...world.Kind) { s.relisted++ }

func (s *watchedSource) Begin() { s.begun++ }

// A term asks for lists as if nobody had before: what was absent to a former leader has to be confirmed anew.
func TestATermBeginsToAsk(t *testing.T) {
	var source *watchedSource
	o, _, _ := outsideWorld(t, func(c *Config) { source = c.Sources[0].Source.(*watchedSource) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for term := range 3 {
		if err := o.Leader.Run(ctx, uint64(term)); err != nil || source.begun != term+1 {
			t.Errorf("term %d: begun %d times, %v", term, source.begun, err)
		}
	}
}

// A guard that lost what it knew, over a view from before, asks for lists as if nobody had, once: what it asked for in vain meanwhile is no
// reason to make it wait.
func TestAGuardThatForgotBeginsToAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var source *watchedSource
		o, _, _ := outsideWorld(t, func(c *Config) { source = c.Sources[0].Source.(*watchedSource) })
		look := func(want int) {
			t.Helper()
			for range 3 {
				time.Sleep(time.Second)
				o.look(t.Context())
			}
			if source.begun != want {
				t.Errorf("begun %d times, want %d", source.begun, want)
			}
		}
		look(0)
		for round := range 2 {
			source.older = true
			look(round)
			source.older = false
			look(round + 1)
		}
	})
}

// outsideWorld is a folder with a load balancer that is there and a group of one static backend, and what plans from it.
func outsideWorld(t *testing.T, change func(*Config)) (o *outsidePlanning, g *liveGroup, set func(world.BackendGroup)) {
	g = newLiveGroup(t)
	f := &watchedSource{}
	meta := func(name string) world.Meta {
		return world.Meta{ID: world.ID{Namespace: "shop", Name: name}, UID: name}
	}
	w := &f.w
	w.Drivers = []*world.Driver{{Meta: meta("clb"), URL: "http://192.0.2.7"}}
	w.LoadBalancers = []*world.OutsideBalancer{{
		Meta: meta("made"), DriverID: meta("clb").ID, Finalizer: true, Spec: []world.KV{{Key: "vip", Value: "198.51.100.21"}},
		Status: world.BalancerStatus{Created: true, Synced: true, Info: []world.KV{{Key: "vip", Value: "198.51.100.21"}}},
	}}
	set = func(b world.BackendGroup) {
		b.Meta, b.LoadBalancers, b.IsStatic = meta("web"), []string{"made"}, true
		w.BackendGroups = []*world.BackendGroup{&b}
	}
	set(world.BackendGroup{Static: []string{"192.0.2.8:80"}})
	c := Config{
		Sources: []NamedSource{{"folder", f}}, Record: g.state, Group: g, Clock: newWall(), Log: slog.New(slog.DiscardHandler),
		Drivers: func(string) (Driver, bool) { return &told{}, true }, Random: rand.New(rand.NewPCG(1, 2)), Limits: fastLimits(),
	}
	if change != nil {
		change(&c)
	}
	l, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return newOutsidePlanning(l), g, set
}

// What comes after a quiet time is registered before everything there is was judged; that is done next, and nothing that is
// absent goes before.
func TestWhatIsNewDoesNotWaitForAVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, g, set := outsideWorld(t, nil)
		look := func() (bindings int, judged bool) {
			t.Helper()
			before := o.judged.until
			time.Sleep(10 * time.Millisecond)
			o.look(t.Context())
			return g.state.Read().Count(fsm.TableBindings), o.judged.until != before
		}
		for range 5 {
			look()
		}
		time.Sleep(9 * time.Second)
		set(world.BackendGroup{Static: []string{"192.0.2.8:80", "192.0.2.9:80"}})
		if n, judged := look(); n != 2 || judged {
			t.Errorf("%d bindings at first, want 2; judged before: %v", n, judged)
		}
		if _, judged := look(); !judged {
			t.Error("nothing was judged afterwards")
		}
	})
}

// An operator's word that the cluster was set back has everything listed anew before the next plan, however new the last verdict is, and also
// where the plan of Services acts on that word first.
func TestEverythingIsListedAnewOnceARewindIsAccepted(t *testing.T) {
	for what, byOthers := range map[string]bool{"here": false, "by the other plan": true} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var source *watchedSource
				o, g, set := outsideWorld(t, func(c *Config) { source = c.Sources[0].Source.(*watchedSource) })
				look := func() {
					time.Sleep(10 * time.Millisecond)
					o.look(t.Context())
				}
				for range 100 {
					look()
				}
				if source.relisted > 0 {
					t.Fatalf("listed anew %d times, and nobody accepted anything", source.relisted)
				}
				g.commit(&fsm.AcceptRewind{Source: "folder"})
				if byOthers {
					g.commit(&fsm.ObserveView{Source: "folder", Cluster: "folder", Versions: []fsm.KindVersion{{Kind: string(world.KindPeer), Version: 1}}})
				}
				set(world.BackendGroup{Static: []string{"192.0.2.8:80"}, Balancing: weighing("2")}) // there is something to plan
				for range 200 {
					look()
				}
				if source.relisted != 1 {
					t.Errorf("listed anew %d times, want once", source.relisted)
				}
			})
		})
	}
	t.Run("of Services", func(t *testing.T) {
		var source *watchedSource
		o, g, _ := outsideWorld(t, func(c *Config) { source = c.Sources[0].Source.(*watchedSource) })
		g.commit(&fsm.ObserveView{Source: "folder", Cluster: "folder"})
		s := newSentry(o.Leader, PartServices)
		for range 2 {
			s.judge(time.Second, g.state.Read())
			g.commit(&fsm.AcceptRewind{Source: "folder"})
		}
		if source.relisted != 1 {
			t.Errorf("listed anew %d times by the next verdict, want once", source.relisted)
		}
	})
}

// While nobody knows whether another controller looks after outside load balancers, what the record has goes on, and nothing
// is added; it is as soon as that is known.
func TestNothingIsAddedWhileItIsNotKnownWhoseItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unsure := false
		o, g, set := outsideWorld(t, func(c *Config) { c.OutsideUnsure = func() bool { return unsure } })
		look := func() (weights []string, again time.Duration) {
			time.Sleep(10 * time.Millisecond)
			again = o.look(t.Context())
			for _, b := range fsm.List[*fsm.Binding](g.state.Read(), fsm.TableBindings) {
				for _, p := range b.Parameters {
					weights = append(weights, b.Address+" "+p.Value)
				}
			}
			return weights, again
		}
		set(world.BackendGroup{Static: []string{"192.0.2.8:80"}, Balancing: weighing("1")})
		for range 5 {
			look()
		}
		unsure = true
		for _, quiet := range []time.Duration{0, 9 * time.Second} { // planned with a verdict, and ahead of one
			time.Sleep(quiet)
			set(world.BackendGroup{Static: []string{"192.0.2.8:80", "192.0.2.9:80"}, Balancing: weighing(quiet.String())})
			look()
			time.Sleep(time.Second)
			have, again := look()
			if want := []string{"192.0.2.8:80 " + quiet.String()}; !slices.Equal(have, want) || again > oursAgain {
				t.Errorf("%v while it is not known, to be looked at again after %s; want %v", have, again, want)
			}
		}
		unsure = false
		if have, _ := look(); len(have) != 2 {
			t.Errorf("%v once it is known", have)
		}
	})
}

func weighing(weight string) world.Balancing {
	return world.Balancing{Parameters: []world.KV{{Key: "weight", Value: weight}}}
}
