// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net/netip"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/dataplane/flows"
	"fairlead.io/fairlead/fsm"
)

// Flows counts the connections that come in to addresses by way of the node; flows.Reader is one.
type Flows interface {
	Count(ctx context.Context, to []netip.Addr) (flows.Count, error)
}

// Times of counts. One of a million connections takes seconds: it is to cost a twentieth of a core at most.
const (
	countPause = 2 * time.Second
	countShare = 20
	// maxWhy bounds what is said of a count that failed, in bytes.
	maxWhy = 200
)

// count counts flows while any member says that the node is being drained, until ctx ends.
func (a *Agent) count(ctx context.Context) {
	for ctx.Err() == nil {
		if !a.fleet.asks((*peer).asksForCounts) {
			a.counted.Store(nil)
			select {
			case <-a.toCount:
			case <-ctx.Done():
			}
			continue
		}
		begin := time.Now()
		c := a.countOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		c.at = begin
		a.counted.Store(c)
		sleep(ctx, max(countPause, countShare*time.Since(begin)))
	}
}

// asksForCounts tells whether the member says that flows are to be counted.
func (p *peer) asksForCounts() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.alive && p.counts
}

// counted is what a count found, or why it failed.
type counted struct {
	flows.Count
	why string
	at  time.Time // when it began
}

func (a *Agent) countOnce(ctx context.Context) *counted {
	if a.o.Flows == nil {
		return &counted{why: "this agent counts none"}
	}
	found, err := a.o.Flows.Count(ctx, a.addresses())
	if err != nil {
		a.metrics.failed("count")
		a.log.Warn("flows not counted", "err", err)
		return &counted{why: fsm.Text(err.Error(), maxWhy)}
	}
	return &counted{Count: found}
}

// addresses are those that packets are accepted to.
func (a *Agent) addresses() []netip.Addr {
	a.mu.Lock()
	wanted := a.wanted
	a.mu.Unlock()
	var out []netip.Addr
	for _, x := range wanted.Addresses() {
		out = append(out, x.Prefix.Addr())
	}
	return out
}

// countMessage is the newest count as a heartbeat has it, nil if there is none.
func (a *Agent) countMessage() *fairleadv1.FlowCount {
	c := a.counted.Load()
	if c == nil {
		return nil
	}
	return &fairleadv1.FlowCount{
		Open: uint64(c.Open), Busy: uint64(c.Busy), AgeMs: uint64(time.Since(c.at).Milliseconds()), Why: c.why,
	}
}
