// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"

	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// DefaultConcurrent is how many calls to one driver may be in flight at once unless its LoadBalancerDriver says otherwise. A driver
// that takes 10 ms must be asked 3,000 times a second for 1,500 bindings, and each place stands empty while its next attempt is
// committed: that takes some 50 places. More of them would gain nothing with that, and press hard on drivers that are slower.
const DefaultConcurrent = 64

// waitingMost is how many calls may wait for another one's end, for each that may be in flight. What waits longer than
// its budget would not be sent anyway.
const waitingMost = 64

// places are those of the calls in flight. One that comes free is for the deregistration that waits longest, or else for the
// call that does.
type places struct {
	most int

	mu      sync.Mutex
	taken   int
	leaving list.List // of chan struct{}, closed for whom a place is handed to
	others  list.List
}

// take waits for a free place. What it gives is called when the call is over.
func (p *places) take(ctx context.Context, n webhook.Name) (func(), error) {
	p.mu.Lock()
	if p.taken < p.most {
		p.taken++
		p.mu.Unlock()
		return p.free, nil
	}
	if p.leaving.Len()+p.others.Len() >= waitingMost*p.most {
		p.mu.Unlock()
		return nil, errors.New("too many calls wait already")
	}
	line := &p.others
	if n == webhook.DeregisterBackend {
		line = &p.leaving
	}
	turn := make(chan struct{})
	place := line.PushBack(turn)
	p.mu.Unlock()
	select {
	case <-turn:
		return p.free, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-turn: // both at once
		return p.free, nil
	default:
		line.Remove(place)
		return nil, fmt.Errorf("%d other calls were in flight all along", p.most)
	}
}

// free hands a place on, or leaves it empty.
func (p *places) free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range []*list.List{&p.leaving, &p.others} {
		if first := line.Front(); first != nil {
			close(line.Remove(first).(chan struct{}))
			return
		}
	}
	p.taken--
}
