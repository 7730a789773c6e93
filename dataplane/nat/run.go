// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"context"
	"time"
)

// Pauses of Run.
const (
	// settleTime lets somebody finish what they are doing to the table, so that it is put right once.
	settleTime = 50 * time.Millisecond
	// repairPause bounds how often a quarrel about the table is fought, five times a second at most.
	repairPause = 200 * time.Millisecond
	// retryPause is between attempts while the kernel refuses.
	retryPause = time.Second
)

// Run puts right what others do to the table, within a second, until ctx ends; it returns ctx's error. Beside the
// kernel's word it relies on a full comparison every Options.Audit.
func (n *NAT) Run(ctx context.Context) error {
	touched := make(chan struct{}, 1)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		n.watch(ctx, touched)
	}()
	defer func() { <-watched }()
	audit := time.NewTicker(n.audit)
	defer audit.Stop()
	count := time.NewTicker(clientsEvery)
	defer count.Stop()
	loads := time.NewTimer(loadsEvery)
	defer loads.Stop()
	for {
		wait := settleTime
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-count.C:
			n.countClients(ctx)
			continue
		case <-loads.C:
			loads.Reset(n.balance(ctx))
			continue
		case <-touched:
		case <-audit.C:
			wait = 0
		}
		if !sleep(ctx, wait) {
			return ctx.Err()
		}
		pause := repairPause
		if err := n.repair(ctx); err != nil && ctx.Err() == nil {
			n.log.Error("table not put right", "error", err)
			notify(touched)
			pause = retryPause
		}
		if !sleep(ctx, pause) {
			return ctx.Err()
		}
	}
}

// repair compares the table with the plan.
func (n *NAT) repair(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.told {
		return nil // nothing is known of what shall be: what is there stays
	}
	change, err := n.compare(ctx)
	if err != nil {
		n.metrics.failures.Inc()
		return err
	}
	if !change.Empty() {
		n.metrics.repairs.Inc()
		n.log.Warn("table put right", "table", n.table, "added", len(change.Add), "removed", len(change.Remove),
			"chains", len(change.AddChains)+len(change.Refill)+len(change.DropChains))
	}
	return nil
}

// watch tells whenever somebody else changed the table, or may have.
func (n *NAT) watch(ctx context.Context, touched chan<- struct{}) {
	for ctx.Err() == nil {
		err := n.edge.Watch(ctx, func() { notify(touched) })
		if ctx.Err() != nil {
			return
		}
		n.log.Warn("events of nftables lost", "error", err)
		sleep(ctx, retryPause)
	}
}

// notify leaves word, if none is waiting yet.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// sleep waits, and tells whether ctx still goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
