// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/e2e/lab"
)

// failoverRuns is how often the leader is killed.
const failoverRuns = 50

// failover kills the leading process (SIGKILL) and takes the time until a command is committed that was proposed
// afterwards; whoever proposes asks both others again and again.
func failover(t *bench) figures {
	g := startGroup(t)
	var f figures
	for i := range failoverRuns {
		leader := g.Leader()
		others := g.Others(leader)
		begin := time.Now()
		leader.Signal(syscall.SIGKILL)
		g.commitThrough(others, i)
		f.samples = append(f.samples, milliseconds(time.Since(begin)))
		leader.Ended(20 * time.Second)
		leader.Start()
		g.Agreed()
	}
	f.detail = map[string]any{"runs_ms": f.samples}
	return f
}

// commitThrough returns when one command was committed through any of the members.
func (g *group) commitThrough(members []*lab.Member, i int) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*soon)
	defer cancel()
	done := make(chan struct{}, len(members))
	for _, m := range members {
		go func() {
			for ctx.Err() == nil {
				one, stop := context.WithTimeout(ctx, soon)
				err := g.propose(one, m.Name, cluster.Urgent, commands(i, 1))
				stop()
				if err == nil {
					done <- struct{}{}
					return
				}
				time.Sleep(time.Millisecond)
			}
		}()
	}
	select {
	case <-done:
	case <-ctx.Done():
		g.t.Fatal(fmt.Sprintf("run %d: nothing was committed within %s", i, 3*soon))
	}
}
