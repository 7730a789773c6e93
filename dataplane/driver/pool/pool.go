// SPDX-License-Identifier: Apache-2.0

// Package pool keeps the clients of the drivers that a member calls: one for each driver, for everybody who calls it,
// through all terms.
//
// It knows when a client must be another one (its settings changed) and what a driver wants to be shown, which may come from
// a Secret (Credentials). It promises that all who call a driver share its limit of calls in flight and its circuit, that
// new credentials count from the next call on, that without the credentials that a driver asks for nothing is sent to it,
// that they are shown by TLS or to this machine alone, and that calls are counted under LBCF's names and under ours. Secrets are in no error and no log. Start reading at
// Pool.For.
package pool

import (
	"container/list"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// Settings is what is known of a driver. All but Name and URL may be left out.
type Settings struct {
	Name string // "namespace/name"
	URL  string
	// Timeouts are the whole budgets of calls.
	Timeouts map[webhook.Name]time.Duration
	// AcceptsDryRun tells that the driver may be called in dry runs.
	AcceptsDryRun bool
	// Concurrent is how many calls may be in flight at once. Default: the client's.
	Concurrent int
	// Secret names what holds the driver's Credentials, in the driver's namespace.
	Secret string
}

func (s Settings) equal(o Settings) bool {
	return s.Name == o.Name && s.URL == o.URL && s.AcceptsDryRun == o.AcceptsDryRun && s.Concurrent == o.Concurrent &&
		s.Secret == o.Secret && maps.Equal(s.Timeouts, o.Timeouts)
}

// Transport is the connections to one driver, as driver.Transport is.
type Transport interface {
	http.RoundTripper
	// Close ends connections that no call uses.
	Close()
}

// Options is what a Pool is made of. Fields without "optional" are required.
type Options struct {
	// Transport makes the connections to a driver; optional: driver.NewTransport.
	Transport func(driver.TransportOptions) (Transport, error)
	// Check tells why there shall be no connection to an address, as driver.Reach does; optional: the Reach that refuses loopback
	// and link-local addresses. Transport has to heed it.
	Check func(ctx context.Context, to netip.AddrPort) error
	// Secrets reads a Secret, within the time that its context has; optional: drivers that want one are not called. Errors
	// name neither keys nor values.
	Secrets func(ctx context.Context, namespace, name string) (map[string][]byte, error)
	// Now is the clock of deadlines; it never runs back.
	Now func() time.Duration
	// Random makes a source that nobody else draws from, each unlike all others.
	Random func() rand.Source
	// DryRun asks for nothing but dry runs.
	DryRun  bool
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// most is how many drivers a pool knows. Of more, those that were asked for longest ago are forgotten.
const most = 256

// redirects is how many are followed of one call, as Go's own client does, which LBCF used (lbcf §3.1).
const redirects = 10

// Pool is the clients of drivers. Its methods may be called from any goroutine.
type Pool struct {
	o       Options
	metrics *metrics

	mu     sync.Mutex
	byName map[string]*list.Element // of *entry
	recent *list.List               // those asked for last are in front
}

// entry is one driver.
type entry struct {
	settings Settings
	client   *driver.Client
	way      *way
}

// New makes an empty pool. Errors: the metrics are registered already.
func New(o Options) (*Pool, error) {
	if o.Transport == nil {
		o.Transport = func(t driver.TransportOptions) (Transport, error) { return driver.NewTransport(t) }
	}
	if o.Check == nil {
		o.Check = driver.Reach{}.Check
	}
	m, err := newMetrics(o.Metrics)
	if err != nil {
		return nil, fmt.Errorf("register metrics of drivers: %w", err)
	}
	return &Pool{o: o, metrics: m, byName: map[string]*list.Element{}, recent: list.New()}, nil
}

// For gives the client of a driver: the one that it gave before, as long as the settings are the same. Calls of a former
// client that are under way go on. It does not wait for anybody; credentials are read by calls.
//
// Errors: the settings make no client.
func (p *Pool) For(s Settings) (*driver.Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.byName[s.Name]; known != nil {
		if e := known.Value.(*entry); e.settings.equal(s) {
			p.recent.MoveToFront(known)
			return e.client, nil
		}
	}
	e, err := p.open(s)
	if err != nil {
		return nil, err
	}
	p.drop(s.Name)
	p.byName[s.Name] = p.recent.PushFront(e)
	if p.recent.Len() > most {
		oldest := p.recent.Back().Value.(*entry).settings.Name
		p.drop(oldest)
		p.metrics.forget(oldest)
	}
	return e.client, nil
}

// Forget drops what is known of a driver that is gone, its metrics included.
func (p *Pool) Forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(name)
	p.metrics.forget(name)
}

// Close ends connections that no call uses.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range p.byName {
		p.drop(name)
	}
}

func (p *Pool) drop(name string) {
	if known := p.byName[name]; known != nil {
		known.Value.(*entry).way.close()
		p.recent.Remove(known)
		delete(p.byName, name)
	}
}

func (p *Pool) open(s Settings) (*entry, error) {
	s.Timeouts = maps.Clone(s.Timeouts)
	w, err := newWay(p.o, s)
	if err != nil {
		return nil, err
	}
	client, err := driver.New(driver.Options{
		Name: s.Name, URL: s.URL, HTTP: w, Now: p.o.Now, Random: p.o.Random(), Log: p.o.Log,
		Timeouts: s.Timeouts, Concurrent: s.Concurrent, Redirects: redirects,
		DryRun: p.o.DryRun, AcceptsDryRun: s.AcceptsDryRun, Observe: p.metrics.of(s.Name),
	})
	if err != nil {
		w.close()
		return nil, err
	}
	return &entry{s, client, w}, nil
}
