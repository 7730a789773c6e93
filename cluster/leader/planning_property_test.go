// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// hand is a clock that a test moves.
type hand struct{ now time.Duration }

func (h *hand) Now() time.Duration                   { return h.now }
func (h *hand) Wall() time.Time                      { return time.UnixMilli(h.now.Milliseconds()) }
func (h *hand) After(time.Duration) <-chan time.Time { return closed() }

func closed() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}

// liar is a source that a test puts words into the mouth of.
type liar struct{ view world.World }

func (l *liar) World() world.World       { return l.view }
func (l *liar) Changed() <-chan struct{} { return nil }

// truth is a cluster with many Services, all of which are there all the time.
const truthServices = 12

func truth(version, lists uint64) world.World {
	s := &scene{kept: map[string]bool{}, group: &group{}}
	s.line("node n1 192.0.2.1")
	s.line("node n2 192.0.2.2")
	s.world.Services = append(s.world.Services, &world.Service{Meta: world.Meta{ID: world.ID{Namespace: "default", Name: "kubernetes"}, UID: "k"}, Type: world.ClusterIP})
	for i := range truthServices {
		s.line(fmt.Sprintf("service s%d ip=203.0.113.%d", i, i+1))
		s.line(fmt.Sprintf("endpoints s%d n1/10.0.0.%d n2/10.0.1.%d", i, i+1, i+1))
	}
	w := s.world
	w.AddressPolicies = append(w.AddressPolicies, anything())
	w.Source, w.Cluster, w.WholeCluster, w.Complete = "lying", "ours", true, true
	for _, k := range world.Kinds() {
		w.Kinds = append(w.Kinds, world.KindView{Kind: k, Listed: true, Complete: true, Version: version, Lists: lists})
	}
	w.Sort()
	return w
}

// lie makes a view that shows less than there is. What it says once and takes back, or too often to be believed.
func lie(t *rapid.T, w *world.World, kind string) {
	lost := func(string) bool { return rapid.Bool().Draw(t, "lost") }
	all := func(string) bool { return true }
	drop := lost
	switch kind {
	case "empty":
		w.Services, w.EndpointSlices, w.Nodes = nil, nil, nil
		return
	case "mass":
		drop = all
	case "partial":
		for i := range w.Kinds {
			w.Kinds[i].Complete = false
		}
		w.Complete = false
	case "failing":
		for i := range w.Kinds {
			w.Kinds[i].Listed, w.Kinds[i].Complete = false, false
		}
		w.Complete, drop = false, all
	case "foreign":
		w.Cluster = "theirs"
	case "stale":
		for i := range w.Kinds {
			w.Kinds[i].Version = 1
		}
	}
	w.Services = slices.DeleteFunc(w.Services, func(s *world.Service) bool { return s.Name != "kubernetes" && drop(s.Name) })
	w.EndpointSlices = slices.DeleteFunc(w.EndpointSlices, func(s *world.EndpointSlice) bool { return drop(s.Name) })
	if kind != "mass" {
		w.Nodes = slices.DeleteFunc(w.Nodes, func(n *world.Node) bool { return n.Name != "n1" && drop(n.Name) })
	}
}

// S12, from the source to the record: an empty, partial, failing, foreign or stale view, a single list that lacks
// objects, and a list that lacks nearly all of them however often it is repeated, take nothing away. A new leader, who
// remembers nothing, is not fooled either.
func TestPropertyViewsThatLieTakeNothingAway(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		g, source, clock := newLiveGroup(t), &liar{}, &hand{now: time.Hour}
		l, err := New(Config{
			Sources: []NamedSource{{"lying", source}}, Record: g.state, Group: g, Clock: clock, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		leader := newPlanning(l)
		version, lists := uint64(100), uint64(1)
		look := func(w world.World) {
			source.view = w
			leader.news.Add(1)
			for range 3 {
				leader.step(context.Background())
			}
			clock.now += time.Duration(rapid.SampledFrom([]int{10, 900, 1100, 5000, 60_000}).Draw(t, "pause")) * time.Millisecond
		}
		look(truth(version, lists))
		want := routesOf(g.state.Read())
		if len(want) != truthServices {
			t.Fatalf("%d routes to begin with", len(want))
		}
		for range rapid.IntRange(1, 15).Draw(t, "views") {
			version, lists = version+1, lists+1
			w := truth(version, lists)
			kind := one(t, "view", "true", "empty", "partial", "failing", "foreign", "stale", "once", "mass", "leader")
			switch kind {
			case "true":
			case "leader":
				leader = newPlanning(l)
			case "mass":
				for range rapid.IntRange(1, 4).Draw(t, "times") {
					w := truth(version, lists)
					lie(t, &w, kind)
					look(w)
					version, lists = version+1, lists+1
				}
			default:
				lie(t, &w, kind)
				look(w)
				if kind == "once" { // the next list takes it back
					version, lists = version+1, lists+1
					look(truth(version, lists))
				}
			}
			if have := routesOf(g.state.Read()); !slices.Equal(have, want) {
				t.Fatalf("after %q: routes\n%v\nwant\n%v", kind, have, want)
			}
			look(truth(version+1, lists+1))
			version, lists = version+1, lists+1
			if have := routesOf(g.state.Read()); !slices.Equal(have, want) {
				t.Fatalf("with the truth after %q: routes\n%v\nwant\n%v", kind, have, want)
			}
		}
	})
}

func routesOf(v *fsm.View) (out []string) {
	for _, r := range fsm.List[*fsm.Route](v, fsm.TableRoutes) {
		out = append(out, fmt.Sprint(r.Prefix, " ", hopsOf(v, r.Prefix.Addr().String())))
	}
	return out
}
