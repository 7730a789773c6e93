// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/agent"
)

// Options is what a Tunnel is made of. Only Host is required.
type Options struct {
	Host  string        // this host's name in the group
	Audit time.Duration // between two full comparisons with the kernel. Default a minute
	// Namespace is a file descriptor of the network namespace to work in, open as long as the Tunnel is used; 0 is the process's own.
	Namespace int
	Log       *slog.Logger
	Metrics   prometheus.Registerer
}

// Tunnel keeps this host's end of the tunnels as a State wants it. It is an agent.Applier.
type Tunnel struct {
	host    string
	audit   time.Duration
	log     *slog.Logger
	metrics *metrics

	mu   sync.Mutex
	edge Edge
	told bool // a State was ever to be carried out
	want *Wanted
	// asked is want as it was asked for: its MTU is found out later. awaited says that Prepare made more than that, which is next to come.
	asked   *Wanted
	awaited bool
}

// Over makes a Tunnel over an Edge. It does not touch it.
//
// Errors: no host, metrics that are registered already.
func Over(o Options, e Edge) (*Tunnel, error) {
	if o.Host == "" {
		return nil, errors.New("tunnel: no name of the host")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Audit <= 0 {
		o.Audit = time.Minute
	}
	m, err := newMetrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	return &Tunnel{host: o.Host, audit: o.Audit, log: o.Log, metrics: m, edge: e}, nil
}

// Prepare adds what a State wants in addition, so that others may be led there. Whatever is there without being wanted any more stays until
// Apply, for those who still are. What stands in the way of either Apply tells.
func (t *Tunnel) Prepare(_ context.Context, state desired.State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := Want(state, t.host)
	if next == nil || reflect.DeepEqual(next, t.asked) {
		return
	}
	before := t.want
	t.want, t.awaited = next, true
	defer func() { t.want = before }()
	rules := next.Rules
	if before != nil {
		rules.Peers = sorted(slices.Concat(rules.Peers, before.Rules.Peers), netip.Addr.Compare)
	}
	changed, err := t.bring(&rules, Additions)
	t.metrics.changed(changed)
	if err != nil {
		t.log.Debug("tunnel not prepared", "err", err)
	}
}

// Apply brings the tunnel to what is wanted. What stands in its way is told of this host's own addresses: the group then sends nobody
// to them, and everything else of the State counts.
//
// Errors: what is there without being wanted cannot be removed.
func (t *Tunnel) Apply(_ context.Context, state desired.State) ([]agent.Failure, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told, t.awaited, t.want, t.asked = true, false, Want(state, t.host), Want(state, t.host)
	changed, err := t.bringAll()
	t.metrics.changed(changed)
	t.metrics.have(t.want, err)
	if err == nil {
		return t.tooSmall(), nil
	}
	t.metrics.failures.Inc()
	if t.want == nil {
		if errors.Is(err, ErrForeign) {
			return nil, nil // and none of our business then
		}
		return nil, fmt.Errorf("remove tunnel: %w", err)
	}
	return t.failures(err.Error()), nil
}

// failures are all of this host's addresses, for one reason.
func (t *Tunnel) failures(why string) (out []agent.Failure) {
	for _, a := range t.want.Addresses {
		out = append(out, agent.Failure{Prefix: netip.PrefixFrom(a.Addr(), a.Addr().BitLen()), Why: why})
	}
	return out
}

// tooSmall are the addresses that no packet of the least size gets to.
func (t *Tunnel) tooSmall() []agent.Failure {
	if t.want == nil || t.want.MTU == 0 || t.want.MTU >= least6 {
		return nil
	}
	all := t.failures(fmt.Sprintf("the tunnel's MTU is %d bytes, and IPv6 needs %d; the way to other hosts has to carry %d",
		t.want.MTU, least6, least6+overhead(t.want.Rules.Over6)))
	return slices.DeleteFunc(all, func(f agent.Failure) bool { return f.Prefix.Addr().Is4() })
}

// bringAll is bring to exactly what is wanted.
func (t *Tunnel) bringAll() (changes int, err error) {
	if t.want == nil {
		return t.bring(nil, Plan)
	}
	return t.bring(&t.want.Rules, Plan)
}

// bring compares the kernel with what is wanted, and changes what differs, as far as plan has it. It tells how many changes it made.
func (t *Tunnel) bring(rules *Rules, plan func(want, have *Link) []Change) (changes int, err error) {
	have, err := t.edge.Read()
	if err != nil {
		return 0, err
	}
	var link *Link
	if t.want != nil {
		if t.want.MTU, err = t.mtu(have); err != nil {
			return 0, err
		}
		link = t.fitting()
	}
	if rules != nil { // who may come in is settled before anything does
		if changes, err = t.guard(rules); err != nil {
			return changes, err
		}
	}
	for _, c := range plan(link, have) {
		if err := t.edge.Do(c); err != nil {
			return changes, err
		}
		changes++
	}
	if rules == nil {
		n, err := t.guard(nil)
		return changes + n, err
	}
	return changes, nil
}

func (t *Tunnel) guard(rules *Rules) (changes int, err error) {
	changed, err := t.edge.Guard(rules)
	if changed {
		changes = 1
	}
	return changes, err
}

// mtu is what was asked for, or what the ways to the others leave. As long as there are none it stays.
func (t *Tunnel) mtu(have *Link) (int, error) {
	if asked := t.want.asked; asked != 0 {
		return asked, nil
	}
	way, err := t.edge.Way(append(slices.Clone(t.want.Others), t.want.Local))
	switch {
	case err != nil:
		return 0, err
	case way > 0:
		return way - overhead(t.want.Rules.Over6), nil
	case have != nil:
		return have.MTU, nil
	}
	return 0, fmt.Errorf("no interface has %s, by which other hosts are to reach this one; does the Node name an address of this machine?", t.want.Local)
}

// fitting is what the interface can have with its MTU.
func (t *Tunnel) fitting() *Link {
	l := t.want.Link
	if l.MTU < least6 {
		l.Addresses = slices.DeleteFunc(slices.Clone(l.Addresses), func(p netip.Prefix) bool { return p.Addr().Is6() })
		l.Neighbours = slices.DeleteFunc(slices.Clone(l.Neighbours), func(n Neighbour) bool { return n.Address.Is6() })
	}
	return &l
}

// Pauses of Run.
const (
	// settleTime lets somebody finish what they are doing to the interface, so that it is put right once.
	settleTime = 100 * time.Millisecond
	retryPause = time.Second
)

// Run puts right what others do to the interface, within a second, until ctx ends; it returns ctx's error.
func (t *Tunnel) Run(ctx context.Context) error {
	touched := make(chan struct{}, 1)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		t.watch(ctx, touched)
	}()
	defer func() { <-watched }()
	audit := time.NewTicker(t.audit)
	defer audit.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-touched:
			if !sleep(ctx, settleTime) {
				return ctx.Err()
			}
		case <-audit.C:
		}
		if err := t.repair(); err != nil {
			t.log.Error("tunnel not put right", "err", err)
			if !sleep(ctx, retryPause) {
				return ctx.Err()
			}
		}
	}
}

// repair compares the kernel with what is wanted.
func (t *Tunnel) repair() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.told || t.awaited || t.want == nil {
		return nil // nothing is known of what shall be, or Apply is about to tell, or it is nothing: what others make of our name is theirs
	}
	changes, err := t.bringAll()
	t.metrics.have(t.want, err)
	if err != nil {
		t.metrics.failures.Inc()
		return err
	}
	if changes > 0 {
		t.metrics.changed(changes)
		t.metrics.repairs.Inc()
		t.log.Warn("tunnel put right", "interface", Interface, "changes", changes)
	}
	return nil
}

func (t *Tunnel) watch(ctx context.Context, touched chan<- struct{}) {
	for ctx.Err() == nil {
		err := t.edge.Watch(ctx, func() {
			select {
			case touched <- struct{}{}:
			default: // it is told already
			}
		})
		if ctx.Err() != nil {
			return
		}
		t.log.Warn("events of interfaces lost", "err", err)
		sleep(ctx, retryPause)
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

// Close ends the use of the kernel; what is there stays.
func (t *Tunnel) Close() { t.edge.Close() }
