// SPDX-License-Identifier: Apache-2.0

package sock

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

// Options of resolution on one host.
type Options struct {
	Config
	Room  Capacity
	Audit time.Duration // between two full comparisons with the kernel. Default 5 minutes
	// Reconsider holds a token after Config.Usable has changed its mind. Optional.
	Reconsider <-chan struct{}
	Events     Events
	Sparing    Sparing // without, nobody is spared
	Ending     Ending  // without, sockets stay with a backend that left
	// Clients tells what tables hold that clients fill, by their names. Optional.
	Clients func() (map[string]Held, error)
	// Asked is whether somebody asked since the last call for a comparison with the kernel. Optional.
	Asked   func() bool
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Sock keeps the tables as the agent's state says. Its methods may be called from several goroutines.
type Sock struct {
	log     *slog.Logger
	metrics *metrics
	audit   time.Duration
	again   <-chan struct{} // to reconsider which listed addresses are used
	events  Events
	told    told // Tell's own
	sparing Sparing
	ending  Ending
	unended string // why sockets were not ended last; Run's own
	clients func() (map[string]Held, error)
	crowded map[string]bool // tables that clients need more room in; Run's own

	compare func() bool // somebody asks for a comparison
	due     bool        // one was asked for and has not succeeded yet; Run's own

	mu        sync.Mutex
	config    Config
	edge      Edge
	planner   *Planner
	names     []string            // of Services
	policies  []uint32            // IDs of redirects
	ids       map[string]uint32   // of Services' rules
	byID      map[uint32]string   // the same the other way round, and redirects
	rules     map[string]resolved // by the Service's name
	redirects map[*desired.Policy]*Rule
	// untunnelled are the policies with backends that this host has no way to, which was logged.
	untunnelled map[string]bool
	newest      wanted              // that was asked for
	spared      map[string][]uint32 // rules that spare a pod, by its UID
	last        Want
	asked       bool // a state was ever to be carried out
	known       bool // the tables hold what the planner says, as far as we know
	left        bool // backends may have left since sockets were last looked at
	attached    bool
	room        Capacity
	scarce      map[string]bool   // tables that are about to be full
	reported    map[uint32]string // problems that were logged
}

// resolved is a Service's rule, and what that was made of.
type resolved struct {
	service desired.Source
	zone    string
	rule    *Rule // nil: nothing is resolved
}

// Over makes the resource over whatever kernel. Nothing is changed before the first Apply.
func Over(o Options, e Edge) (*Sock, error) {
	if o.Node == "" {
		return nil, fmt.Errorf("sock: no node name")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Audit <= 0 {
		o.Audit = 5 * time.Minute
	}
	m, err := newMetrics(o.Metrics, e, o.Room)
	if err != nil {
		return nil, err
	}
	return &Sock{
		log: o.Log, metrics: m, audit: o.Audit, again: o.Reconsider, events: o.Events, sparing: o.Sparing, ending: o.Ending, clients: o.Clients, compare: o.Asked, left: true, config: o.Config, edge: e, planner: NewPlanner(o.Room),
		rules: map[string]resolved{}, reported: map[uint32]string{}, room: o.Room, scarce: map[string]bool{}, crowded: map[string]bool{},
	}, nil
}

// Apply brings the tables to a state. Programs begin to work once the first one is there whole; those of an earlier
// agent work with what it left until then. A Service that does not fit is named in the log and in metrics; its address is
// served by packets as without.
func (s *Sock) Apply(_ context.Context, want desired.State) ([]agent.Failure, error) {
	told := want.Told()
	services := make([]desired.Source, len(told))
	for i, t := range told {
		services[i] = t
	}
	return nil, s.apply(wanted{want.Zone, services, want.NodeAddresses(), want.Policies(), beyond(s.config.Node, s.config.Tunnels, want)})
}

// wanted is what of a state concerns the tables.
type wanted struct {
	zone      string
	services  []desired.Source
	nodes     []netip.Addr
	redirects []*desired.Policy
	beyond    []netip.Prefix // proxy addresses that this host has no way to
}

func (s *Sock) apply(w wanted) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	start := time.Now()
	s.asked = true
	s.number(w)
	s.newest = w
	s.compose()
	s.spared = s.config.spared(w.redirects)
	if err := errors.Join(s.spare(), s.settle()); err != nil {
		s.metrics.failures.Inc()
		return err
	}
	s.metrics.seconds.Observe(time.Since(start).Seconds())
	return nil
}

// compose makes what is wanted of what was asked for.
func (s *Sock) compose() {
	w := s.newest
	s.left = s.left || slices.ContainsFunc(s.last.Rules, (*Rule).rests) // what rests has no row whose end would be noticed
	s.last = Want{Rules: append(s.rulesOf(w.zone, w.services), s.redirectRules(w.redirects)...), Nodes: w.nodes}
}

// reconsider has the rules heed which listed addresses are used by now.
func (s *Sock) reconsider() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked {
		return nil
	}
	for d, r := range s.redirects {
		if d.Probe.Type == "" || r == nil {
			continue
		}
		if now := s.config.RedirectRule(d); !reflect.DeepEqual(now, r) {
			s.redirects[d] = now
		}
	}
	s.compose()
	if err := s.settle(); err != nil {
		s.metrics.failures.Inc()
		return err
	}
	return nil
}

// number gives Services their IDs, and all of them their names.
func (s *Sock) number(w wanted) {
	names, policies := make([]string, len(w.services)), make([]uint32, len(w.redirects))
	for i, v := range w.services {
		names[i] = v.Name()
	}
	for i, r := range w.redirects {
		policies[i] = r.Number
	}
	if slices.Equal(names, s.names) && slices.Equal(policies, s.policies) {
		return
	}
	s.names, s.policies, s.ids = names, policies, map[string]uint32{}
	s.byID = Names(names, w.redirects)
	for id, name := range s.byID {
		s.ids[name] = id
	}
}

// redirectRules gives the rules of the policies that are effective here; one that did not change is the one of before.
func (s *Sock) redirectRules(redirects []*desired.Policy) (out []*Rule) {
	rules := make(map[*desired.Policy]*Rule, len(redirects))
	moved := !slices.Equal(s.config.beyond, s.newest.beyond)
	s.config.beyond = s.newest.beyond
	untunnelled := map[string]bool{}
	for _, d := range redirects {
		r, known := s.redirects[d]
		known = known && !(moved && d.Mode == desired.ToProxies)
		if !known {
			r = s.config.RedirectRule(d)
		}
		if rules[d] = r; r != nil {
			out = append(out, r)
			if untunnelled[d.Name] = s.config.leavesOut(d); untunnelled[d.Name] && !s.untunnelled[d.Name] {
				s.log.Warn("proxy addresses are no backends here: this host has no tunnel", "policy", d.Name, "remedy", "write tunnel: {} into agent.yaml")
			}
		}
	}
	s.redirects, s.untunnelled = rules, untunnelled
	return out
}

// rulesOf gives the rules of Services; one that did not change is the one of before.
func (s *Sock) rulesOf(zone string, services []desired.Source) []*Rule {
	s.config.Zone = zone
	rules := make(map[string]resolved, len(services))
	var out []*Rule
	for _, v := range services {
		name := v.Name()
		r, ok := s.rules[name]
		if !ok || r.service != v || r.zone != zone || r.rule != nil && r.rule.ID != s.ids[name] {
			r = resolved{v, zone, s.config.RuleOf(v.Service(), s.ids[name])}
		}
		rules[name] = r
		if r.rule != nil {
			out = append(out, r.rule)
		}
	}
	s.rules = rules
	return out
}

// settle carries out what leads to what is wanted last.
func (s *Sock) settle() error {
	whole := !s.known
	if whole {
		rows, err := s.edge.Read()
		if err != nil {
			return err
		}
		s.planner.Adopt(rows)
		s.known = true
	}
	for _, c := range s.planner.Step(s.last) {
		if err := s.edge.Apply(c); err != nil {
			s.known = false
			return err
		}
		s.metrics.writes.Add(float64(c.Writes()))
		s.left = s.left || len(c.DropSlots) > 0
	}
	if !s.attached {
		s.metrics.attached.Set(0)
		if err := s.edge.Attach(); err != nil {
			return err
		}
		s.attached = true
		s.metrics.attached.Set(1)
		s.log.Info("service addresses are resolved at the client", "rules", len(s.last.Rules))
	}
	if whole {
		s.metrics.compared.SetToCurrentTime()
	}
	s.report()
	return nil
}

// report tells of what does not fit, each once, and of tables that are about to be full.
func (s *Sock) report() {
	problems := s.planner.Problems()
	s.metrics.is(s.planner.Taken(), len(problems))
	s.metrics.backends.of(s.last.Rules)
	s.warnOfRoom()
	now := map[uint32]string{}
	for _, p := range problems {
		now[p.Rule.ID] = p.Rule.Name
		if s.reported[p.Rule.ID] != p.Rule.Name {
			s.log.Error("not resolved at the client, or not to all of its endpoints", "service", p.Rule.Name, "why", p.Why)
		}
	}
	s.reported = now
}

// scarce is the share of a table's rows, in hundredths, from which on there is a warning (balancing §23).
const scarce = 80

// warnOfRoom tells once of each table that is about to be full.
func (s *Sock) warnOfRoom() {
	taken := s.planner.Taken()
	for table, n := range map[string][2]int{"places": {taken.Places, s.room.Places}, "slots": {taken.Slots, s.room.Slots}} {
		full := n[0]*100 >= n[1]*scarce
		if full && !s.scarce[table] {
			s.log.Warn("table of resolution is about to be full", "table", table, "rows", n[0], "room", n[1], "remedy", "raise sock."+table+" in agent.yaml")
		}
		s.scarce[table] = full
	}
}

// lookAround is how often the cgroups of pods are looked for that rules spare, and sockets whose backend left.
const lookAround = time.Second

// Run has tables heed which listed addresses are used, compares them with what they shall hold every now and then, and puts them right,
// until ctx ends.
func (s *Sock) Run(ctx context.Context) error {
	audit, look, count := time.NewTicker(s.audit), time.NewTicker(lookAround), time.NewTicker(countEvery)
	defer audit.Stop()
	defer look.Stop()
	defer count.Stop()
	s.countClients()
	var retry <-chan time.Time // nil: for nothing
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-audit.C:
			if err := s.repair(); err != nil {
				s.log.Error("tables not put right", "err", err)
			}
			continue
		case <-look.C:
			if err := s.respare(); err != nil {
				s.metrics.failures.Inc()
				s.log.Error("backends not spared", "err", err)
			}
			s.compareIfAsked()
			s.endLeft()
			continue
		case <-count.C:
			s.countClients()
			continue
		case <-s.again:
		case <-retry:
		}
		retry = nil
		if err := s.reconsider(); err != nil {
			s.log.Error("tables do not heed which addresses answer yet", "err", err)
			retry = time.After(reconsiderAgain)
		}
	}
}

// reconsiderAgain is how long to wait after tables could not be written.
const reconsiderAgain = time.Second

// compareIfAsked compares tables, as often as it takes, if somebody asked for that.
func (s *Sock) compareIfAsked() {
	if s.compare != nil && s.compare() {
		s.due = true
		s.log.Info("tables are compared with what they shall hold: somebody asked for it")
	}
	if !s.due {
		return
	}
	err := s.repair()
	if s.due = err != nil; s.due {
		s.log.Error("tables not put right", "err", err)
	}
}

// repair makes sure of the tables and of the programs.
func (s *Sock) repair() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked {
		return nil // nothing is known of what shall be: what is there stays
	}
	s.known, s.attached, s.left = false, false, true
	if err := errors.Join(s.spare(), s.settle()); err != nil {
		s.metrics.failures.Inc()
		return err
	}
	return nil
}
