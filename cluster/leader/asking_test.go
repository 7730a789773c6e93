// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/fsm/world"
)

// lbcf §3.12, §5.2, §7 [FIX]: planner and judge together: while the same pods are not ready their driver is asked once a minute,
// whether it answers or not; and what it says when it fails is told.
func TestTheDriverOfAGroupIsAskedOnceAMinuteWhileItsPodsStayAsTheyAre(t *testing.T) {
	for name, fails := range map[string]error{"answers": nil, "fails": errors.New("it answered: no idea")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, f, d := newLiveGroup(t), newFolder(t), &told{do: addressed}
				c := &court{answer: func(pods []string) ([]string, error) { return pods, fails }}
				driver := world.ID{Namespace: "shop", Name: "clb"}
				meta := func(name string) world.Meta {
					return world.Meta{ID: world.ID{Namespace: "shop", Name: name}, UID: name + "-uid"}
				}
				w := &f.scene.world
				w.Drivers = []*world.Driver{{Meta: meta("clb"), URL: "http://192.0.2.7"}}
				w.LoadBalancers = []*world.OutsideBalancer{{
					Meta: meta("edge"), DriverID: driver, Spec: []world.KV{{Key: "vip", Value: "198.51.100.20"}}, Finalizer: true,
				}}
				w.BackendGroups = []*world.BackendGroup{{Meta: meta("web"), LoadBalancers: []string{"edge"}, Balancing: world.Balancing{
					Pods:  &world.PodSelection{Names: []string{"web-0"}, Ports: []world.BackendPort{{Port: 80, Protocol: "TCP"}}},
					Leave: world.LeavePolicy{Policy: world.LeaveWebhook, Driver: driver},
				}}}
				w.Pods = []*world.Pod{{Meta: meta("web-0"), IP: "10.0.0.1", Running: true}}
				l, err := New(Config{
					Sources: []NamedSource{{"folder", f}}, Record: g.state, Group: g, Clock: newWall(), Limits: fastLimits(), Judge: c.judge,
					Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Drivers: func(string) (Driver, bool) { return d, true },
					Random: rand.New(rand.NewPCG(1, 2)), Timing: Timing{Checkpoint: 24 * time.Hour},
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- l.Run(ctx, 1) }()
				time.Sleep(10*time.Minute + 30*time.Second)
				if n := len(c.all()); n < 10 || n > 11 {
					t.Errorf("asked %d times in ten minutes", n)
				}
				said := ""
				for _, e := range l.Outside().Waiting {
					said += e.Kind + " " + e.Name + " " + e.Code + ": " + e.Text + "\n"
				}
				want := "BackendGroup shop/web judge: it answered: no idea: deregisterWebhook.failurePolicy holds\n"
				if strings.Contains(said, want) != (fails != nil) {
					t.Errorf("said:\n%s", said)
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
