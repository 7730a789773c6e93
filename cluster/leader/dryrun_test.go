// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/cluster/leader/balancers"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// lbcf §5.9 [KEEP], INV-18: a dry run tells each thing that it would do, once, and does nothing: neither to the record nor, for
// what the record has from before, to a load balancer.
func TestADryRunTellsWhatItWouldDoAndDoesNothing(t *testing.T) {
	for _, dry := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var dryCalls atomic.Int32
			d := &told{}
			d.do = func(ctx context.Context, a fsm.Action, r Request) Answer {
				if r.DryRun {
					dryCalls.Add(1)
				}
				return addressed(ctx, a, r)
			}
			g, f := newLiveGroup(t), newFolder(t)
			var rehearsed *fsm.View
			g.commit(balancer("drv/a"), bind("shop/x", ""))
			before := len(g.since(0))
			f.scene.world.Drivers = []*world.Driver{{Meta: world.Meta{ID: world.ID{Namespace: "shop", Name: "clb"}, UID: "d"}, URL: "http://192.0.2.7"}}
			f.scene.world.LoadBalancers = []*world.OutsideBalancer{{
				Meta: world.Meta{ID: world.ID{Namespace: "shop", Name: "edge"}, UID: "l"}, DriverID: world.ID{Namespace: "shop", Name: "clb"},
				Spec: []world.KV{{Key: "vip", Value: "198.51.100.20"}}, Finalizer: true,
			}, {
				Meta: world.Meta{ID: world.ID{Namespace: "shop", Name: "made"}, UID: "m"}, DriverID: world.ID{Namespace: "shop", Name: "clb"},
				Spec: []world.KV{{Key: "vip", Value: "198.51.100.21"}}, Finalizer: true,
				Status: world.BalancerStatus{Created: true, Synced: true, Info: []world.KV{{Key: "vip", Value: "198.51.100.21"}}},
			}}
			f.scene.world.BackendGroups = []*world.BackendGroup{{
				Meta: world.Meta{ID: world.ID{Namespace: "shop", Name: "web"}, UID: "g"}, LoadBalancers: []string{"made"},
				IsStatic: true, Static: []string{"192.0.2.8:80"},
			}}
			var log bytes.Buffer
			l, err := New(Config{
				Sources: []NamedSource{{"folder", f}}, Record: g.state, Group: g, Clock: newWall(), Limits: fastLimits(), DryRun: dry,
				Rehearsed: func(v *fsm.View) { rehearsed = v },
				Log:       slog.New(slog.NewTextHandler(&log, nil)), Drivers: func(string) (Driver, bool) { return d, true },
				Random: rand.New(rand.NewPCG(1, 2)), Timing: Timing{Checkpoint: 24 * time.Hour},
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			if err := l.Run(ctx, 1); err != nil {
				t.Fatal(err)
			}
			changed := false
			for _, e := range g.since(before) {
				for _, p := range e {
					_, observed := p.Command.(*fsm.ObserveView)
					changed = changed || !observed
				}
			}
			calls := d.all()
			slices.Sort(calls)
			if changed == dry || dryCalls.Load() > 0 != dry || dry && int(dryCalls.Load()) != len(calls) {
				t.Errorf("dry is %v, and the record changed: %v, calls %v, %d of them dry", dry, changed, calls, dryCalls.Load())
			}
			backend := balancers.StaticRecord("made", "web", "192.0.2.8:80")
			if want := []string{"create-balancer LoadBalancer/shop/edge/l", "ensure shop/" + backend, "ensure-balancer drv/a"}; dry {
				if slices.Sort(want); !slices.Equal(calls, want) {
					t.Errorf("asked for %v, want %v", calls, want)
				}
				if _, ok := fsm.Get[*fsm.Driver](rehearsed, fsm.TableDrivers, "shop/clb"); !ok {
					t.Errorf("its drivers are not told of")
				}
			}
			for _, want := range []string{
				"command=PutDriver subject=shop/clb", "command=PutLoadBalancer subject=LoadBalancer/shop/edge/l", "command=PutBinding subject=shop/" + backend,
				"action=create-balancer subject=\"load balancer LoadBalancer/shop/edge/l\"",
			} {
				if n := strings.Count(log.String(), want); n == 1 != dry {
					t.Errorf("dry is %v, and told %d times that %s:\n%s", dry, n, want, log.String())
				}
			}
		})
	}
}
