// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/fault"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/stage"
	"fairlead.io/fairlead/sim/workload"
)

// Scenario is what happens in a run.
type Scenario struct {
	Name  string
	About string // why it is kept, for people
	// Seed is what everything else in the world is drawn from.
	Seed uint64
	// Duration is how long the run lasts at least.
	Duration time.Duration
	Members  int
	Nodes    int
	Switches int
	Services int // that there are at the beginning
	// Balancers are outside load balancers, each with a driver, and Clients those who read and write registers. With any
	// of them, stage.Options need a Record.
	Balancers int
	Clients   int
	// Outside are further drivers, whose balancers users ask for by objects of LBCF's kinds.
	Outside int
	// Segments are those that nodes are in and answer for addresses on.
	Segments int
	// Aggregate is how many bits prefixes have that are announced in the place of their addresses, where there is a block of Services
	// whose addresses may be; 0: there is none.
	Aggregate int
	// ShortLogs has members keep so little of their logs that who was away for a while is sent snapshots.
	ShortLogs bool
	// Sockets is what is served at the sockets of nodes.
	Sockets start.Sockets
	// Drift is by how much clocks run wrong at most, in parts per million.
	Drift  int
	Faults []fault.Fault
	Work   []workload.Step
}

// Settle is how long a run goes on after everything has come to rest: L1, and some.
const Settle = 31 * time.Second

// Raised is when Services are brought in: the group has formed by then.
const Raised = 3 * time.Second

// Cast is who plays.
func (s Scenario) Cast() fault.Cast {
	return fault.Cast{
		Members: named(s.Members, stage.MemberName), Nodes: named(s.Nodes, stage.NodeName),
		Switches: named(s.Switches, stage.SwitchName), Drivers: named(s.Balancers+s.Outside, stage.DriverName), Outside: s.Outside > 0,
		Segments: named(s.Segments, stage.SegmentName), Sockets: s.Sockets.Any(), Policies: s.Sockets.Policies, Probes: s.Sockets.Probes,
	}
}

func named(n int, name func(int) string) (out []string) {
	for i := range n {
		out = append(out, name(i))
	}
	return out
}

// Plan is what steps may be about.
func (s Scenario) Plan() workload.Plan {
	c := s.Cast()
	return workload.Plan{Services: s.Services, Balancers: s.Balancers, Outside: s.drivers(), Nodes: c.Nodes, Switches: c.Switches, Segments: s.Segments, Aggregate: s.Aggregate, Sockets: s.Sockets}
}

// drivers are the names of drivers that users know by objects.
func (s Scenario) drivers() []string { return s.Cast().Drivers[s.Balancers:] }

// Stage is the stage that it needs, without programs and record.
func (s Scenario) Stage() stage.Options {
	o := stage.Options{Members: s.Members, Nodes: s.Nodes, Switches: s.Switches, Balancers: s.Balancers, Outside: s.Outside, DriftPPM: s.Drift, Segments: s.Segments, Aggregate: s.Aggregate, Sockets: s.Sockets}
	o.Certificates = slices.ContainsFunc(s.Faults, func(f fault.Fault) bool { return fault.Revokes(f.Kind) })
	if s.upgrades() {
		o.Release = start.Older
	}
	if s.ShortLogs || s.upgrades() { // during an upgrade members take in snapshots that the other release wrote
		o.Raft = start.Raft{SnapshotThreshold: 64, SnapshotInterval: 4 * time.Second, TrailingLogs: 16}
	}
	return o
}

// upgrades tells whether everybody begins with the older release.
func (s Scenario) upgrades() bool {
	return slices.ContainsFunc(s.Faults, func(f fault.Fault) bool { return f.Kind == fault.RollingUpgrade })
}

// older tells whether any process is started as the older release.
func (s Scenario) older() bool {
	return slices.ContainsFunc(s.Faults, func(f fault.Fault) bool {
		k, ok := fault.Find(f.Kind)
		return ok && k.Older || f.Kind == fault.RollingUpgrade
	})
}

// Format is that of the record in the end.
func (s Scenario) Format() uint32 {
	if s.upgrades() && !slices.ContainsFunc(s.Faults, fault.Fault.Finalizes) {
		return fsm.OldestFormat
	}
	return fsm.NewestFormat
}

// String is one line for people.
func (s Scenario) String() string {
	return fmt.Sprintf("%s (seed %d): %d members, %d nodes, %d switches, %d balancers, %d services; %d faults and %d steps in %s",
		cmp.Or(s.Name, "unnamed"), s.Seed, s.Members, s.Nodes, s.Switches, s.Balancers, s.Services, len(s.Faults), len(s.Work), s.End())
}

// Calm is when the last fault has ended.
func (s Scenario) Calm() time.Duration {
	calm := Raised
	for _, f := range s.Faults {
		calm = max(calm, f.End())
	}
	return calm
}

// End is how long the run lasts: its Duration, or longer if things need time to settle after the last fault and the
// last step.
func (s Scenario) End() time.Duration {
	quiet := s.Calm()
	for _, w := range s.Work {
		quiet = max(quiet, w.End())
	}
	return max(s.Duration, quiet+Settle)
}

// Limits of what a scenario may ask for.
const (
	mostMembers  = 9
	mostNodes    = 500
	mostSwitches = 16
	mostServices = 200
	mostOthers   = 8
	mostDrift    = 100_000
	mostRoom     = 4096
	longest      = time.Hour

	leastAggregate, mostAggregate = 20, 31
)

// Validate tells what is wrong with it: which field, why, and what to do.
func (s Scenario) Validate() error {
	for _, n := range []struct {
		field             string
		have, least, most int
	}{
		{"members", s.Members, 1, mostMembers}, {"nodes", s.Nodes, 1, mostNodes}, {"switches", s.Switches, 1, mostSwitches},
		{"services", s.Services, 0, mostServices}, {"balancers", s.Balancers, 0, mostOthers},
		{"clients", s.Clients, 0, mostOthers}, {"outside", s.Outside, 0, mostOthers}, {"segments", s.Segments, 0, stage.MostSegments},
		{"drift", s.Drift, 0, mostDrift}, {"room", s.Sockets.Room, 0, mostRoom},
	} {
		if n.have < n.least || n.have > n.most {
			return fmt.Errorf("%s: %d is not possible; write a number from %d to %d", n.field, n.have, n.least, n.most)
		}
	}
	if s.Sockets.Tunnels && !s.Sockets.Policies {
		return errors.New("tunnels: only policies lead through them; write policies: true, too")
	}
	if s.Sockets.Probes && !s.Sockets.Policies {
		return errors.New("probes: only addresses that policies list are probed; write policies: true, too")
	}
	if s.Sockets.Tunnels && s.Nodes > start.MostTunnels {
		return fmt.Errorf("tunnels: there are addresses for %d nodes, and not for %d", start.MostTunnels, s.Nodes)
	}
	if s.Aggregate != 0 && (s.Aggregate < leastAggregate || s.Aggregate > mostAggregate) {
		return fmt.Errorf("aggregate: %d is not possible; write a number of bits from %d to %d, or 0", s.Aggregate, leastAggregate, mostAggregate)
	}
	if s.Duration <= 0 || s.Duration > longest {
		return fmt.Errorf("duration: %s is not possible; write more than 0s, up to %s", s.Duration, longest)
	}
	for i, f := range s.Faults {
		if err := s.Cast().Check(f); err != nil {
			return fmt.Errorf("faults[%d].%w", i, err)
		}
	}
	for i, w := range s.Work {
		if err := s.Plan().Check(w); err != nil {
			return fmt.Errorf("work[%d].%w", i, err)
		}
	}
	if s.End() > 2*longest {
		return fmt.Errorf("faults and work go on until %s; have everything end within %s", s.End()-Settle, 2*longest)
	}
	return nil
}
