// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// The guard of outside load balancers is asked about what the record's drivers, load balancers and bindings are there
// for, each once, and about nothing that is on its way out.
func TestKnownOfOutsideNamesWhatBindingsAreThereFor(t *testing.T) {
	g := newGroup(t)
	identity := []fsm.KV{{Key: "id", Value: "1"}}
	adopt := func(id, balancer, owner string, leaving bool, backend fsm.Backend) *fsm.AdoptBinding {
		return &fsm.AdoptBinding{Leaving: leaving, UID: "r-" + id, Registered: true, Binding: fsm.PutBinding{
			ID: fsm.BindingID(id), Balancer: fsm.BalancerID(balancer), Owner: owner, Address: id, Backend: backend}}
	}
	pod := func(name, uid string, port uint32) fsm.Backend {
		return fsm.Backend{Kind: "Pod", Name: name, UID: uid, Port: port, Protocol: "TCP"}
	}
	put := func(id string) *fsm.PutLoadBalancer {
		return &fsm.PutLoadBalancer{ID: fsm.BalancerID(id), Driver: "shop/f5", Info: identity}
	}
	g.must(
		&fsm.PutDriver{Driver: fsm.Driver{Name: "shop/f5", UID: "d1", URL: "http://f5.example"}},
		put("LoadBalancer/shop/edge/l1"), put("Bind/shop/all/b1/x"), put("Bind/shop/all/b1/y"), put("LoadBalancer/shop/going/l2"),
		adopt("shop/r1", "LoadBalancer/shop/edge/l1", "BackendGroup/shop/web/g1", false, pod("web-0", "p1", 80)),
		adopt("shop/r2", "LoadBalancer/shop/edge/l1", "BackendGroup/shop/web/g1", false, pod("web-0", "p1", 443)),
		adopt("shop/r3", "LoadBalancer/shop/edge/l1", "BackendGroup/shop/web/g1", false, pod("web-0", "p2", 80)),
		adopt("shop/r4", "LoadBalancer/shop/edge/l1", "BackendGroup/shop/gone/g2", true, pod("web-9", "p9", 80)),
		adopt("shop/r5", "Bind/shop/all/b1/x", "Bind/shop/all/b1", false, fsm.Backend{Kind: "Service", Name: "api", Port: 80, Node: "n1", NodePort: 30080}),
		adopt("shop/r6", "Bind/shop/all/b1/x", "Bind/shop/all/b1", false, fsm.Backend{Kind: "Static"}),
		&fsm.DeleteLoadBalancer{ID: "LoadBalancer/shop/going/l2"},
		&fsm.PutService{Service: fsm.Service{ID: "shop/other", UID: "s1"}},
		&fsm.PutHold{ID: "service-1", Of: "Service", Subjects: []string{"shop/other uid=s1"}, Why: "many"},
		&fsm.PutHold{ID: "redirects-pod-1", Of: "Pod", Subjects: []string{"shop/web-0 uid=p1"}, Why: "many"},
		&fsm.PutHold{ID: "outside-pod-1", Of: "Pod", Subjects: []string{"shop/web-0 uid=p1"}, Why: "many"},
	)
	known := KnownOf(g.state.Read(), "kubernetes", PartOutside)
	var got []string
	for _, o := range known.Objects {
		got = append(got, strings.TrimSpace(fmt.Sprint(o.Kind, " ", o.ID, " ", o.UID)))
	}
	want := []string{"BackendGroup shop/web g1", "Bind shop/all b1", "LoadBalancer shop/edge l1", "LoadBalancerDriver shop/f5 d1",
		"Node n1", "Pod shop/web-0 p1", "Pod shop/web-0 p2", "Service shop/api"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(known.Holds) != 1 || known.Holds[0].ID != "outside-pod-1" {
		t.Errorf("holds %+v", known.Holds)
	}
	if services := KnownOf(g.state.Read(), "kubernetes", PartServices); len(services.Objects) != 1 || len(services.Holds) != 1 || services.Holds[0].ID != "service-1" {
		t.Errorf("the plan of Services is asked about %+v", services)
	}
}

// The objects that were kept while the record changed are those that it is looked through for.
func TestPropertyKnownObjectsAreKeptAsTheRecordHasThem(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		g, kept := newGroup(t), outsideObjects{}
		of := func(what string, choices ...string) string { return rapid.SampledFrom(choices).Draw(t, what) }
		try := func(c fsm.Command) { g.propose([]fsm.Proposal{{Actor: "test", Command: c}}, 1) }
		var views []*fsm.View
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			lb := fsm.BalancerID(of("balancer", "LoadBalancer/shop/edge/l1", "Bind/shop/all/b1/x", "Bind/shop/all/b1/y", "odd"))
			id := fsm.BindingID(of("binding", "shop/r1", "shop/r2", "blog/r1"))
			switch of("what", "driver", "no driver", "balancer", "no balancer", "binding", "binding", "binding", "remove", "forget") {
			case "driver":
				try(&fsm.PutDriver{Driver: fsm.Driver{Name: "shop/f5", UID: of("uid", "d1", "d2"), URL: "http://f5.example"}})
			case "no driver":
				try(&fsm.DeleteDriver{Name: "shop/f5"})
			case "balancer":
				try(&fsm.PutLoadBalancer{ID: lb, Driver: "shop/f5", Info: []fsm.KV{{Key: "id", Value: string(lb)}}})
			case "no balancer":
				try(&fsm.DeleteLoadBalancer{ID: lb})
				try(&fsm.ForgetLoadBalancer{ID: lb})
			case "binding":
				if rapid.Bool().Draw(t, "another") {
					try(&fsm.Forget{ID: id})
				}
				b := fsm.Backend{Kind: of("kind", "Pod", "Service", "Static"), Name: of("name", "web-0", "web-1"), Port: 80, Protocol: "TCP"}
				switch b.Kind {
				case "Pod":
					b.UID = of("pod", "p1", "p2")
				case "Service":
					b.Node, b.NodePort = of("node", "n1", "n2"), 30080
				case "Static":
					b = fsm.Backend{Kind: "Static"}
				}
				owner := of("owner", "", "BackendGroup/shop/web/g1", "BackendGroup/shop/web/g2", "Bind/shop/all/b1")
				try(&fsm.AdoptBinding{UID: "r-" + string(id), Registered: true, Binding: fsm.PutBinding{ID: id, Balancer: lb, Owner: owner, Address: string(id), Backend: b}})
			case "remove":
				try(&fsm.RemoveBinding{ID: id})
			case "forget":
				try(&fsm.Forget{ID: id})
			}
			views = append(views, g.state.Read())
			if rapid.Bool().Draw(t, "look") {
				at := rapid.SampledFrom([]int{len(views) - 1, rapid.IntRange(0, len(views)-1).Draw(t, "earlier")}).Draw(t, "view")
				if got, want := kept.follow(views[at]), outsideOf(views[at]); !slices.Equal(got, want) {
					t.Fatalf("kept %v\nanew %v", got, want)
				}
			}
		}
	})
}

// What another source is asked about is left out of what one is asked about, and stays known.
func TestWhatAnotherSourceIsAskedAboutStaysKnown(t *testing.T) {
	known := thousand()
	before := slices.Clone(known.Objects)
	o := origins{of: map[origin]int{{world.KindPod, podName(3)}: 1}}
	if mine := o.known(0, *known); len(mine.Objects) != 999 || slices.ContainsFunc(mine.Objects, func(k KnownObject) bool { return k.ID == podName(3) }) {
		t.Errorf("asked about %d", len(mine.Objects))
	}
	if !slices.Equal(known.Objects, before) {
		t.Error("what is known changed")
	}
}

// A view is looked through in whatever order it is asked about.
func TestPropertyPodsOfAViewAreFoundInAnyOrder(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		w := &world.World{}
		there := map[world.ID]bool{}
		for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, 60), 0, 60, rapid.ID[int]).Draw(t, "pods") {
			there[podName(i)] = true
			w.Pods = append(w.Pods, &world.Pod{Meta: world.Meta{ID: podName(i)}})
		}
		w.Sort()
		asked := rapid.SliceOfN(rapid.IntRange(0, 62), 0, 80).Draw(t, "asked")
		if rapid.Bool().Draw(t, "in order") {
			slices.Sort(asked)
		}
		j := judgement{w: w}
		for _, i := range asked {
			if pod := j.pod(podName(i)); (pod != nil) != there[podName(i)] || pod != nil && pod.ID != podName(i) {
				t.Fatalf("asked for %s: %+v", podName(i), pod)
			}
		}
	})
}

// outsideView is a whole cluster with pods web-FROM to web-999, at the given list.
func outsideView(from int, lists uint64) world.World {
	w := world.World{Cluster: "c1", WholeCluster: true, Complete: true, Nodes: []*world.Node{{Meta: world.Meta{ID: world.ID{Name: "n1"}}}},
		Services: []*world.Service{{Meta: world.Meta{ID: world.ID{Namespace: "default", Name: "kubernetes"}}}}}
	for _, k := range world.Kinds() {
		w.Kinds = append(w.Kinds, world.KindView{Kind: k, Listed: true, Complete: true, Lists: lists, Version: 100 + lists})
	}
	for i := from; i < 1000; i++ {
		w.Pods = append(w.Pods, &world.Pod{Meta: world.Meta{ID: podName(i), UID: fmt.Sprint("p", i), Version: 1}})
	}
	return PartOutside.View(w)
}

func podName(i int) world.ID { return world.ID{Namespace: "shop", Name: fmt.Sprintf("web-%03d", i)} }

// thousand is a record of bindings of a thousand pods.
func thousand() *Known {
	known := &Known{Part: PartOutside, Cluster: "c1"}
	for i := range 1000 {
		known.Objects = append(known.Objects, KnownObject{world.KindPod, podName(i), fmt.Sprint("p", i)})
	}
	return known
}

// Half of a thousand pods that were deleted while nobody looked are let go after two complete lists; one more is a mass
// change, which an operator has to see.
func TestGuardLetsHalfOfAThousandPodsGoAndHoldsMore(t *testing.T) {
	for gone, held := range map[int]bool{500: false, 501: true} {
		guard, known := NewGuard(Limits{}), thousand()
		w := outsideView(gone, 1)
		if v := guard.Judge(0, &w, known); !v.Act || len(v.Gone) != 0 || len(v.Waiting) != gone || !slices.Contains(v.Relist, world.KindPod) {
			t.Fatalf("%d absent from one list: %d gone, %d wait, relist %v", gone, len(v.Gone), len(v.Waiting), v.Relist)
		}
		w = outsideView(gone, 2)
		v := guard.Judge(2*time.Second, &w, known)
		if !held {
			if len(v.Gone) != gone || len(v.Hold) != 0 || !v.MayEnd(known.Objects[0]) || !v.MayRemove(world.KindPod, podName(gone-1)) || v.MayRemove(world.KindPod, podName(gone)) {
				t.Errorf("%d absent twice: %d gone, holds %+v", gone, len(v.Gone), v.Hold)
			}
			continue
		}
		if len(v.Gone) != 0 || len(v.Hold) != 1 || len(v.Hold[0].Subjects) != gone || v.Hold[0].Kind != world.KindPod || !strings.HasPrefix(v.Hold[0].ID, "outside-pod-") {
			t.Fatalf("%d absent twice: %d gone, holds %d", gone, len(v.Gone), len(v.Hold))
		}
		known.Holds = []KnownHold{{ID: v.Hold[0].ID, Kind: world.KindPod, Subjects: v.Hold[0].Subjects, Released: true}}
		if v = guard.Judge(3*time.Second, &w, known); len(v.Gone) != gone {
			t.Errorf("released, and %d gone", len(v.Gone))
		}
	}
}

// The record may have a pod that ended beside the one that has its name now: what may end is the one and not the other.
func TestGuardTellsTheLivesOfAPodApart(t *testing.T) {
	guard := NewGuard(Limits{})
	one, two := KnownObject{world.KindPod, podName(0), "a"}, KnownObject{world.KindPod, podName(0), "b"}
	known := &Known{Part: PartOutside, Cluster: "c1", Objects: []KnownObject{one, two}}
	w := outsideView(1, 1)
	w.Deleted = []world.Deletion{{Ref: world.Ref{Kind: world.KindPod, ID: podName(0), UID: "a"}, How: world.ByWatch}}
	if v := guard.Judge(0, &w, known); !v.MayEnd(one) || v.MayEnd(two) {
		t.Errorf("may end: %v and %v", v.MayEnd(one), v.MayEnd(two))
	}
}

// What outside load balancers are made of stops no plan of Services, and the other way round.
func TestPartsDoNotStopEachOther(t *testing.T) {
	w := outsideView(0, 1)
	all := world.World{Cluster: "c1", WholeCluster: true, Complete: true, Nodes: w.Nodes, Services: w.Services, Pods: w.Pods,
		Pools: []*world.Pool{{Meta: world.Meta{ID: world.ID{Name: "p"}}}}}
	broken := func(kind world.Kind) world.World {
		b := all
		b.Kinds = nil
		for _, k := range world.Kinds() {
			ok := k != kind
			b.Kinds = append(b.Kinds, world.KindView{Kind: k, Listed: ok, Complete: ok, Lists: 1, Version: 7})
		}
		b.Complete = false
		return b
	}
	for kind, acts := range map[world.Kind][3]bool{
		world.KindPod: {true, false, false}, world.KindPool: {false, true, true}, world.KindService: {false, false, false}, world.KindDriver: {true, false, true},
		world.KindBalancingPolicy: {true, true, false}, world.KindLocalRedirect: {true, true, false},
	} {
		for part, want := range acts {
			view := Part(part).View(broken(kind))
			v := NewGuard(Limits{}).Judge(0, &view, &Known{Part: Part(part), Cluster: "c1"})
			if v.Act != want || view.Complete != want {
				t.Errorf("without %s part %d acts: %v, complete: %v; want %v (%s)", kind, part, v.Act, view.Complete, want, v.Why)
			}
		}
	}
	if got := PartServices.View(all); len(got.Pods) != 0 || len(got.Pools) != 1 {
		t.Errorf("the view of Services: %d pods, %d pools", len(got.Pods), len(got.Pools))
	}
	if got := PartOutside.View(all); len(got.Pods) != 1000 || len(got.Pools) != 0 || len(got.Services) != 1 {
		t.Errorf("the view of outside load balancers: %d pods, %d pools", len(got.Pods), len(got.Pools))
	}
	all.BalancingPolicies, all.Drivers = make([]*world.BalancingPolicy, 1), make([]*world.Driver, 1)
	if got := PartPolicies.View(all); len(got.Pods) != 1000 || len(got.Pools)+len(got.Drivers) != 0 || len(got.Services) != 1 || len(got.BalancingPolicies) != 1 {
		t.Errorf("the view of policies: %d pods, %d pools, %d policies", len(got.Pods), len(got.Pools), len(got.BalancingPolicies))
	}
	for _, part := range []Part{PartServices, PartOutside} {
		if got := part.View(all); len(got.BalancingPolicies) != 0 {
			t.Errorf("part %d is shown policies", part)
		}
	}
}

// What another plan acted on stays in the record, and is no reason to say anew what this one acted on.
func TestPlanSaysOnlyUpToWhereItActedItself(t *testing.T) {
	s := newScene(t)
	for _, line := range []string{"node n1 192.0.2.1", "service web ip=203.0.113.10", "endpoints web n1/10.0.0.1"} {
		s.line(line)
	}
	observed := func(version uint64, port uint16) (observations int) {
		s.world.Services[0].Ports[0].Port = port
		in := s.input()
		view := PartServices.View(*in.Views[0].World)
		for i := range view.Kinds {
			view.Kinds[i].Version = version
		}
		in.Views[0].World, in.Record = &view, s.group.state.Read()
		for _, p := range all(Plan(in)) {
			if o, ok := p.Command.(*fsm.ObserveView); ok {
				observations++
				for _, k := range o.Versions {
					if k.Kind == string(world.KindPod) {
						t.Errorf("the plan of Services acted on pods up to %d", k.Version)
					}
				}
			}
		}
		s.group.settle(in)
		return observations
	}
	if n := observed(100, 80); n != 1 {
		t.Errorf("%d observations with the first plan", n)
	}
	s.group.must(&fsm.ObserveView{Source: "script", Cluster: s.world.Cluster, Versions: []fsm.KindVersion{{Kind: string(world.KindPod), Version: 900}}})
	if n := observed(100, 8080); n != 0 {
		t.Errorf("%d observations of what was observed", n)
	}
	if n := observed(101, 8081); n != 1 {
		t.Errorf("%d observations of something newer", n)
	}
	view, _ := fsm.Get[*fsm.SourceView](s.group.state.Read(), fsm.TableViews, "script")
	if view.Version(string(world.KindPod)) != 900 || view.Version(string(world.KindService)) != 101 {
		t.Errorf("got %+v", view.Versions)
	}
}

// What the guard is asked costs the plan of outside load balancers little, however many bindings there are.
func BenchmarkKnownOfOutside(b *testing.B) {
	g := newGroup(b)
	g.must(&fsm.PutLoadBalancer{ID: "LoadBalancer/shop/edge/l1", Driver: "shop/f5", Info: []fsm.KV{{Key: "id", Value: "1"}}})
	var many []fsm.Proposal
	for i := range 10_000 {
		many = append(many, fsm.Proposal{Actor: "test", Command: &fsm.PutBinding{
			ID: fsm.BindingID(fmt.Sprintf("shop/%032x", i)), Balancer: "LoadBalancer/shop/edge/l1", Owner: fmt.Sprintf("BackendGroup/shop/web-%d/g%d", i%100, i%100),
			Address: fmt.Sprint("10.0.0.1:", i), Backend: fsm.Backend{Kind: "Pod", Name: podName(i / 10).Name, UID: fmt.Sprint("p", i/10), Port: uint32(80 + i%10)},
		}})
	}
	g.propose(many, 500)
	record := g.state.Read()
	w, guard := outsideView(0, 1), NewGuard(Limits{})
	b.ReportAllocs()
	for b.Loop() {
		known := KnownOf(record, "kubernetes", PartOutside)
		if v := guard.Judge(0, &w, &known); len(known.Objects) < 1_000 || !v.Act {
			b.Fatal(len(known.Objects), v.Why)
		}
	}
}

// Each part judges every ten seconds, in a cluster of any size: what the record holds nothing of is not looked at.
func TestAGuardLooksAtNothingThatItIsNotAskedAbout(t *testing.T) {
	w := outsideView(0, 1)
	w.Services = append(w.Services, nil) // who looks there ends
	known := &Known{Part: PartOutside, Cluster: "c1", Objects: []KnownObject{{world.KindNode, world.ID{Name: "n1"}, ""}, {world.KindNode, world.ID{Name: "n2"}, ""}}}
	if v := NewGuard(Limits{}).Judge(0, &w, known); !v.Act || len(v.Waiting)+len(v.Gone)+len(v.AddOnly) == 0 {
		t.Errorf("the verdict is %+v", v)
	}
}
