// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"sync"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/agent"
)

// Steer keeps a node steering service addresses. It is an agent.Applier.
type Steer struct {
	given   Options
	o       Options // given, as the node's configuration changes them
	log     *slog.Logger
	metrics *metrics
	edge    Edge
	damaged chan struct{} // something has to be looked at

	mu       sync.Mutex
	want     *Wanted // nil before the first Apply
	refused  bool    // the kernel refused a change of an address in the newest converging
	view     *View   // nil: has to be read
	facts    Facts
	nodeOld  bool // facts have to be read
	warnings []string
}

// New makes a Steer; nothing is changed before the first Apply.
//
// Errors: an option is missing or wrong, the metrics are registered already, or the kernel cannot be reached.
func New(o Options) (*Steer, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	e, err := openEdge(o)
	if err != nil {
		return nil, err
	}
	s, err := Over(o, e)
	if err != nil {
		e.Close()
		return nil, err
	}
	return s, nil
}

// Over makes a Steer over another kernel than this host's, as simulations have; the Steer closes it.
//
// Errors: an option is missing or wrong, the metrics are registered already.
func Over(o Options, e Edge) (*Steer, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	m, err := newMetrics(o.Metrics, e, o.Log)
	if err != nil {
		return nil, err
	}
	return &Steer{given: o, o: o, log: o.Log, metrics: m, edge: e, damaged: make(chan struct{}, 1)}, nil
}

// Close ends the use of the kernel; everything stays as it is there. It is called after Run has returned.
func (s *Steer) Close() { s.edge.Close() }

// Apply implements agent.Applier. What is not wanted any more goes at once.
func (s *Steer) Apply(ctx context.Context, want desired.State) ([]agent.Failure, error) {
	w := Wanted{Addresses: want.Addresses()}
	if want.Config != nil {
		w.Config = *want.Config
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.want == nil || !reflect.DeepEqual(s.want.Config, w.Config) {
		o, err := s.given.under(w.Config)
		if err != nil {
			return nil, err
		}
		s.o = o
		s.view = nil // other tables, another switch
	}
	s.want = &w
	if s.view != nil && len(s.query().Tables(s.view.Rules)) > 0 {
		s.view = nil // it has no routes for addresses that are new
	}
	failed, changes, err := s.converge(ctx)
	if err != nil {
		return nil, err
	}
	if changes > 0 {
		s.log.Info("steering changed", "addresses", len(w.Addresses), "changes", changes, "failed", len(failed))
	}
	out := make([]agent.Failure, 0, len(failed))
	for _, a := range slices.SortedFunc(maps.Keys(failed), netip.Addr.Compare) {
		out = append(out, agent.Failure{Prefix: netip.PrefixFrom(a, a.BitLen()), Why: failed[a]})
	}
	return out, nil
}

// converge brings the kernel to what is wanted, and tells which addresses failed and how many changes were made.
func (s *Steer) converge(ctx context.Context) (failed map[netip.Addr]string, changes int, err error) {
	if err := s.see(); err != nil {
		return nil, 0, err
	}
	s.refused = false
	goal := Aim(s.o, *s.want, s.facts, s.view)
	s.warn(goal.Warnings)
	for c := range Plan(s.view, goal) {
		if err := ctx.Err(); err != nil {
			return nil, changes, err
		}
		if makesAnew(c) {
			s.metrics.away.Look() // counters begin at nought
		}
		if err := s.edge.Do(c); err != nil {
			s.view = nil
			if !s.forgive(c, err, goal) {
				return nil, changes, fmt.Errorf("steer: %w", err)
			}
			continue
		}
		s.announce(c)
		if s.view != nil {
			c.note(s.view)
		}
		changes++
	}
	s.metrics.steered(*s.want, goal)
	return goal.Failed, changes, nil
}

// makesAnew tells whether our nftables table goes by a change, or is made anew.
func makesAnew(c Change) bool {
	if edit, ok := c.(EditFilter); ok {
		return edit.Reset
	}
	_, drops := c.(DropFilter)
	return drops
}

// forgive tells whether the changes after one that failed can be made all the same.
func (s *Steer) forgive(c Change, err error, goal Goal) bool {
	if _, idle := c.(Remark); idle {
		s.log.Error("connections that are idle keep the former packet mark, and their answers leave by the node's default route "+
			"until the client sends again; have the kernel's module nf_conntrack_netlink when FWMARK is changed", "err", err)
		return true
	}
	if s.edge.Hopeless(err) {
		return false
	}
	if a := c.address(); a.IsValid() {
		goal.Failed[a], s.refused = err.Error(), true
		return true
	}
	if _, given := c.(GiveDefault); given {
		s.log.Error("the node's default route still leads to the switch; set it by hand", "err", err)
		return true
	}
	return false
}

// announce says loudly what may cut an administrator off.
func (s *Steer) announce(c Change) {
	switch c.(type) {
	case TakeDefault:
		s.log.Warn("the node's default route now leads to the switch", "change", c.String())
	case GiveDefault:
		s.log.Warn("the node's default route is its own again", "change", c.String())
	}
}

// query says what to read for what is wanted.
func (s *Steer) query() Query {
	q := Query{
		InTable: s.want.Config.InTable, OutTable: s.want.Config.OutTable, Switches: s.want.Config.Switches,
		Addresses: s.want.Addresses, Priority: s.o.PriorityIn, Mark: s.o.MarkIn,
	}
	if q.InTable == 0 {
		q.InTable = s.o.InTable
	}
	if q.OutTable == 0 {
		q.OutTable = s.o.OutTable
	}
	return q
}

// see reads what is not known of the kernel.
func (s *Steer) see() (err error) {
	if s.view != nil && s.nodeOld {
		facts, err := s.edge.Look(s.query(), s.view)
		if err != nil || !maps.Equal(facts.Ways, s.facts.Ways) {
			s.view = nil // routes may have gone with the way
		}
		s.facts = facts
	}
	if s.view == nil {
		s.view, s.facts, err = s.edge.Read(s.query())
	}
	if err != nil {
		s.view = nil
		return fmt.Errorf("steer: %w", err)
	}
	s.nodeOld = false
	return nil
}

// warn logs what was not said the last time.
func (s *Steer) warn(warnings []string) {
	for _, w := range warnings {
		if !slices.Contains(s.warnings, w) {
			s.log.Warn("steering is not as configured", "why", w)
		}
	}
	s.warnings = warnings
}

// Found lists the addresses that the kernel steers for us, with their ports, whoever asked for it, in order.
func (s *Steer) Found(context.Context) ([]desired.Address, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := Query{InTable: s.o.InTable, OutTable: s.o.OutTable}
	if s.want != nil {
		q = s.query()
	}
	v, _, err := s.edge.Read(q)
	if err != nil {
		return nil, fmt.Errorf("steer: %w", err)
	}
	found := map[netip.Addr][]desired.Port{}
	for r := range v.Rules.All() {
		if r.ours() && r.To.IsValid() {
			found[r.To.Addr()] = nil
		}
	}
	for r := range v.Routes.All() {
		if r.ours() && r.Local && !r.isDefault() {
			found[r.To.Addr()] = nil
		}
	}
	for e := range v.Elements.All() {
		if ports, ours := found[e.Address]; ours && (e.Set == SetPorts4 || e.Set == SetPorts6) {
			found[e.Address] = append(ports, e.Port)
		}
	}
	out := make([]desired.Address, 0, len(found))
	for _, a := range slices.SortedFunc(maps.Keys(found), netip.Addr.Compare) {
		slices.SortFunc(found[a], func(a, b desired.Port) int {
			return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Number, b.Number))
		})
		out = append(out, desired.Address{Prefix: netip.PrefixFrom(a, a.BitLen()), Ports: found[a]})
	}
	return out, nil
}

// Cleanup removes everything that bears our mark, puts settings and the node's default route back, and forgets what
// they were. No Steer may run meanwhile.
func Cleanup(ctx context.Context, o Options) error {
	o.Metrics = nil
	s, err := New(o)
	if err != nil {
		return err
	}
	defer s.Close()
	s.want = &Wanted{}
	if _, _, err := s.converge(ctx); err != nil {
		return err
	}
	if err := s.edge.Finish(); err != nil {
		return fmt.Errorf("steer: %w", err)
	}
	return nil
}
