// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
)

// promptGroup tells of every commit at once; a commit takes a while, as with a disk and a network.
type promptGroup struct {
	*liveGroup
	by time.Duration
}

func (g promptGroup) Propose(ctx context.Context, u Urgency, proposals []fsm.Proposal) ([]fsm.Outcome, error) {
	if g.by > 0 {
		time.Sleep(g.by)
	}
	return g.liveGroup.Propose(ctx, u, proposals)
}

// BenchmarkBind binds backends through a driver, two calls each. What is measured is the operator and the record: commits
// take 3 ms, nothing is encoded for a wire, and the driver only waits.
func BenchmarkBind(b *testing.B) {
	for _, latency := range []time.Duration{0, 10 * time.Millisecond} {
		b.Run(fmt.Sprint(latency), func(b *testing.B) {
			const backends = 5000
			for b.Loop() {
				g := newLiveGroup(b)
				g.commit(balancer("drv/a"))
				for i := range backends {
					g.commit(bind(fmt.Sprint("b", i), ""))
				}
				d := &told{do: func(ctx context.Context, a fsm.Action, r Request) Answer {
					time.Sleep(latency)
					return addressed(ctx, a, r)
				}}
				l, err := New(Config{
					Record: g.state, Group: promptGroup{g, 3 * time.Millisecond}, Clock: newWall(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
					Drivers: func(string) (Driver, bool) { return d, true }, Random: rand.New(rand.NewPCG(1, 2)),
				})
				if err != nil {
					b.Fatal(err)
				}
				ctx, cancel := context.WithCancel(b.Context())
				began, done := time.Now(), make(chan struct{})
				go func() {
					defer close(done)
					newOperator(l).run(ctx)
				}()
				for bound := 0; bound < backends; {
					v := g.state.Read()
					bound = 0
					for _, x := range fsm.List[*fsm.Binding](v, fsm.TableBindings) {
						if x.State == fsm.BindingBound {
							bound++
						}
					}
					time.Sleep(20 * time.Millisecond)
				}
				b.ReportMetric(float64(backends)/time.Since(began).Seconds(), "bindings/s")
				b.ReportMetric(float64(len(g.entries)), "entries")
				cancel()
				<-done
			}
		})
	}
}
