// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// redirecting is a loop that plans policies, of what one source says.
type redirecting struct {
	*policyPlanning
	t      failer
	group  *liveGroup
	source *liar
	clock  *hand
	lists  uint64
}

func newRedirecting(t failer, options Options) *redirecting {
	r := &redirecting{t: t, group: newLiveGroup(t), source: &liar{}, clock: &hand{now: time.Hour}, lists: 1}
	r.lead(options)
	return r
}

// lead has a new leader, who remembers nothing.
func (r *redirecting) lead(options Options) {
	l, err := New(Config{
		Sources: []NamedSource{{"lying", r.source}}, Record: r.group.state, Group: r.group, Clock: r.clock, Options: options, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		r.t.Fatalf("%v", err)
	}
	r.policyPlanning = newPolicyPlanning(l)
}

// show has the source say something, as a new list of everything, and the loop look until it has nothing to do.
func (r *redirecting) show(w world.World) {
	r.lists++
	for i := range w.Kinds {
		w.Kinds[i].Lists, w.Kinds[i].Version = r.lists, 100+r.lists
	}
	r.source.view = w
	r.news.Add(1)
	for range 3 {
		r.look(context.Background())
		r.clock.now += 10 * time.Millisecond
	}
}

// held is what the record says of each policy: places, backends and why it waits.
func (r *redirecting) held() (out []string) {
	for _, p := range fsm.List[*fsm.Policy](r.group.state.Read(), fsm.TablePolicies) {
		line := fmt.Sprint(p.ID, " ", p.Number)
		for _, c := range p.Captures {
			line += fmt.Sprintf(" %s:%d", c.Address, c.Port.Number)
		}
		for _, b := range p.Backends {
			line += fmt.Sprintf(" %s/%t", b.Address, b.Ready)
		}
		out = append(out, strings.TrimSpace(line+" "+p.Pending.Code))
	}
	return out
}

// honest is a cluster with two policies and their pods.
func honest() world.World {
	w := world.World{Source: "lying", Cluster: "ours", WholeCluster: true, Complete: true}
	named := func(ns, name string) world.Meta {
		return world.Meta{ID: world.ID{Namespace: ns, Name: name}, UID: name + "-uid", Version: 1, Created: 1}
	}
	w.Services = []*world.Service{{Meta: named("default", "kubernetes"), Type: world.ClusterIP}, {
		Meta: named("shop", "web"), Type: world.ClusterIP, ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.1")},
		Ports: []world.ServicePort{{Name: "p", Port: 80, Protocol: world.TCP}},
	}}
	w.Nodes = []*world.Node{{Meta: named("", "n1"), Ready: true}}
	ports := []world.RedirectPort{{Name: "p", Port: 80, Protocol: world.TCP, Target: 8080}}
	choose := world.Selector{Labels: []world.KV{{Key: "app", Value: "web"}}}
	w.BalancingPolicies = []*world.BalancingPolicy{{Meta: named("", "all"), Redirect: world.Redirect{
		ServiceID: 7, Service: world.ID{Namespace: "shop", Name: "web"}, Ports: ports, Mode: world.ToPods, Pods: choose,
	}}}
	w.LocalRedirectPolicies = []*world.LocalRedirectPolicy{{Meta: named("", "near"), Redirect: world.Redirect{
		Address: netip.MustParseAddr("169.254.77.1"), Ports: ports, Mode: world.ToLocalPods, Pods: choose,
	}}}
	for i := range 12 {
		w.Pods = append(w.Pods, &world.Pod{Meta: named("shop", fmt.Sprintf("web-%02d", i)), IP: fmt.Sprintf("10.0.0.%d", i+1), Node: "n1", Ready: true, Running: true, Labels: choose.Labels})
	}
	for _, k := range world.Kinds() {
		w.Kinds = append(w.Kinds, world.KindView{Kind: k, Listed: true, Complete: true})
	}
	w.Sort()
	return w
}

// What a live watch shows comes to the record and leaves it; where nobody carries policies out there are none.
func TestPoliciesComeToTheRecordAndLeaveIt(t *testing.T) {
	r := newRedirecting(t, Options{BalancingPolicies: true})
	w := honest()
	w.Pods = w.Pods[:2]
	r.show(w)
	both := []string{"BalancingPolicy/all 7 10.96.0.1:80 10.0.0.1/true 10.0.0.2/true", "LocalRedirectPolicy/near 1 169.254.77.1:80 10.0.0.1/true 10.0.0.2/true"}
	if got := r.held(); !slices.Equal(got, both) {
		t.Fatalf("got  %q\nwant %q", got, both)
	}
	w.Pods = slices.Clone(w.Pods) // all else is the same, and the next plan of its own accord is far
	quiet := *w.Pods[1]
	quiet.Ready, quiet.Version = false, 2
	w.Pods[1] = &quiet
	r.show(w)
	if got := r.held(); !strings.HasSuffix(got[0], "10.0.0.1/true 10.0.0.2/false") {
		t.Errorf("a pod that is not ready: %q", got)
	}
	w = w.Clone()
	w.Deleted = append(w.Deleted, world.Deletion{Ref: w.LocalRedirectPolicies[0].Ref(world.KindLocalRedirect), How: world.ByWatch},
		world.Deletion{Ref: w.Pods[0].Ref(world.KindPod), How: world.ByWatch})
	w.LocalRedirectPolicies, w.Pods = nil, w.Pods[1:]
	r.show(w)
	if got := r.held(); !slices.Equal(got, []string{"BalancingPolicy/all 7 10.96.0.1:80 10.0.0.2/false"}) {
		t.Errorf("after deletions: %q", got)
	}
	if n := committed[*fsm.ObserveView](r.group); n == 0 {
		t.Error("nothing says how far the source was acted on")
	}
	r.lead(Options{})
	r.show(w)
	if got := r.held(); len(got) > 0 {
		t.Errorf("carried out by nobody: %q", got)
	}
}

// What a policy is there for can be asked for, each object once: its policy, and what that chose.
func TestKnownOfPoliciesIsWhatTheirRedirectsAreThereFor(t *testing.T) {
	g := newGroup(t)
	at := netip.MustParseAddr("192.0.2.1")
	captures := []fsm.Capture{{Address: at, Port: fsm.Port{Protocol: fsm.TCP, Number: 80}, Target: 80}}
	g.must(
		&fsm.PutPolicy{Policy: fsm.Policy{ID: "BalancingPolicy/a", UID: "u1", Service: "shop/web", Captures: captures, Mode: "hostPort", Nodes: []fsm.NodeID{"n1"},
			Backends: []fsm.PolicyBackend{{Address: at, Node: "n2", Pod: "shop/web-0", UID: "p1"}}}},
		&fsm.PutPolicy{Policy: fsm.Policy{ID: "BalancingPolicy/b", UID: "u2", Captures: captures, Mode: "address", Backends: []fsm.PolicyBackend{{Address: at}}}},
		&fsm.PutPolicy{Policy: fsm.Policy{ID: "LocalRedirectPolicy/a", UID: "u3", Service: "shop/absent", Mode: "local",
			Backends: []fsm.PolicyBackend{{Address: at, Node: "n3", Pod: "shop/web-0", UID: "p1"}, {Address: at, Node: "n3", Pod: "shop/web-0", UID: "p2"}}}},
	)
	for _, id := range []fsm.HoldID{"pod-1", "outside-pod-1", "redirects-pod-1"} {
		g.must(&fsm.PutHold{ID: id, Of: "Pod", Subjects: []string{"shop/web-0 uid=p1"}, Why: "many"})
	}
	known := KnownOf(g.state.Read(), "kubernetes", PartPolicies)
	var got []string
	for _, o := range known.Objects {
		got = append(got, strings.TrimSpace(fmt.Sprint(o.Kind, " ", o.ID, " ", o.UID)))
	}
	want := []string{"BalancingPolicy a u1", "BalancingPolicy b u2", "LocalRedirectPolicy a u3", "Node n1", "Node n2", "Pod shop/web-0 p1", "Pod shop/web-0 p2", "Service shop/web"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(known.Holds) != 1 || known.Holds[0].ID != "redirects-pod-1" {
		t.Errorf("holds %+v", known.Holds)
	}
}

// Where there are no policies nothing is judged, proposed or asked for.
func TestNothingIsDoneWhereThereAreNoPolicies(t *testing.T) {
	r := newRedirecting(t, Options{BalancingPolicies: true})
	w := honest()
	w.BalancingPolicies, w.LocalRedirectPolicies = nil, nil
	r.show(w)
	if len(r.group.entries) > 0 || r.judged.verdicts != nil {
		t.Errorf("proposed %v", r.group.entries)
	}
}

// What did not get through is proposed again soon, though nothing has changed.
func TestPoliciesThatWereNotCommittedAreProposedAgain(t *testing.T) {
	r := newRedirecting(t, Options{BalancingPolicies: true})
	r.group.set(func() { r.group.fail = errors.New("no majority") })
	r.show(honest())
	if r.group.failed == 0 || len(r.held()) > 0 {
		t.Fatalf("%d failed, held %q", r.group.failed, r.held())
	}
	r.group.set(func() { r.group.fail = nil })
	r.clock.now += time.Second
	r.look(t.Context())
	if len(r.held()) != 2 {
		t.Errorf("held %q", r.held())
	}
}

// What a policy waits for is told among all that waits.
func TestStatusTellsWhatPoliciesWaitFor(t *testing.T) {
	r := newRedirecting(t, Options{BalancingPolicies: true})
	w := honest()
	w.Services = w.Services[:1]
	r.show(w)
	got := r.Status().Waiting
	if len(got) != 1 || got[0] != (Explanation{"redirects", "BalancingPolicy/all", "no-service", "there is no Service shop/web"}) {
		t.Errorf("got %+v", got)
	}
}

// S12, from the source to the record, for policies and their backends: an empty, partial, failing, foreign or stale view, a single list
// that lacks objects and one that lacks nearly all of them take nothing away; nor does a new leader.
func TestPropertyViewsThatLieTakeNoPolicyAway(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		r := newRedirecting(t, Options{BalancingPolicies: true})
		r.show(honest())
		want := r.held()
		if len(want) != 2 {
			t.Fatalf("to begin with %q", want)
		}
		for range rapid.IntRange(1, 10).Draw(t, "views") {
			w := honest()
			kind := one(t, "view", "true", "empty", "partial", "failing", "foreign", "once", "mass", "leader")
			lost := func(m world.Meta) bool {
				return m.Name != "kubernetes" && (kind == "mass" && m.Name != "n1" && m.Name != "all" && m.Name != "near" && m.Name != "web" || kind != "mass" && rapid.Bool().Draw(t, "lost"))
			}
			times := 1
			switch kind {
			case "leader":
				r.lead(Options{BalancingPolicies: true})
			case "empty":
				w.Services, w.Nodes, w.Pods, w.BalancingPolicies, w.LocalRedirectPolicies = nil, nil, nil, nil, nil
			case "partial", "failing":
				for i := range w.Kinds {
					w.Kinds[i].Complete, w.Kinds[i].Listed = false, kind == "partial"
				}
				w.Complete = false
			case "foreign":
				w.Cluster = "theirs"
			case "mass":
				times = rapid.IntRange(1, 4).Draw(t, "times")
			}
			if kind != "true" && kind != "leader" {
				w.Services = slices.DeleteFunc(w.Services, func(o *world.Service) bool { return lost(o.Meta) })
				w.Pods = slices.DeleteFunc(w.Pods, func(o *world.Pod) bool { return lost(o.Meta) })
				w.BalancingPolicies = slices.DeleteFunc(w.BalancingPolicies, func(o *world.BalancingPolicy) bool { return lost(o.Meta) })
				w.LocalRedirectPolicies = slices.DeleteFunc(w.LocalRedirectPolicies, func(o *world.LocalRedirectPolicy) bool { return lost(o.Meta) })
			}
			for range times {
				r.show(w.Clone())
				if got := r.held(); !slices.Equal(got, want) {
					t.Fatalf("after a view that is %s:\n%q\nwant\n%q", kind, got, want)
				}
				r.clock.now += time.Duration(one(t, "pause", 10, 1100, 60_000)) * time.Millisecond
			}
			r.show(honest())
			if got := r.held(); !slices.Equal(got, want) {
				t.Fatalf("with the truth after %s:\n%q\nwant\n%q", kind, got, want)
			}
		}
	})
}
