// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/fsm"
)

// wanted is a load balancer that its driver is to create.
func wanted(id fsm.BalancerID) *fsm.PutLoadBalancer {
	return &fsm.PutLoadBalancer{ID: id, Driver: "drv", UID: "uid-" + string(id), Spec: []fsm.KV{{Key: "pool", Value: "dmz"}}}
}

func balancerState(g *liveGroup, id string) string {
	l, ok := fsm.Get[*fsm.LoadBalancer](g.state.Read(), fsm.TableBalancers, id)
	if !ok {
		return "gone"
	}
	return l.State.String()
}

// lbcf §1.3, §3.5, §3.7: created, ensured when its attributes change, deleted; its backends come after and go before.
func TestOperateCarriesABalancerFromItsCreationToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLiveGroup(t)
		g.commit(wanted("a"))
		d := &told{do: addressed}
		heard := 0
		expect := func(when string, want ...string) {
			t.Helper()
			time.Sleep(time.Second)
			all := d.all()
			if !slices.Equal(all[heard:], want) {
				t.Errorf("%s: calls %v, want %v", when, all[heard:], want)
			}
			heard = len(all)
		}
		operated(t, g, g, d, func() {
			expect("wanted", "create-balancer a")
			if l, _ := fsm.Get[*fsm.LoadBalancer](g.state.Read(), fsm.TableBalancers, "a"); l.Identity != fsm.IdentityOf("drv", l.Spec) || !l.Ensured {
				t.Errorf("lbcf §3.5: no lbInfo means lbSpec; have %+v", l)
			}
			g.commit(&fsm.PutBinding{ID: "x", Balancer: "a"})
			expect("a backend", "address x", "ensure x")
			changed := wanted("a")
			changed.Attributes = []fsm.KV{{Key: "algo", Value: "rr"}}
			g.commit(changed)
			expect("lbcf §4.4: other attributes", "ensure-balancer a")
			g.commit(&fsm.DeleteLoadBalancer{ID: "a"})
			expect("deleted with a backend on it")
			g.commit(&fsm.RemoveBinding{ID: "x"})
			expect("its last backend is removed", "deregister x", "delete-balancer a")
			if s := balancerState(g, "a"); s != "gone" {
				t.Errorf("it is %s", s)
			}
		})
	})
}

// Two objects mean one balancer, and one of them goes: the other one is ensured, and nothing is deleted.
func TestOperateDeletesNoBalancerThatAnotherObjectMeans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLiveGroup(t)
		alike := balancer("drv/a")
		alike.ID = "drv/b"
		g.commit(balancer("drv/a"), alike)
		d := &told{do: addressed}
		operated(t, g, g, d, func() {
			time.Sleep(time.Second)
			before := len(d.all())
			g.commit(&fsm.DeleteLoadBalancer{ID: "drv/a"})
			time.Sleep(time.Minute)
			if have := d.all()[before:]; !slices.Equal(have, []string{"ensure-balancer drv/b"}) || balancerState(g, "drv/a") != "gone" {
				t.Errorf("calls %v, and the object is %s", have, balancerState(g, "drv/a"))
			}
			g.commit(&fsm.DeleteLoadBalancer{ID: "drv/b"})
			time.Sleep(time.Minute)
			if have := d.all()[before+1:]; !slices.Equal(have, []string{"delete-balancer drv/b"}) {
				t.Errorf("then %v", have)
			}
		})
	})
}

// A creation whose end nobody knows, of an object that is deleted then, may have made what another one means, or something
// else: the driver says which before anything is deleted.
func TestOperateDeletesNothingByASpecThatAnotherObjectHas(t *testing.T) {
	for name, second := range map[string]string{"same": "drv/a", "another": "drv/b"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newLiveGroup(t)
				g.commit(balancer("drv/a"), bind("x", "192.0.2.1:80"))
				hung := false
				d := &told{do: func(ctx context.Context, a fsm.Action, r Request) Answer {
					if a != fsm.ActionCreateBalancer {
						return addressed(ctx, a, r)
					}
					if !hung {
						hung = true
						return Answer{Result: fsm.ResultUnknown, Message: "timed out"}
					}
					return Answer{Result: fsm.ResultSucceeded, Returned: balancer(fsm.BalancerID(second)).Info}
				}}
				operated(t, g, g, d, func() {
					time.Sleep(time.Second)
					before := len(d.all())
					g.commit(&fsm.PutLoadBalancer{ID: "new", Driver: "drv", UID: "uid-new"},
						&fsm.BeginOperation{Action: fsm.ActionCreateBalancer, Balancer: "new", Deadline: time.Second}, &fsm.DeleteLoadBalancer{ID: "new"})
					time.Sleep(2 * time.Minute)
					calls := d.all()[before:]
					deleted := slices.Contains(calls, "delete-balancer new")
					if !slices.Contains(calls, "create-balancer new") || deleted != (name == "another") || balancerState(g, "new") != "gone" {
						t.Errorf("calls %v, and the object is %s", calls, balancerState(g, "new"))
					}
					if s := stateOf(g, "x"); s != "bound" {
						t.Errorf("the backend of the other object is %s", s)
					}
				})
			})
		})
	}
}

// A change of attributes that the driver refuses keeps no backend waiting.
func TestOperateBindsToABalancerWhoseEnsuringFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLiveGroup(t)
		g.commit(balancer("drv/a"), bind("x", ""))
		d := &told{do: func(ctx context.Context, a fsm.Action, r Request) Answer {
			if a == fsm.ActionEnsureBalancer {
				return Answer{Result: fsm.ResultFailed, Refused: true, Message: "no"}
			}
			return addressed(ctx, a, r)
		}}
		operated(t, g, g, d, func() {
			time.Sleep(time.Second)
			if s := stateOf(g, "x"); s != "bound" {
				t.Errorf("the backend is %s", s)
			}
		})
	})
}

// lbcf §4.3: what its policy says is ensured each period, from the last success on; a new leader spreads that over a period.
func TestOperateEnsuresAgainEachPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLiveGroup(t)
		always := fsm.EnsurePolicy{Policy: "Always", Period: 40 * time.Second}
		lb := wanted("drv/a")
		lb.Ensure = always
		g.commit(lb)
		d := &told{do: addressed}
		const backends = 100
		operated(t, g, g, d, func() {
			time.Sleep(time.Second)
			for i := range backends {
				b := bind(fmt.Sprint("b", i), fmt.Sprint("10.0.0.", i)).(*fsm.PutBinding)
				b.Ensure = always
				g.commit(b)
			}
			time.Sleep(35 * time.Second)
			if n := len(d.all()); n != 1+backends {
				t.Errorf("%d calls within the first period", n)
			}
			time.Sleep(10 * time.Second)
			if n := len(d.all()); n != 2*(1+backends) {
				t.Errorf("%d calls within the second period", n)
			}
		})
		other := &told{do: addressed}
		operated(t, g, g, other, func() {
			for range 4 {
				before := len(other.all())
				time.Sleep(10 * time.Second)
				if n := len(other.all()) - before; n < backends/8 || n > backends/2 {
					t.Errorf("%d calls of a new leader within a quarter of a period", n)
				}
			}
			if n := len(other.all()); n != backends+1 {
				t.Errorf("%d calls within the period", n)
			}
		})
	})
}

// What the driver refused to ensure of a bound backend is repeated until it is confirmed, though nothing else asks for it any
// more: here another one at its address was to be settled, and is forgotten.
func TestOperateRepeatsWhatTheDriverRefusedOfABoundBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLiveGroup(t)
		g.commit(balancer("drv/a"), bind("x", "10.0.0.1"), bind("y", "10.0.0.1"))
		var refuse atomic.Bool
		d := &told{do: func(ctx context.Context, a fsm.Action, r Request) Answer {
			if refuse.Load() {
				return Answer{Result: fsm.ResultFailed, Refused: true}
			}
			return addressed(ctx, a, r)
		}}
		registered := func() bool {
			b, _ := fsm.Get[*fsm.Binding](g.state.Read(), fsm.TableBindings, "x")
			return b.Registered
		}
		operated(t, g, g, d, func() {
			time.Sleep(time.Second)
			refuse.Store(true)
			g.commit(&fsm.RemoveBinding{ID: "y"})
			time.Sleep(10 * time.Second)
			g.commit(&fsm.Forget{ID: "y"})
			if registered() {
				t.Error("the driver said no, and the record does not know")
			}
			refuse.Store(false)
			time.Sleep(20 * time.Second)
			if !registered() {
				t.Error("not asked again")
			}
		})
	})
}

// LBCF needed more than 310 s, with 10 s between attempts. Whatever the driver's luck.
func TestOperateBindsSoonThroughADriverThatFailsAThirdOfCalls(t *testing.T) {
	slowest := time.Duration(0)
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			g := newLiveGroup(t)
			g.commit(balancer("drv/a"))
			const backends = 300
			for i := range backends {
				g.commit(bind(fmt.Sprint("b", i), ""))
			}
			random, mu := rand.New(rand.NewPCG(seed, 7)), sync.Mutex{}
			d := &told{do: func(ctx context.Context, a fsm.Action, r Request) Answer {
				mu.Lock()
				defer mu.Unlock()
				if random.IntN(10) < 3 {
					return Answer{Result: fsm.ResultFailed, Refused: true, Message: "no luck"}
				}
				return addressed(ctx, a, r)
			}}
			operated(t, g, g, d, func() {
				began := time.Now()
				for i := 0; i < backends; {
					if stateOf(g, fmt.Sprint("b", i)) == "bound" {
						i++
						continue
					}
					time.Sleep(50 * time.Millisecond)
				}
				slowest = max(slowest, time.Since(began))
			})
		})
	}
	if slowest > 10*time.Second {
		t.Errorf("the last backend was bound after %s", slowest)
	}
}

// dead is a driver that does not answer, and knows so after a while.
type dead struct {
	told
	silent atomic.Bool
}

func (d *dead) Silence() error {
	if d.silent.Load() {
		return errors.New("it does not answer")
	}
	return nil
}

// A driver that does not answer costs others nothing, is asked about one thing at a time, and is used at once when it is
// back: nothing that waited has a failure of its own.
func TestOperateLeavesADeadDriverAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLiveGroup(t)
		other := balancer("other/a")
		other.Driver = "other"
		g.commit(balancer("drv/a"), other)
		const backends = 500
		for i := range backends {
			g.commit(bind(fmt.Sprint("b", i), fmt.Sprint("10.0.0.", i)))
		}
		d := &dead{}
		d.silent.Store(true)
		d.do = func(context.Context, fsm.Action, Request) Answer {
			if !d.silent.Load() {
				return Answer{Result: fsm.ResultSucceeded}
			}
			return Answer{Result: fsm.ResultFailed, Held: true, RetryAfter: 2 * time.Second, Message: "left alone"}
		}
		well := &told{do: addressed}
		l := leaderOf(t, g, g, func(name string) (Driver, bool) { return map[string]Driver{"drv": d, "other": well}[name], true })
		led(l, func() {
			time.Sleep(time.Minute)
			if n := len(d.all()); n < 20 || n > 31 || d.highest != 1 {
				t.Errorf("%d calls within a minute, %d at once", n, d.highest)
			}
			if about := slices.Compact(slices.Sorted(slices.Values(d.all()))); len(about) != 1 {
				t.Errorf("who was first lost its place: %v", about)
			}
			before := committed[*fsm.BeginOperation](g)
			g.commit(&fsm.PutBinding{ID: "y", Balancer: "other/a"})
			time.Sleep(100 * time.Millisecond)
			if s := stateOf(g, "y"); s != "bound" || committed[*fsm.BeginOperation](g)-before > 3 {
				t.Errorf("another driver's backend is %s", s)
			}
			d.silent.Store(false)
			time.Sleep(3 * time.Second)
			for i := range backends {
				if s := stateOf(g, fmt.Sprint("b", i)); s != "bound" {
					t.Fatalf("backend %d is %s when the driver is back", i, s)
				}
			}
		})
	})
}

// From Ready to bound there are three commits: wanted, address and attempt to register, the end.
func TestOperateCommitsAnAddressAndWhatFollowsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLiveGroup(t)
		g.commit(balancer("drv/a"))
		operated(t, g, g, &told{do: addressed}, func() {
			time.Sleep(time.Second)
			before := len(g.since(0))
			g.commit(bind("x", ""))
			time.Sleep(time.Second)
			if n := len(g.since(before)); n != 2 || stateOf(g, "x") != "bound" {
				t.Errorf("%d entries of the operator until it was %s, want 2", n, stateOf(g, "x"))
			}
		})
	})
}

// An address changes nothing outside: no call for one keeps the next from being final.
func TestOperateTrustsAnAddressAfterOneThatHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLiveGroup(t)
		g.commit(balancer("drv/a"), bind("x", ""))
		var hung atomic.Bool
		d := &told{terms: Terms{Timeout: 2 * time.Second, Settle: time.Hour}, do: func(ctx context.Context, a fsm.Action, r Request) Answer {
			if a == fsm.ActionAddress && !hung.Swap(true) {
				<-ctx.Done()
				return Answer{Result: fsm.ResultUnknown}
			}
			return addressed(ctx, a, r)
		}}
		operated(t, g, g, d, func() {
			time.Sleep(3 * time.Second)
			if s := stateOf(g, "x"); s != "bound" {
				t.Errorf("it is %s", s)
			}
		})
	})
}

// Where more calls wait than a driver takes, an entry has many outcomes; where none do, each is committed at once.
func TestOperateGathersOutcomesWhileCallsWait(t *testing.T) {
	for name, c := range map[string]struct{ backends, least, most int }{"crowd": {512, 16, 200}, "few": {8, 8, 20}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newLiveGroup(t)
				g.commit(balancer("drv/a"))
				d := &told{terms: Terms{Timeout: time.Second, Concurrent: 64}, do: func(_ context.Context, _ fsm.Action, r Request) Answer {
					if r.Binding != nil { // each ends at a time of its own
						n, _ := strconv.Atoi(r.Binding.Key()[1:])
						time.Sleep(10*time.Millisecond + time.Duration(n)*100*time.Microsecond)
					}
					return Answer{Result: fsm.ResultSucceeded}
				}}
				operated(t, g, g, d, func() {
					time.Sleep(time.Second)
					for i := range c.backends {
						g.commit(bind(fmt.Sprint("b", i), fmt.Sprint("10.0.0.", i)))
					}
					before := len(g.since(0))
					time.Sleep(time.Second)
					if n := len(g.since(before)); n < c.least || n > c.most || stateOf(g, "b0") != "bound" {
						t.Errorf("%d entries, want %d to %d", n, c.least, c.most)
					}
				})
			})
		})
	}
}
