// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/fsm"
)

// Prober asks a target once, within its timeout.
type Prober interface {
	Probe(ctx context.Context, t Target) Result
}

// Options of a Checker. Fields without "optional" are required.
type Options struct {
	Node    string // only policies that are effective there are probed for
	Outside bool   // it is no node, whatever its name, and probes no Services' endpoints. Optional
	Prober  Prober
	Random  *rand.Rand // spreads probes
	Limits  Limits     // optional
	Log     *slog.Logger
	Metrics prometheus.Registerer // optional
	// Show is given what is thought, now and then while it changes. Optional.
	Show func([]State)
}

// Checker probes listed addresses of policies and knows what is thought of them. Its methods may be called from several goroutines.
type Checker struct {
	o       Options
	metrics *metrics
	began   time.Time
	wake    chan struct{}
	changed chan struct{}

	mu       sync.Mutex
	book     *Book
	policies map[*desired.Policy]policy
	order    []*desired.Policy // the same, as they came
	services []service         // whose endpoints are probed, as they came
	taken    bool              // Take was called
	of       fsm.Revision      // that all of this is as of
	unfit    int
	mute     map[string]bool // types of probes that cannot be made, which was said
	number   uint64          // of the newest report
	stale    bool            // Show does not have what is thought now
}

// policy is one whose addresses are probed.
type policy struct {
	checks  []Check
	at      map[Place]Check
	verdict map[Place]bool // whether it is good, by what the record says
}

// New makes a Checker that has nothing to probe.
func New(o Options) (*Checker, error) {
	c := &Checker{
		o: o, began: time.Now(), wake: make(chan struct{}, 1), changed: make(chan struct{}, 1), book: NewBook(o.Limits, o.Random),
		policies: map[*desired.Policy]policy{}, mute: map[string]bool{}, number: 1, stale: true,
	}
	c.metrics = newMetrics(c)
	if o.Metrics != nil {
		if err := o.Metrics.Register(c.metrics); err != nil {
			return nil, fmt.Errorf("health: register metrics: %w", err)
		}
	}
	return c, nil
}

func (c *Checker) now() time.Duration { return time.Since(c.began) }

// Take has the listed addresses of these policies probed, as far as they are effective on the node, and endpoints of these Services, as they
// are as of a revision.
func (c *Checker) Take(redirects []*desired.Policy, of []desired.Source, as fsm.Revision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of = as
	policies, order := map[*desired.Policy]policy{}, []*desired.Policy(nil)
	var checks []Check
	for _, r := range redirects {
		p, known := c.policies[r]
		if !known {
			if c.o.Outside && !r.EffectiveOutside() || !c.o.Outside && !r.EffectiveOn(c.o.Node) {
				continue
			}
			if p = policyOf(r); len(p.checks) == 0 {
				continue
			}
		}
		policies[r], order = p, append(order, r)
		checks = append(checks, p.checks...)
	}
	services := c.probed(of)
	if c.taken && slices.Equal(order, c.order) && slices.EqualFunc(services, c.services, service.same) {
		return
	}
	for _, s := range services {
		checks = append(checks, s.checks...)
	}
	c.taken = true
	c.policies, c.order, c.services = policies, order, services
	unfit := c.book.Want(c.now(), Targets(checks))
	if len(unfit) > 0 && len(unfit) != c.unfit {
		c.o.Log.Error("there are more addresses to probe than this host does; those beyond count as good",
			"probed", c.book.limits.Targets, "beyond", len(unfit), "first", unfit[0].String())
	}
	c.unfit = len(unfit)
	c.number++
	c.stale = true
	poke(c.wake)
}

func policyOf(r *desired.Policy) policy {
	p := policy{checks: Checks(r), at: map[Place]Check{}, verdict: map[Place]bool{}}
	for _, check := range p.checks {
		p.at[check.Place] = check
	}
	for _, v := range r.Verdicts {
		p.verdict[Place{v.Address.Unmap(), v.Port}] = v.Healthy
	}
	return p
}

// Usable are those of a policy's addresses that new connections to a captured place may get: those that are not bad, or all of them if
// there is none.
func (c *Checker) Usable(r *desired.Policy, at desired.Capture, addresses []netip.Addr) []netip.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, probed := c.policies[r]
	if !probed {
		return addresses
	}
	return usable(addresses, func(a netip.Addr) bool {
		o, _ := c.opinion(p, Place{a.Unmap(), desired.Port{Protocol: at.Port.Protocol, Number: at.Target}})
		return o == Bad
	})
}

// usable are the addresses that are not bad, or, failing open, all.
func usable(addresses []netip.Addr, bad func(netip.Addr) bool) []netip.Addr {
	var out []netip.Addr
	for _, a := range addresses {
		if !bad(a) {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return addresses
	}
	return out
}

// opinion is what is thought of a place: what this host found out, or, where it does not know yet, what the record says.
func (c *Checker) opinion(p policy, at Place) (o Opinion, why string) {
	check, probed := p.at[at]
	if !probed {
		return Unknown, ""
	}
	if o, why = c.book.OfPlace(check); o != Unknown {
		return o, why
	}
	if good, said := p.verdict[at]; said && !good {
		return Bad, "most hosts that probe it say so"
	}
	return o, why
}

// Changed holds a token after something else is thought of a place than before.
func (c *Checker) Changed() <-chan struct{} { return c.changed }

// showEvery is the least time from one call of Show to the next.
const showEvery = time.Second

// Run probes until ctx ends, and returns its error once no probe is under way any more.
func (c *Checker) Run(ctx context.Context) error {
	var probes sync.WaitGroup
	defer probes.Wait()
	var shown time.Time
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		for _, t := range c.begin() {
			probes.Go(func() { c.probe(ctx, t) })
		}
		if time.Since(shown) >= showEvery && c.show() {
			shown = time.Now()
		}
		again.Reset(c.idle())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.wake:
		case <-again.C:
		}
	}
}

func (c *Checker) begin() []Target {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.book.Begin(c.now())
}

// idle is how long there is nothing to do, if nothing happens.
func (c *Checker) idle() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait := time.Minute
	if at, waits := c.book.Next(); waits {
		wait = min(wait, max(at-c.now(), 0))
	}
	if c.stale && c.o.Show != nil {
		wait = min(wait, showEvery)
	}
	return wait
}

// show gives Show what is thought, if that has changed.
func (c *Checker) show() bool {
	if c.o.Show == nil {
		return false
	}
	c.mu.Lock()
	stale := c.stale
	c.stale = false
	c.mu.Unlock()
	if stale {
		c.o.Show(c.States())
	}
	return stale
}

// probe asks a target, and takes in what comes of it.
func (c *Checker) probe(ctx context.Context, t Target) {
	start := time.Now()
	within, cancel := context.WithTimeout(ctx, t.Timeout)
	r := c.o.Prober.Probe(within, t)
	cancel()
	if ctx.Err() != nil {
		return // the agent ends
	}
	if took := time.Since(start); !r.OK && !r.Void && took > t.Timeout+max(t.Timeout/2, time.Second) {
		// Neither the answer nor the end of the wait was noticed in time: that is about this host.
		r = Result{Void: true, Why: fmt.Sprintf("this host did not get to look for %v", took.Round(time.Millisecond))}
	}
	c.metrics.probed(t, r)
	c.mu.Lock()
	before, whyBefore := c.book.Of(t)
	changed := c.book.Done(c.now(), t, r)
	after, why := c.book.Of(t)
	c.stale = c.stale || changed || why != whyBefore
	if changed {
		c.number++
	}
	c.tell(t, r, changed, before, after)
	c.mu.Unlock()
	poke(c.wake)
	if changed {
		poke(c.changed)
	}
}

// tell logs what is thought anew, and, once, that probes of a type cannot be made.
func (c *Checker) tell(t Target, r Result, changed bool, before, after Opinion) {
	switch {
	case r.Void && !c.mute[t.Type]:
		c.mute[t.Type] = true
		c.o.Log.Error("address cannot be probed; what was thought of it stays", "target", t.String(), "why", r.Why)
	case !r.Void:
		delete(c.mute, t.Type)
	}
	switch {
	case !changed:
	case after == Bad:
		c.o.Log.Warn("address is bad: new connections go to others, if there are any", "target", t.String(), "why", r.Why)
	case before == Bad:
		c.o.Log.Info("address is good again", "target", t.String())
	}
}

// State is what is thought of a place of a policy.
type State struct {
	Policy  string    `json:"policy"` // or Service/namespace/name
	Address string    `json:"address"`
	Port    string    `json:"port"` // number/protocol; empty of an endpoint of a Service
	By      []string  `json:"by"`   // what is probed for it
	Opinion string    `json:"opinion"`
	Why     string    `json:"why,omitempty"`
	Open    bool      `json:"open"` // used although it is bad, since all of its port are
	At      time.Time `json:"at"`   // when that was written
}

// States lists what is thought of all places, by policies in the order in which they came.
func (c *Checker) States() (out []State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now().UTC()
	for _, r := range c.order {
		p := c.policies[r]
		for _, check := range p.checks {
			o, why := c.opinion(p, check.Place)
			s := State{
				Policy: r.Name, Address: check.Address.String(), Port: portOf(check.Place),
				By: []string{}, Opinion: o.String(), Why: why, Open: o == Bad && c.open(p, check.Place), At: now,
			}
			for _, t := range check.By {
				s.By = append(s.By, t.String())
			}
			out = append(out, s)
		}
	}
	return append(out, c.statesOfServices(now)...)
}

// open tells whether every address of a port, and of one family, is bad.
func (c *Checker) open(p policy, at Place) bool {
	return !slices.ContainsFunc(p.checks, func(other Check) bool {
		if other.Port != at.Port || other.Address.Is4() != at.Address.Is4() {
			return false
		}
		o, _ := c.opinion(p, other.Place)
		return o != Bad
	})
}

// poke leaves a token if there is none.
func poke(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
