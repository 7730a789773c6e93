// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/e2e/lab"
)

// commitLatency commits one command after the other through the leader's API: TLS, replication, fsync on a quorum,
// applying.
func commitLatency(t *bench) figures {
	g := startGroup(t)
	leader := g.Leader().Name
	var f figures
	for i := range 1000 {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		begin := time.Now()
		err := g.propose(ctx, leader, cluster.Urgent, commands(i, 1))
		took := time.Since(begin)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		f.samples = append(f.samples, milliseconds(took))
	}
	f.detail = map[string]any{"processes": g.usages()}
	return f
}

// commitThroughput commits as many commands a second as many callers hand to the leader's API, each some at a time as
// members do, and then each one at a time.
func commitThroughput(t *bench) figures {
	g := startGroup(t)
	batched, failed := g.load(64, 64, 15)
	value := mean(batched)
	detail := map[string]any{"callers": 64, "commands_in_a_call": 64, "failed_calls": failed, "per_s": slices.Clone(batched)}
	single, failed := g.load(512, 1, 5)
	detail["single_callers"], detail["single_per_s"], detail["single_failed_calls"] = 512, mean(single), failed
	detail["processes"] = g.usages()
	return figures{samples: batched, value: &value, detail: detail}
}

// load keeps callers busy and gives the commands that were committed in each of some seconds, after one that does not
// count. A call that fails, because the leader changed, counts for nothing, and is made anew.
func (g *group) load(callers, inACall, seconds int) (perSecond []float64, failed int64) {
	ctx, cancel := context.WithCancel(context.Background())
	var committed, next, failures atomic.Int64
	var leader atomic.Pointer[lab.Member]
	leader.Store(g.Leader())
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				from := int(next.Add(int64(inACall)))
				err := g.propose(ctx, leader.Load().Name, cluster.Bulk, commands(from, inACall))
				switch {
				case err == nil:
					committed.Add(int64(inACall))
				case ctx.Err() == nil:
					failures.Add(1)
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	time.Sleep(time.Second)
	for range seconds {
		before, fails, begin := committed.Load(), failures.Load(), time.Now()
		time.Sleep(time.Second)
		perSecond = append(perSecond, float64(committed.Load()-before)/time.Since(begin).Seconds())
		if failures.Load() > fails {
			leader.Store(g.Leader())
		}
	}
	cancel()
	wg.Wait()
	return perSecond, failures.Load()
}

func mean(of []float64) float64 {
	sum := 0.0
	for _, v := range of {
		sum += v
	}
	return sum / float64(max(len(of), 1))
}
