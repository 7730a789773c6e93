// SPDX-License-Identifier: Apache-2.0

// Package drain keeps the rules of addresses that left a node's desired state for a while: switches and clients may
// still send to them.
//
// It knows nothing of the kernel: an Applier behind it carries out. It promises that what is wanted is never held up
// by what leaves, that an address that comes back in time was never gone, and that each rule goes in the end. What
// leaves is kept in a file, too, so that a restart of the agent cuts nothing short; it begins the delay anew.
//
// Start reading at Drain.Apply; leaving.go decides.
package drain

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/agent"
)

// Clock is time with a monotonic reading: steps of the wall clock neither stretch nor cut a delay.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// Options is what a Drain is made of. Fields without "optional" are required.
type Options struct {
	Applier agent.Applier
	Delay   time.Duration // 0: rules go at once
	Clock   Clock
	Log     *slog.Logger
	// Found lists what an earlier agent left in the kernel; optional.
	Found func(ctx context.Context) ([]desired.Address, error)
	// Store keeps what leaves over restarts; optional.
	Store   agent.Store
	Metrics prometheus.Registerer // optional
}

// retryMin and retryMax bound the pauses after rules could not be removed.
const (
	retryMin = time.Second
	retryMax = 30 * time.Second
)

// Drain is an Applier around another one. Apply is called by one goroutine, Run by another.
type Drain struct {
	o        Options
	log      *slog.Logger
	draining prometheus.Gauge
	changed  chan struct{} // of capacity 1: there is something new to wait for

	mu      sync.Mutex
	begun   bool
	want    desired.State // newest that was asked for
	leaving leaving
	stored  []netip.Addr // what the store holds, in order
}

var _ agent.Applier = (*Drain)(nil)

// New makes a Drain. Errors: the metrics are registered already.
func New(o Options) (*Drain, error) {
	d := &Drain{
		o: o, log: o.Log, changed: make(chan struct{}, 1),
		leaving: leaving{delay: o.Delay, until: map[netip.Addr]time.Time{}},
		draining: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fairlead_agent_draining_addresses",
			Help: "Service addresses that left the desired state and whose rules stay for the drain delay.",
		}),
	}
	if o.Metrics != nil {
		if err := o.Metrics.Register(d.draining); err != nil {
			return nil, fmt.Errorf("register metrics of draining: %w", err)
		}
	}
	return d, nil
}

// Apply implements agent.Applier. What it says is about want alone: an address that leaves may fail.
func (d *Drain) Apply(ctx context.Context, want desired.State) ([]agent.Failure, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.begun {
		if err := d.beginLocked(ctx); err != nil {
			return nil, err
		}
		d.begun = true
	}
	d.want = want
	failed, err := d.showLocked(ctx)
	select {
	case d.changed <- struct{}{}:
	default: // Run has not looked since the last time
	}
	if err != nil || len(failed) == 0 {
		return nil, err
	}
	wanted := map[netip.Prefix]bool{}
	for _, a := range want.Addresses() {
		wanted[a.Prefix] = true
	}
	for _, h := range want.TunnelHosts() { // a host says of its own tunnel, too, that it failed
		for _, a := range h.Addresses {
			wanted[netip.PrefixFrom(a, a.BitLen())] = true
		}
	}
	return slices.DeleteFunc(failed, func(f agent.Failure) bool { return !wanted[f.Prefix] }), nil
}

// beginLocked takes over what an earlier agent left: what it kept of it, else what is in the kernel.
func (d *Drain) beginLocked(ctx context.Context) error {
	shown, err := d.loadLocked()
	if err != nil {
		return err
	}
	if d.o.Found != nil {
		found, err := d.o.Found(ctx)
		if err != nil {
			return fmt.Errorf("look for what an earlier agent left: %w", err)
		}
		bare, err := desired.Bare(found)
		if err != nil {
			return fmt.Errorf("look for what an earlier agent left: %w", err)
		}
		if shown, err = shown.Keeping(bare, addressesOf(bare)); err != nil {
			return fmt.Errorf("look for what an earlier agent left: %w", err)
		}
	}
	d.leaving.shown = shown
	return nil
}

// loadLocked reads what was leaving. What is damaged is as good as nothing: its rules are found in the kernel.
func (d *Drain) loadLocked() (desired.State, error) {
	if d.o.Store == nil {
		return desired.State{}, nil
	}
	data, err := d.o.Store.Load()
	if err != nil {
		return desired.State{}, fmt.Errorf("read what was leaving: %w", err)
	}
	if data == nil {
		return desired.State{}, nil
	}
	state, err := desired.Unmarshal(data)
	if err != nil {
		d.log.Error("what was leaving is not usable", "err", err)
		return desired.State{}, nil
	}
	d.stored = slices.SortedFunc(maps.Keys(addressesOf(state)), netip.Addr.Compare)
	return state, nil
}

// showLocked brings the node to what it shall have now.
func (d *Drain) showLocked(ctx context.Context) ([]agent.Failure, error) {
	show, err := d.leaving.next(d.want, d.o.Clock.Now())
	if err != nil {
		return nil, fmt.Errorf("keep what leaves: %w", err)
	}
	d.keepLocked(show)
	d.draining.Set(float64(len(d.leaving.until)))
	return d.o.Applier.Apply(ctx, show)
}

// keepLocked has the store hold what leaves. Without it only a restart of the agent would cut a delay short, so that
// nothing is held up when it fails.
func (d *Drain) keepLocked(show desired.State) {
	kept := d.leaving.kept()
	now := slices.SortedFunc(maps.Keys(kept), netip.Addr.Compare)
	if d.o.Store == nil || slices.Equal(now, d.stored) {
		return
	}
	state, err := show.Only(kept)
	var data []byte
	if err == nil {
		data, err = state.Marshal()
	}
	if err == nil {
		err = d.o.Store.Save(data)
	}
	if err != nil {
		d.log.Error("what is leaving is not kept over a restart", "err", err)
		return
	}
	d.stored = now
}

func addressesOf(s desired.State) map[netip.Addr]bool {
	out := map[netip.Addr]bool{}
	for a := range s.Each() {
		out[a] = true
	}
	return out
}

// Run removes the rules whose time is over, until ctx ends; it returns ctx's error.
func (d *Drain) Run(ctx context.Context) error {
	pause := time.Duration(0)
	for {
		wait, some := d.wait()
		var due <-chan time.Time
		if some {
			due = d.o.Clock.After(max(wait, pause))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.changed:
		case <-due:
			pause = d.end(ctx, pause)
		}
	}
}

// wait tells how long it is until an address is to go, if one is.
func (d *Drain) wait() (time.Duration, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := d.leaving.due()
	return first.Sub(d.o.Clock.Now()), !first.IsZero()
}

// end removes what is due, and gives the pause before the next attempt: none if it succeeded.
func (d *Drain) end(ctx context.Context, pause time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.leaving
	before.until = maps.Clone(before.until)
	_, err := d.showLocked(ctx)
	if err == nil || ctx.Err() != nil {
		return 0
	}
	d.log.Error("rules of addresses that left not removed", "err", err)
	d.leaving = before // they are still there
	return min(max(2*pause, retryMin), retryMax)
}
