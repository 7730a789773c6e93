// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"sync"
)

// crew are goroutines that make calls, one after the other: the stack that a call needs is made once for many. There are as
// many as calls were ever under way at once, and they end with the term.
type crew struct {
	do   func(context.Context, *job)
	next chan *job
	all  sync.WaitGroup
}

func newCrew(do func(context.Context, *job)) *crew { return &crew{do: do, next: make(chan *job)} }

// send has jobs done, at once.
func (c *crew) send(ctx context.Context, jobs []*job) {
	for _, j := range jobs {
		select {
		case c.next <- j:
		default:
			c.all.Go(func() { c.work(ctx, j) })
		}
	}
}

func (c *crew) work(ctx context.Context, j *job) {
	for {
		c.do(ctx, j)
		select {
		case <-ctx.Done():
			return
		case j = <-c.next:
		}
	}
}
