// SPDX-License-Identifier: Apache-2.0

package l2

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Clock is the time that leases are measured with.
type Clock interface {
	// Now is the reading of a clock that never runs back and goes on while the machine sleeps (CLOCK_BOOTTIME).
	Now() time.Duration
	// After gives the time once d has passed.
	After(d time.Duration) <-chan time.Time
}

// Options is what an L2 is made of. Fields without "optional" are required.
type Options struct {
	Edge    Edge
	Clock   Clock
	Log     *slog.Logger
	Metrics prometheus.Registerer // optional
}

// L2 answers on a node's links. Renew and Grant may be called from any goroutine.
type L2 struct {
	o       Options
	metrics *metrics
	granted chan struct{} // holds a token after leases changed
	moved   chan struct{} // holds one after interfaces may have changed

	mu        sync.Mutex
	responder *Responder
	ports     map[string]*port // by interface
}

// port is an open Port and what it was opened for.
type port struct {
	Port
	of     Interface
	groups map[netip.Addr]bool // that are wanted; whether they are joined
	retry  time.Duration       // when those that are not are tried again
}

// New makes an L2 that answers for nothing. Errors: the metrics are registered already.
func New(o Options) (*L2, error) {
	l := &L2{o: o, granted: make(chan struct{}, 1), moved: make(chan struct{}, 1), responder: NewResponder(), ports: map[string]*port{}}
	var err error
	l.metrics, err = newMetrics(o.Metrics, func() int { return len(l.Answering()) }, l.missing)
	return l, err
}

// Answering lists the addresses that this node may answer for now, in order.
func (l *L2) Answering() []netip.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.responder.Answering(l.o.Clock.Now())
}

// Renew begins a renewal. It counts as sent now, so it is to be called just before it is.
func (l *L2) Renew() Renewal {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.responder.Renew(l.o.Clock.Now())
}

// Grant takes in the answer to the renewal that was sent then: the leases of this node, all of them. It tells whether
// the answer counted; one that was overtaken does not.
func (l *L2) Grant(sent time.Duration, leases []Lease) bool {
	l.mu.Lock()
	counts := l.responder.Grant(l.o.Clock.Now(), sent, leases)
	l.joinLocked()
	l.mu.Unlock()
	put(l.granted)
	return counts
}

// Leave ends all answering for good, and gives the renewal that tells so: all that was held may be granted to others
// once it arrives.
func (l *L2) Leave() Renewal {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.responder.Leave(l.o.Clock.Now())
}

// put leaves a token for Run.
func put(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// retryPause is between attempts to watch or open interfaces, and to join groups.
const retryPause = time.Second

// Run answers and announces until ctx ends, and returns its error. Nothing is said afterwards.
func (l *L2) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	running.Go(func() { l.watch(ctx) })
	defer l.closePorts()
	var again <-chan time.Time
	for {
		next := l.speak()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.granted:
		case <-l.o.Clock.After(next):
			continue
		case <-l.moved:
			again = nil
			if err := l.reread(ctx, &running); err != nil {
				l.o.Log.Error("interfaces not opened", "err", err)
				again = l.o.Clock.After(retryPause)
			}
		case <-again:
			put(l.moved)
		}
	}
}

// watch tells whenever interfaces may have changed.
func (l *L2) watch(ctx context.Context) {
	for ctx.Err() == nil {
		err := l.o.Edge.Watch(ctx, func() { put(l.moved) })
		if ctx.Err() != nil {
			return
		}
		l.o.Log.Error("interfaces not watched", "err", err)
		select {
		case <-l.o.Clock.After(retryPause):
		case <-ctx.Done():
		}
	}
}

// reread takes in which interfaces there are, and opens and closes ports accordingly.
func (l *L2) reread(ctx context.Context, running *sync.WaitGroup) error {
	list, err := l.o.Edge.Interfaces()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	keep := map[string]bool{}
	for i := range list {
		p, err := l.openLocked(ctx, list[i], running)
		if err != nil {
			errs = append(errs, fmt.Errorf("open %s: %w", list[i].Name, err))
			list[i].Up = false // it cannot answer
			continue
		}
		keep[p.of.Name] = true
	}
	for name, p := range l.ports {
		if !keep[name] {
			_ = p.Close() // nobody uses it any more
			delete(l.ports, name)
		}
	}
	l.responder.SetInterfaces(l.o.Clock.Now(), list)
	l.joinLocked()
	return errors.Join(errs...)
}

// openLocked gives the port of an interface; one of an interface that is another by now is opened anew.
func (l *L2) openLocked(ctx context.Context, i Interface, running *sync.WaitGroup) (*port, error) {
	p := l.ports[i.Name]
	if p != nil && p.of.Index == i.Index && p.of.MAC == i.MAC {
		return p, nil
	}
	if p != nil {
		_ = p.Close() // of an interface that is gone
		delete(l.ports, i.Name)
	}
	opened, err := l.o.Edge.Open(i)
	if err != nil {
		return nil, err
	}
	p = &port{Port: opened, of: i, groups: map[netip.Addr]bool{}}
	l.ports[i.Name] = p
	running.Go(func() { l.listen(ctx, p) })
	return p, nil
}

// listen answers what a port hears until it is closed.
func (l *L2) listen(ctx context.Context, p *port) {
	b := make([]byte, 2048)
	for {
		n, err := p.Receive(b)
		if err != nil {
			l.lost(ctx, p, err)
			return
		}
		if err := l.hear(p, b[:n]); err != nil {
			l.metrics.failed.Inc()
			l.o.Log.Debug("answer not sent", "interface", p.of.Name, "err", err)
		}
	}
}

// hear answers a frame, if an answer is due. Whether it is, is decided and done under one lock, so that no answer is on
// its way when a renewal says that its lease is not held any more.
func (l *L2) hear(p *port, frame []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	answer := l.responder.Hear(l.o.Clock.Now(), p.of.Name, frame)
	if answer == nil {
		return nil
	}
	l.metrics.answered.Inc()
	return p.Send(answer)
}

// lost forgets a port that failed, and has it opened anew if its interface is still there.
func (l *L2) lost(ctx context.Context, p *port, err error) {
	l.mu.Lock()
	current := l.ports[p.of.Name] == p
	if current {
		_ = p.Close() // it is of no use
		delete(l.ports, p.of.Name)
	}
	l.mu.Unlock()
	if current && ctx.Err() == nil {
		l.o.Log.Warn("interface not heard any more", "interface", p.of.Name, "err", err)
		put(l.moved)
	}
}

// speak sends what is due, and gives the time until more is.
func (l *L2) speak() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.o.Clock.Now()
	frames, next := l.responder.Due(now)
	for _, f := range frames {
		p := l.ports[f.Interface]
		if p == nil {
			continue
		}
		l.metrics.announced.Inc()
		if err := p.Send(f.Bytes); err != nil {
			l.metrics.failed.Inc()
			l.o.Log.Debug("announcement not sent", "interface", f.Interface, "err", err)
		}
	}
	return max(next-now, time.Millisecond)
}

func (l *L2) closePorts() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, p := range l.ports {
		_ = p.Close() // nothing is written to it any more
		delete(l.ports, name)
	}
}
