// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"log/slog"
	"math/rand/v2"
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

// watchedFolder is a source with a live watch: it lists once.
type watchedFolder struct{ *folder }

func (f watchedFolder) World() world.World {
	w := f.folder.World()
	for i := range w.Kinds {
		w.Kinds[i].Lists, w.Kinds[i].Version = 1, uint64(f.lists)
	}
	return w
}

// What comes after a quiet time is registered before everything there is was judged; that is done next, and nothing that is
// absent goes before.
func TestWhatIsNewDoesNotWaitForAVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, f := newLiveGroup(t), watchedFolder{newFolder(t)}
		meta := func(name string) world.Meta {
			return world.Meta{ID: world.ID{Namespace: "shop", Name: name}, UID: name}
		}
		group := world.BackendGroup{Meta: meta("web"), LoadBalancers: []string{"made"}, IsStatic: true, Static: []string{"192.0.2.8:80"}}
		w := &f.scene.world
		w.Drivers = []world.Driver{{Meta: meta("clb"), URL: "http://192.0.2.7"}}
		w.LoadBalancers = []world.OutsideBalancer{{
			Meta: meta("made"), DriverID: meta("clb").ID, Finalizer: true, Spec: []world.KV{{Key: "vip", Value: "198.51.100.21"}},
			Status: world.BalancerStatus{Created: true, Synced: true, Info: []world.KV{{Key: "vip", Value: "198.51.100.21"}}},
		}}
		w.BackendGroups = []world.BackendGroup{group}
		l, err := New(Config{
			Sources: []NamedSource{{"folder", f}}, Record: g.state, Group: g, Clock: newWall(), Log: slog.New(slog.DiscardHandler),
			Drivers: func(string) (Driver, bool) { return &told{}, true }, Random: rand.New(rand.NewPCG(1, 2)), Limits: fastLimits(),
		})
		if err != nil {
			t.Fatal(err)
		}
		o := newOutsidePlanning(l)
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
		group.Static = append(group.Static, "192.0.2.9:80")
		w.BackendGroups = []world.BackendGroup{group}
		if n, judged := look(); n != 2 || judged {
			t.Errorf("%d bindings at first, want 2; judged before: %v", n, judged)
		}
		if _, judged := look(); !judged {
			t.Error("nothing was judged afterwards")
		}
	})
}
