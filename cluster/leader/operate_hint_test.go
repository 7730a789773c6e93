// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/fsm"
)

// lbcf §4.2, INV-16: what a driver says of when to ask again is about what it was asked. A backend that is to go is
// deregistered at once, and one whose parameters changed is ensured at once.
func TestOperateHeedsAHintForTheCallThatItWasAbout(t *testing.T) {
	for _, result := range []fsm.Result{fsm.ResultFailed, fsm.ResultRunning} {
		synctest.Test(t, func(t *testing.T) {
			g := newLiveGroup(t)
			g.commit(balancer("drv/a"))
			d := &told{do: func(_ context.Context, a fsm.Action, _ Request) Answer {
				if a == fsm.ActionEnsure {
					return Answer{Result: result, RetryAfter: 24 * time.Hour}
				}
				return Answer{Result: fsm.ResultSucceeded}
			}}
			operated(t, g, g, d, func() {
				g.commit(bind("x", "10.0.0.1"))
				time.Sleep(time.Hour)
				want := []string{"ensure x", "ensure-balancer drv/a"} // at the same time
				if have := slices.Sorted(slices.Values(d.all())); !slices.Equal(have, want) {
					t.Errorf("calls %v, want %v", d.all(), want)
				}
				g.commit(&fsm.PutBinding{ID: "x", Balancer: "drv/a", Parameters: []fsm.KV{{Key: "weight", Value: "2"}}})
				time.Sleep(time.Second)
				if have := d.all()[2:]; !slices.Equal(have, []string{"ensure x"}) {
					t.Errorf("with other parameters: calls %v", have)
				}
				g.commit(&fsm.RemoveBinding{ID: "x"})
				time.Sleep(time.Second)
				if have := d.all()[3:]; !slices.Equal(have, []string{"deregister x"}) || stateOf(g, "x") != "gone" {
					t.Errorf("when it is to go: calls %v, and it is %s", have, stateOf(g, "x"))
				}
			})
		})
	}
}

// askewClock shows another time of day.
type askewClock struct {
	wall
	by time.Duration
}

func (c askewClock) Wall() time.Time { return c.wall.Wall().Add(c.by) }

// A hint is in the record: the next leader waits for what is left of it, and never longer than the driver asked for, whatever
// the clocks of the two show.
func TestOperateHeedsAHintThatAnEarlierLeaderHeard(t *testing.T) {
	for name, c := range map[string]struct {
		askew           time.Duration
		after, atLatest time.Duration // of the second leader's election, an hour of which has gone by
	}{
		"alike": {0, 59 * time.Minute, 61 * time.Minute}, "behind": {-24 * time.Hour, 119 * time.Minute, 121 * time.Minute}, "ahead": {24 * time.Hour, 0, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newLiveGroup(t)
				g.commit(balancer("drv/a"))
				var calls []time.Time
				d := &told{do: func(_ context.Context, a fsm.Action, _ Request) Answer {
					if a == fsm.ActionDeregister {
						calls = append(calls, time.Now())
						return Answer{Result: fsm.ResultRunning, RetryAfter: 2 * time.Hour}
					}
					return Answer{Result: fsm.ResultSucceeded}
				}}
				operated(t, g, g, d, func() {
					g.commit(bind("x", "10.0.0.1"))
					time.Sleep(time.Second)
					g.commit(&fsm.RemoveBinding{ID: "x"})
					time.Sleep(time.Hour)
				})
				next, err := New(Config{
					Record: g.state, Group: g, Clock: askewClock{newWall(), c.askew}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
					Drivers: func(string) (Driver, bool) { return d, true }, Random: rand.New(rand.NewPCG(1, 2)), Timing: Timing{Checkpoint: 24 * time.Hour},
				})
				if err != nil {
					t.Fatal(err)
				}
				elected := time.Now()
				led(next, func() { time.Sleep(c.atLatest) })
				if len(calls) != 2 || calls[1].Sub(elected) < c.after {
					t.Errorf("calls at %v, the second leader was elected at %v", calls, elected)
				}
			})
		})
	}
}
