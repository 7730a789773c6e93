// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"fairlead.io/fairlead/cluster"
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
	batched := g.load(64, 64, 10)
	single := g.load(512, 1, 5)
	total := 0.0
	for _, s := range batched {
		total += s
	}
	value := total / float64(len(batched))
	alone := 0.0
	for _, s := range single {
		alone += s
	}
	return figures{samples: batched, value: &value, detail: map[string]any{
		"callers": 64, "commands_in_a_call": 64, "single_callers": 512, "single_per_s": alone / float64(len(single)),
		"processes": g.usages(),
	}}
}

// load keeps callers busy and gives the commands that were committed in each of some seconds, after one that does not
// count.
func (g *group) load(callers, inACall, seconds int) (perSecond []float64) {
	leader := g.Leader().Name
	ctx, cancel := context.WithCancel(context.Background())
	var committed, next atomic.Int64
	var failure atomic.Pointer[error]
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				from := int(next.Add(int64(inACall)))
				err := g.propose(ctx, leader, cluster.Bulk, commands(from, inACall))
				switch {
				case err == nil:
					committed.Add(int64(inACall))
				case ctx.Err() == nil:
					failure.Store(&err)
					return
				}
			}
		})
	}
	time.Sleep(time.Second)
	for range seconds {
		before, begin := committed.Load(), time.Now()
		time.Sleep(time.Second)
		perSecond = append(perSecond, float64(committed.Load()-before)/time.Since(begin).Seconds())
	}
	cancel()
	wg.Wait()
	if err := failure.Load(); err != nil {
		g.t.Fatal(*err)
	}
	return perSecond
}
