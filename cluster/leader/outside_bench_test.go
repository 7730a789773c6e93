// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// setClock shows what it is set to.
type setClock struct{ now time.Duration }

func (c *setClock) Now() time.Duration                   { return c.now }
func (c *setClock) After(time.Duration) <-chan time.Time { return nil }
func (c *setClock) Wall() time.Time                      { return time.UnixMilli(1) }

// crowd is a cluster of groups of a hundred pods each, all on one load balancer and bound, whose BackendRecords are written.
type crowd struct {
	*liveGroup
	clock *setClock
	now   world.World
	// deaf has what is proposed be accepted, and nothing come of it.
	deaf     bool
	proposed int
	planner  *outsidePlanning
}

func (c *crowd) World() world.World       { return c.now }
func (c *crowd) Changed() <-chan struct{} { return nil }

func (c *crowd) Propose(ctx context.Context, u Urgency, proposals []fsm.Proposal) ([]fsm.Outcome, error) {
	c.proposed += len(proposals)
	if c.deaf {
		return make([]fsm.Outcome, len(proposals)), nil
	}
	return c.liveGroup.Propose(ctx, u, proposals)
}

func newCrowd(b *testing.B, pods int) *crowd {
	c := &crowd{liveGroup: newLiveGroup(b), clock: &setClock{}}
	w := &c.now
	w.Cluster, w.Complete = "bench", true
	for _, k := range world.Kinds() {
		w.Kinds = append(w.Kinds, world.KindView{Kind: k, Listed: true, Complete: true, Lists: 1, Version: 1})
	}
	meta := func(name string) world.Meta {
		return world.Meta{ID: world.ID{Namespace: "shop", Name: name}, UID: "uid-" + name, Version: 1}
	}
	w.Drivers = []*world.Driver{{Meta: meta("clb"), URL: "http://192.0.2.7"}}
	info := []world.KV{{Key: "vip", Value: "198.51.100.21"}}
	w.LoadBalancers = []*world.OutsideBalancer{{
		Meta: meta("edge"), DriverID: meta("clb").ID, Finalizer: true, Spec: info, Status: world.BalancerStatus{Created: true, Synced: true, Info: info},
	}}
	for i := range pods / 100 {
		w.BackendGroups = append(w.BackendGroups, &world.BackendGroup{Meta: meta(fmt.Sprintf("group-%03d", i)), LoadBalancers: []string{"edge"}, Balancing: world.Balancing{
			Pods: &world.PodSelection{ByLabel: true, Selector: []world.KV{{Key: "app", Value: fmt.Sprint(i)}}, Ports: []world.BackendPort{{Port: 80, Protocol: "TCP"}}},
		}})
		for j := range 100 {
			w.Pods = append(w.Pods, podOfCrowd(i, j))
		}
	}
	l, err := New(Config{
		Sources: []NamedSource{{"bench", c}}, Record: c.state, Group: c, Clock: c.clock, Log: slog.New(slog.DiscardHandler),
		Drivers: func(string) (Driver, bool) { return &told{}, true }, Random: rand.New(rand.NewPCG(1, 2)),
	})
	if err != nil {
		b.Fatal(err)
	}
	c.planner = newOutsidePlanning(l)
	for range 3 {
		c.look()
	}
	c.bind()
	c.look()
	c.deaf = true
	return c
}

func podOfCrowd(group, i int) *world.Pod {
	return &world.Pod{
		Meta: world.Meta{ID: world.ID{Namespace: "shop", Name: fmt.Sprintf("pod-%03d-%03d", group, i)}, UID: fmt.Sprintf("5b0c1b6e-2f0a-4d53-9a51-%04d%08d", group, i), Version: 1},
		IP:   fmt.Sprintf("10.%d.%d.%d", group, i/250, i%250), Ready: true, Running: true,
		Labels: []world.KV{{Key: "app", Value: fmt.Sprint(group)}, {Key: "pod-template-hash", Value: "5d4f8c7b9"}, {Key: "team", Value: "shop"}},
	}
}

// bind does what the operator and the mirror do.
func (c *crowd) bind() {
	for _, o := range fsm.List[*fsm.Binding](c.state.Read(), fsm.TableBindings) {
		c.must(&fsm.SetBindingAddress{ID: o.ID, UID: o.UID, Address: o.Backend.Target + ":80"})
		begun := c.propose([]fsm.Proposal{{Actor: "test", Command: &fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: o.ID, Deadline: time.Second}}}, 1)
		b, _ := fsm.Get[*fsm.Binding](c.state.Read(), fsm.TableBindings, string(o.ID))
		c.must(&fsm.FinishOperation{Subject: b.Subject(), Attempt: begun[0].Revision, Result: fsm.ResultSucceeded, Settled: true})
		c.now.BackendRecords = append(c.now.BackendRecords, &world.BackendRecord{
			Meta: world.Meta{ID: idOf(fsm.ServiceID(o.ID)), UID: o.UID, Version: 1}, Kind: "Pod", Name: o.Backend.Name, Finalizer: true, Mirror: "test/" + o.UID,
		})
	}
}

// look has the loop look, a good while later.
func (c *crowd) look() {
	c.clock.now += 20 * time.Millisecond
	c.planner.look(context.Background())
}

// More of the pods in a cluster than ever matter: one of them becomes ready, and is gone when the next does. Verdicts are fresh.
func BenchmarkOutsideOnePod(b *testing.B) {
	for _, pods := range []int{1000, 5000} {
		b.Run(fmt.Sprint(pods), func(b *testing.B) {
			c := newCrowd(b, pods)
			without, with := c.now.Pods, slices.Insert(slices.Clone(c.now.Pods), pods/2+1, podOfCrowd(pods/200, 0))
			with[pods/2+1].Name += "-new"
			with[pods/2+1].UID, with[pods/2+1].IP = "new", "192.0.2.99"
			b.ReportAllocs()
			c.proposed = 0
			defer cpuTime(b)()
			for b.Loop() {
				c.planner.judged.until = c.clock.now + time.Second
				c.now.Pods = with
				c.look()
				c.now.Pods = without
				c.look()
			}
			if c.proposed != b.N {
				b.Fatalf("%d proposals for %d pods", c.proposed, b.N)
			}
		})
	}
}

// All there is, judged and planned with nothing new.
func BenchmarkOutsideJudge(b *testing.B) {
	for _, pods := range []int{1000, 5000} {
		b.Run(fmt.Sprint(pods), func(b *testing.B) {
			c := newCrowd(b, pods)
			record := c.state.Read()
			b.ReportAllocs()
			defer cpuTime(b)()
			for b.Loop() {
				c.clock.now += time.Second
				if _, verdicts := c.planner.judge(c.clock.now, record); !verdicts[0].Act {
					b.Fatal(verdicts[0].Why)
				}
			}
		})
	}
}
