// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/cluster/leases"
	"fairlead.io/fairlead/sim/balancer"
	"fairlead.io/fairlead/sim/check"
	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/scenario"
	"fairlead.io/fairlead/sim/segment"
	"fairlead.io/fairlead/sim/stage"
	"fairlead.io/fairlead/sim/trace"
	"fairlead.io/fairlead/sim/traffic"
	"fairlead.io/fairlead/sim/vm"
)

// Setting is what a world is made of, besides its scenario.
type Setting struct {
	Program *vm.Module // of members and agents
	Mutant  string     // the planted bug that is on, in a program that has them
	Debug   bool       // processes log everything
	Keep    bool       // keep the trace
	Usage   *vm.Usage  // has counted in it what processes do; optional
	File    string     // that holds the scenario, for those who are to repeat it; optional
	// Follow is within what time switches follow what is committed, where that is to be sooner than check.Bounds.S8; optional.
	Follow time.Duration
}

// Result is how a run ended.
type Result struct {
	Seed     uint64
	Scenario scenario.Scenario
	Digest   string // of everything that happened
	Module   string // the program that ran
	Repeat   string // the command that repeats it
	Virtual  time.Duration
	// Violation is the first rule that broke; nil if all held.
	Violation *check.Violation
	// Counts are how often each rule was put to the test.
	Counts map[string]int
	Events uint64
	Trace  trace.Trace // empty unless it was asked for
}

// tick is how often rules about time are looked at.
const tick = 10 * time.Millisecond

// world is one run.
type world struct {
	*engine.World
	within   context.Context
	scenario scenario.Scenario
	setting  Setting
	stage    *stage.Stage
	rules    *check.Set
	recorder *trace.Recorder
	broken   *check.Violation
}

// Play runs one scenario from beginning to end.
func Play(s scenario.Scenario, o Setting) (Result, error) {
	return playWithin(context.Background(), s, o)
}

// playWithin is Play that gives up when ctx ends.
func playWithin(ctx context.Context, s scenario.Scenario, o Setting) (Result, error) {
	if err := s.Validate(); err != nil {
		return Result{}, err
	}
	w := &world{World: engine.New(s.Seed), within: ctx, scenario: s, setting: o}
	w.recorder = trace.New(trace.Options{Keep: o.Keep})
	w.Hear(w.recorder.Hear)
	if err := w.judge(); err != nil {
		return Result{}, err
	}
	truth := traffic.NewCluster(w.World, memory)
	options := s.Stage()
	options.Program, options.Mutant, options.Debug, options.Usage = o.Program, o.Mutant, o.Debug, o.Usage
	options.Record = w.rules.View
	options.Asked = func(segment int) []netip.Addr { return asked(truth, segment, s.Segments) }
	w.stage = stage.New(w.World, options)
	defer w.stage.Strike()
	w.traffic(truth)
	w.stage.Raise()
	scenario.Play(w.stage, s)
	w.tick()
	return w.run()
}

// memory is how long clients go on dialling an address that a user gave up.
const memory = 5 * time.Second

// judge has the checkers listen.
func (w *world) judge() (err error) {
	w.rules, err = check.New(check.Options{
		Bounds:   w.bounds(),
		Format:   w.scenario.Format(),
		Topology: topology(w.scenario),
		Violated: w.violated,
	})
	if err != nil {
		return err
	}
	w.Hear(w.rules.Hear)
	w.Hear(w.crashed)
	return nil
}

// bounds are what follows from how members and agents run in a world.
func (w *world) bounds() check.Bounds {
	t := stage.Tuning()
	return check.Bounds{S8: w.setting.Follow, Takeover: leases.Timing{}.Takeover() + segment.AskEvery + 2*time.Second, Drain: start.DrainDelay, Settle: t.Settle, L2: t.RetryCap + t.Settle + 10*time.Second}
}

// topology names who is in a world.
func topology(s scenario.Scenario) check.Topology {
	t := check.Topology{Sockets: s.Sockets}
	for i := range s.Members {
		t.Members = append(t.Members, stage.MemberName(i))
	}
	for i := range s.Nodes {
		t.Nodes = append(t.Nodes, check.Node{Name: stage.NodeName(i), Addresses: []netip.Addr{stage.NodeAddress(i)}})
	}
	for i := range s.Nodes {
		for _, in := range stage.SegmentsOf(i, s.Segments) {
			t.Links = append(t.Links, check.Link{Node: stage.NodeName(i), Segment: stage.SegmentName(in), Network: stage.SegmentNetwork(in)})
		}
	}
	for i := range s.Switches {
		t.Switches = append(t.Switches, stage.SwitchName(i))
	}
	for i := range s.Balancers {
		t.Balancers = append(t.Balancers, check.Balancer{Name: stage.BalancerName(i), Identity: stage.BalancerIdentity(i)})
	}
	for i := range s.Outside {
		i += s.Balancers
		for _, name := range stage.OutsideBalancers(i) {
			t.Balancers = append(t.Balancers, check.Balancer{Name: name, Identity: balancer.Identity(stage.OutsideDriver(stage.DriverName(i)), name), Driver: stage.DriverName(i)})
		}
	}
	return t
}

// asked lists the addresses that clients know of and look for in a segment: but for those of the other segments' networks.
func asked(truth *traffic.Cluster, segment, segments int) (all []netip.Addr) {
	for _, t := range truth.Targets() {
		elsewhere := false
		for i := range segments {
			elsewhere = elsewhere || i != segment && stage.SegmentNetwork(i).Contains(t.Address)
		}
		if !elsewhere {
			all = append(all, t.Address)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// violated ends the run.
func (w *world) violated(v check.Violation) {
	if w.broken == nil {
		w.broken = &v
		w.Fail(v)
	}
}

// crashed finds processes that ended as no process of ours may, whatever happens to it: by a panic.
func (w *world) crashed(e event.Stamped) {
	if l, ok := e.Event.(event.Log); ok && l.Level == stage.RawLine {
		for _, sign := range []string{"panic: ", "fatal error: "} {
			if strings.HasPrefix(l.Text, sign) {
				w.violated(check.Violation{
					Rule: "crash", At: e.At, Subject: l.Process, Text: l.Process + " crashed: " + l.Text, Events: []uint64{e.Number},
				})
			}
		}
	}
}

// traffic has clients dial what users were given, from the time on at which something may be served.
func (w *world) traffic(truth *traffic.Cluster) {
	kernels := map[netip.Addr]traffic.Kernel{}
	for i, name := range w.stage.Nodes() {
		kernels[stage.NodeAddress(i)] = w.stage.Kernel(name)
	}
	var ways []traffic.Switch
	for _, s := range w.stage.Switches() {
		ways = append(ways, s)
	}
	t := traffic.New(w.World, traffic.Options{
		Clients: []traffic.Client{
			{Name: "client-a", Addresses: []netip.Addr{netip.AddrFrom4([4]byte{198, 51, 100, 1})}},
			{Name: "client-b", Addresses: []netip.Addr{netip.AddrFrom4([4]byte{198, 51, 100, 2})}},
		},
		Every: 100 * time.Millisecond, Switches: ways, Kernels: kernels, Truth: truth, Passes: w.stage.Network.Passes,
	})
	w.At(time.Second, t.Start)
}

// tick has rules look at the time.
func (w *world) tick() {
	if err := w.within.Err(); err != nil {
		w.Fail(err)
		return
	}
	w.rules.Tick(w.Now())
	w.After(tick, w.tick)
}

func (w *world) run() (Result, error) {
	err := w.Run(w.scenario.End())
	if err == nil {
		for _, v := range w.rules.Finish(w.Now()) {
			w.violated(v)
		}
	}
	var violation check.Violation
	if err != nil && !errors.As(err, &violation) {
		return Result{}, fmt.Errorf("run of seed %d: %w", w.Seed(), err)
	}
	r := Result{
		Seed: w.Seed(), Scenario: w.scenario, Virtual: w.Now(), Violation: w.broken, Counts: w.rules.Counts(),
		Digest: w.recorder.Digest(), Module: moduleOf(w.setting), Events: w.recorder.Events(),
		Repeat: repeat(w.scenario, w.setting.File),
	}
	if w.setting.Keep {
		r.Trace = w.recorder.Trace()
		r.Trace.About = w.about(r)
	}
	return r, nil
}

// about is what a trace says of its run.
func (w *world) about(r Result) trace.About {
	a := trace.About{
		Seed: r.Seed, Scenario: string(r.Scenario.Text()), Module: r.Module, Command: r.Repeat, Until: r.Virtual,
	}
	if v := r.Violation; v != nil {
		a.Violation = &trace.Violation{Rule: v.Rule, At: v.At, Sentence: v.Subject + ": " + v.Text}
		if len(v.Events) > 0 {
			a.Violation.Number = v.Events[len(v.Events)-1]
		}
	}
	return a
}

// moduleOf names a program by its bytes: runs compare for equal ones only.
func moduleOf(o Setting) string {
	sum := o.Program.Sum()
	return hex.EncodeToString(sum[:8])
}
