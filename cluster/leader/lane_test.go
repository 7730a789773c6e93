// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// watchedGroup is a leader that planned a cluster in full and came to rest.
type watchedGroup struct {
	*planning
	source *liar
	clock  *hand
	group  *liveGroup
}

// step looks once and waits for the plan that this may have begun. It tells whether the short way was enough.
func (p *planning) step(ctx context.Context) (short bool) {
	p.look(ctx)
	if p.running == nil {
		return true
	}
	<-p.running.ended
	out := p.running.out
	if want := Plan(p.running.in); p.idle.upto != 0 && !reflect.DeepEqual(out, want) {
		panic(fmt.Sprintf("a plan came to %+v, and what stood for it is %+v", want, out))
	}
	p.finish(ctx)
	return false
}

func newWatchedGroup(t *testing.T) *watchedGroup {
	t.Helper()
	w := &watchedGroup{source: &liar{}, clock: &hand{now: time.Hour}, group: newLiveGroup(t)}
	l, err := New(Config{
		Sources: []NamedSource{{"kubernetes", w.source}}, Record: w.group.state, Group: w.group, Clock: w.clock, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.planning = newPlanning(l)
	for lists := range uint64(4) { // the guard wants to have seen more than one list
		w.show(versioned(100, lists+1))
		w.clock.now += 2 * time.Second
	}
	for range 5 {
		if w.step(t.Context()) {
			return w
		}
		w.clock.now += 100 * time.Millisecond
	}
	t.Fatal("it does not come to rest")
	return nil
}

// show has the leader look at a view, and tells whether the short way was enough.
func (w *watchedGroup) show(view world.World) (short bool) {
	w.source.view = view
	w.news.Add(1)
	return w.step(context.Background())
}

// versioned is the truth as a cluster lists it: every object has a version.
func versioned(version, lists uint64) world.World {
	w := truth(version, lists)
	for i := range w.Services {
		w.Services[i].Version = 50
	}
	for i := range w.EndpointSlices {
		w.EndpointSlices[i].Version = 50
	}
	for i := range w.Nodes {
		w.Nodes[i].Version = 50
	}
	return w
}

// watch is the truth as of the fourth list, with changes that a watch showed since.
func watch(version uint64, change func(*world.World)) world.World {
	w := versioned(100, 4)
	change(&w)
	for i := range w.Kinds {
		w.Kinds[i].Version = version
	}
	return w
}

func (w *watchedGroup) hops(t *testing.T, address string) string {
	t.Helper()
	return hopsOf(w.group.state.Read(), address)
}

// K51: an endpoint that becomes unready leaves at once.
func TestEndpointsTakeTheShortWay(t *testing.T) {
	w := newWatchedGroup(t)
	before := w.hops(t, "203.0.113.1")
	unready := func(v *world.World) {
		v.EndpointSlices[0].Version++
		v.EndpointSlices[0].Endpoints[0].Ready, v.EndpointSlices[0].Endpoints[0].Serving = false, false
	}
	if !w.show(watch(101, unready)) {
		t.Fatal("everything was planned for one endpoint")
	}
	if after := w.hops(t, "203.0.113.1"); before == after {
		t.Fatalf("next hops are %q still", after)
	}
	seen, _ := fsm.Get[*fsm.SourceView](w.group.state.Read(), fsm.TableViews, "kubernetes")
	if seen.Version(string(world.KindEndpointSlice)) != 101 {
		t.Fatalf("acted on 101, and told %+v", seen.Versions)
	}
	w.clock.now += settle
	w.group.entries = nil
	if w.step(t.Context()) {
		t.Fatal("no full plan follows")
	}
	for _, p := range slices.Concat(w.group.entries...) {
		if _, ok := p.Command.(*fsm.FinishWithdrawal); !ok { // there is no member that it has to wait for
			t.Errorf("the full plan had %s to add", spell(p.Command))
		}
	}
}

func TestOnlyWhatAWatchShowsOfEndpointsTakesTheShortWay(t *testing.T) {
	for name, view := range map[string]world.World{
		"slice-gone": watch(101, func(v *world.World) { v.EndpointSlices = v.EndpointSlices[1:] }),
		"slice-new": watch(101, func(v *world.World) {
			more := v.EndpointSlices[0]
			more.Name += "-more"
			v.EndpointSlices = slices.Insert(v.EndpointSlices, 1, more)
		}),
		"slice-older": watch(101, func(v *world.World) { v.EndpointSlices[0].Version-- }),
		"kind-older":  watch(99, func(*world.World) {}),
		"listed-anew": versioned(101, 5),
		"incomplete": watch(101, func(v *world.World) {
			v.Complete, v.Kinds = false, slices.Clone(v.Kinds)
			v.Kinds[slices.IndexFunc(v.Kinds, func(k world.KindView) bool { return k.Kind == world.KindPool })].Complete = false
		}),
		"foreign":      watch(101, func(v *world.World) { v.Cluster = "theirs" }),
		"service-gone": watch(101, func(v *world.World) { v.Services = v.Services[1:] }),
		"ports-changed": watch(101, func(v *world.World) {
			v.Services[1].Version++
			v.Services[1].Ports = []world.ServicePort{{Name: "p81", Protocol: world.TCP, Port: 81}}
		}),
		"node-unready": watch(101, func(v *world.World) { v.Nodes[0].Version++; v.Nodes[0].Ready = false }),
	} {
		t.Run(name, func(t *testing.T) {
			if newWatchedGroup(t).show(view) {
				t.Error("it took the short way")
			}
		})
	}
}

// What operators decide, and what else endpoints are not all of, is planned for in full with the next change, however small.
func TestWhatTheRecordSaysAnewIsPlannedForInFull(t *testing.T) {
	for name, c := range map[string]fsm.Command{
		"drain": &fsm.BeginDrain{Of: fsm.DrainNode, Name: "n1"},
		"move":  &fsm.BeginMove{Service: "default/s0", Node: "n1"},
		"hold":  &fsm.PutHold{ID: "services-1", Of: "services", Subjects: []string{"default/s0"}},
		"boot":  &fsm.RegisterBoot{Node: "n1", Boot: "another"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatchedGroup(t)
			w.group.commit(c)
			if w.show(watch(101, func(*world.World) {})) {
				t.Error("it took the short way")
			}
		})
	}
}
