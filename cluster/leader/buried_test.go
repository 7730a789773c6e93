// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// askedFor is a source that keeps what lists it was asked for.
type askedFor struct {
	liar
	kinds []world.Kind
}

func (a *askedFor) Relist(kinds ...world.Kind) { a.kinds = append(a.kinds, kinds...) }
func (a *askedFor) Begin()                     {}

// A Service whose deletion was acted on is not taken in again by whoever leads then, however often lists show it, before it was there by
// name; another one of its name is, at once. So is a Node.
func TestWhatEndedIsNotTakenInAgainUnasked(t *testing.T) {
	g, source, clock := newLiveGroup(t), &askedFor{}, &hand{now: time.Hour}
	lead := func() *planning {
		l, err := New(Config{
			Sources: []NamedSource{{"lying", source}}, Record: g.state, Group: g, Clock: clock, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		return newPlanning(l)
	}
	source.view = truth(100, 1)
	service, node := *source.view.Services[1], *source.view.Nodes[0]
	service.UID, node.UID = "of s", "of n"
	source.view.Services[1], source.view.Nodes[0] = &service, &node
	g.commit(
		&fsm.PutService{Service: fsm.Service{ID: fsm.ServiceID(service.ID.String()), UID: service.UID}}, &fsm.DeleteService{ID: fsm.ServiceID(service.ID.String()), UID: service.UID},
		&fsm.PutNode{ID: fsm.NodeID(node.Name), UID: node.UID}, &fsm.DeleteNode{ID: fsm.NodeID(node.Name)},
	)
	plan := func() (services, nodes bool) {
		t.Helper()
		p := lead()
		for range 4 {
			clock.now += 5 * time.Second
			for i := range source.view.Kinds {
				source.view.Kinds[i].Lists++
			}
			p.news.Add(1)
			p.step(t.Context())
		}
		_, services = fsm.Get[*fsm.Service](g.state.Read(), fsm.TableServices, service.ID.String())
		_, nodes = fsm.Get[*fsm.Node](g.state.Read(), fsm.TableNodes, node.Name)
		return services, nodes
	}
	for term := range 2 {
		if s, n := plan(); s || n {
			t.Fatalf("in term %d the Service was taken in: %t, the Node: %t", term, s, n)
		}
	}
	if n := len(fsm.List[*fsm.Service](g.state.Read(), fsm.TableServices)); n != truthServices-1 {
		t.Errorf("%d Services were taken in", n)
	}
	for _, kind := range []world.Kind{world.KindService, world.KindNode} {
		if !slices.Contains(source.kinds, kind) {
			t.Errorf("no %s was asked for", kind)
		}
	}
	another := service
	another.UID = "of another"
	source.view.Services = slices.Clone(source.view.Services)
	source.view.Services[1] = &another
	source.view.Vouched = []world.Ref{node.Ref(world.KindNode)}
	if s, n := plan(); !s || !n {
		t.Errorf("another Service was taken in: %t, the Node that is there by name: %t", s, n)
	}
}

// A Service that is being taken back is not served again because a list shows it, and is once it is there by name: its type was changed to and
// fro.
func TestWhatIsGoingIsServedAgainOnceItIsThereByName(t *testing.T) {
	w := newWatchedGroup(t)
	w.step(t.Context())
	id := fsm.List[*fsm.Service](w.group.state.Read(), fsm.TableServices)[0].ID
	going := func() bool {
		s, ok := fsm.Get[*fsm.Service](w.group.state.Read(), fsm.TableServices, string(id))
		return !ok || s.Deleting
	}
	i := slices.IndexFunc(w.source.view.Services, func(s *world.Service) bool { return s.ID.String() == string(id) })
	named := *w.source.view.Services[i]
	named.UID = "u"
	step := func() {
		for range 3 {
			w.source.view.Services = slices.Clone(w.source.view.Services)
			next := named
			w.source.view.Services[i] = &next
			for k := range w.source.view.Kinds {
				w.source.view.Kinds[k].Lists++
			}
			w.news.Add(1)
			w.clock.now = max(w.clock.now+5*time.Second, w.lane.due, w.notBefore)
			w.step(t.Context())
		}
	}
	step()
	named.Type, named.Headless = world.ClusterIP, true
	step()
	if !going() {
		t.Fatal("a Service of another type is served")
	}
	named.Type, named.Headless = world.LoadBalancer, false
	step()
	if !going() {
		t.Error("a list alone had it served again")
	}
	w.source.view.Vouched = []world.Ref{named.Ref(world.KindService)}
	step()
	if going() {
		t.Error("it is not served though it is there by name")
	}
}
