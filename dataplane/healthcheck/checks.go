// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/connlimit"
)

// Options is what Checks are made of. Fields without "optional" are required.
type Options struct {
	Node string // this node's name in Kubernetes
	// Listen opens a TCP port on every address of the node, in both families.
	Listen func(port uint16) (net.Listener, error)
	// Healthy tells whether the node carries out what it is told; while it does not, nobody is sent to it.
	Healthy func() bool
	Log     *slog.Logger
	Metrics prometheus.Registerer // optional
}

// Pauses between attempts to open ports that could not be: they double.
const (
	retryMin = time.Second
	retryMax = 30 * time.Second
)

// limits are of the connections of all ports together. Who asks has heard the answer within milliseconds. One load balancer may
// ask at all ports at once.
func limits() connlimit.Limits {
	return connlimit.Limits{Strangers: connlimit.Room{Total: 512, PerKey: 512}}
}

// Checks are the ports that are answered at. One goroutine calls Apply, another Run.
type Checks struct {
	o       Options
	metrics *metrics
	limiter *connlimit.Limiter
	failing chan struct{} // of capacity 1: some port is not open that shall be

	mu      sync.Mutex
	ended   bool
	want    map[uint16]Check
	refused map[string]string // why, of Services that have no port
	open    map[uint16]*port
	failed  map[uint16]string // why, of those that shall be open
}

// New makes Checks, with no port open. Errors: the metrics are registered already.
func New(o Options) (*Checks, error) {
	m, err := newMetrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	return &Checks{
		o: o, metrics: m, limiter: connlimit.New(connlimit.Options{Port: "healthcheck", Limits: limits(), Metrics: m.connections}), failing: make(chan struct{}, 1),
		open: map[uint16]*port{}, failed: map[uint16]string{},
	}, nil
}

// Apply answers as Services want it that are in order of their names. Ports that nobody wants any more are closed, with all
// connections. Those that cannot be opened are said, and tried again by Run.
func (c *Checks) Apply(services []*desired.Service) {
	want, refused := Plan(services, c.o.Node)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	for service, why := range refused {
		if c.refused[service] != why {
			c.o.Log.Warn("no health-check node port for service", "service", service, "err", why)
		}
	}
	c.want, c.refused = want, refused
	c.bringLocked()
}

// bringLocked closes and opens ports until those are open that are wanted, or cannot be.
func (c *Checks) bringLocked() {
	for number, p := range c.open {
		if _, wanted := c.want[number]; !wanted {
			delete(c.open, number)
			p.close()
		}
	}
	for number := range c.failed {
		if _, wanted := c.want[number]; !wanted {
			delete(c.failed, number)
		}
	}
	for number, check := range c.want {
		if p := c.open[number]; p != nil {
			p.check.Store(&check)
			continue
		}
		listener, err := c.o.Listen(number)
		if err != nil {
			c.failLocked(number, err)
			continue
		}
		if c.failed[number] != "" {
			c.o.Log.Info("health-check node port open at last", "service", check.Service, "port", number)
			delete(c.failed, number)
		}
		c.serveLocked(number, check, listener)
	}
	c.showLocked()
}

func (c *Checks) showLocked() { c.metrics.ports(len(c.open), len(c.failed)+len(c.refused)) }

// failLocked notes that a port is not open. What was said before is not said again.
func (c *Checks) failLocked(number uint16, err error) {
	if why := err.Error(); c.failed[number] != why {
		c.failed[number] = why
		c.o.Log.Warn("health-check node port not open", "service", c.want[number].Service, "port", number, "err", why)
	}
	notify(c.failing)
}

// serveLocked answers at a port until it is closed.
func (c *Checks) serveLocked(number uint16, check Check, listener net.Listener) {
	p := newPort(c.o, c.metrics, check, c.limiter.Over(listener))
	c.open[number] = p
	go func() {
		err := p.server.Serve(p.listener)
		if errors.Is(err, http.ErrServerClosed) {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.open[number] != p {
			return
		}
		delete(c.open, number)
		p.close()
		c.failLocked(number, err)
		c.showLocked()
	}()
}

// Run tries again to open what could not be, until ctx ends; then it closes all ports and returns ctx's error.
func (c *Checks) Run(ctx context.Context) error {
	defer c.end()
	var again <-chan time.Time
	pause := retryMin
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.failing:
			if again == nil {
				again = time.After(pause)
			}
		case <-again:
			again, pause = nil, min(2*pause, retryMax)
			if c.retry() {
				pause = retryMin
			}
		}
	}
}

// retry tells whether all ports are open.
func (c *Checks) retry() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bringLocked()
	return len(c.failed) == 0
}

func (c *Checks) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for _, p := range c.open {
		p.close()
	}
	clear(c.open)
}

// notify leaves word, if none is waiting yet.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// port is one port that is open.
type port struct {
	listener net.Listener
	server   *http.Server
	check    atomic.Pointer[Check]
}

// Times of a connection. Who asks has a few bytes to say and to hear.
const (
	exchangeTime = 5 * time.Second
	idleTime     = 30 * time.Second
	headerMax    = 4 << 10
)

func newPort(o Options, m *metrics, check Check, listener net.Listener) *port {
	p := &port{listener: listener}
	p.check.Store(&check)
	p.server = &http.Server{
		Handler:           &answers{check: &p.check, healthy: o.Healthy, metrics: m},
		ReadHeaderTimeout: exchangeTime, ReadTimeout: exchangeTime, WriteTimeout: exchangeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: headerMax,
		ErrorLog:       slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug), // what strangers send is no news
	}
	return p
}

// close ends the listener and all connections. The port is free when it returns. What these say does not matter: nothing is
// left of either.
func (p *port) close() {
	_ = p.server.Close()
	_ = p.listener.Close() // the server has none before Serve
}
