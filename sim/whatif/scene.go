// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"fairlead.io/fairlead/sim/check"
	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/fault"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/stage"
	"fairlead.io/fairlead/sim/trace"
	"fairlead.io/fairlead/sim/traffic"
)

// When things happen in a world.
const (
	measured = 10 * time.Second // from when on requests are sent
	mishap   = 15 * time.Second // when the mishap begins
	settling = 15 * time.Second // that are left after its end, at least
	tick     = 10 * time.Millisecond
	memory   = 5 * time.Second // how long clients go on dialling an address that is gone
)

// scene is one run.
type scene struct {
	*engine.World
	plan     *plan
	stage    *stage.Stage
	back     *fault.Backstage
	life     *life
	rules    *check.Set
	recorder *trace.Recorder
	account  *account
	leads    string
	broken   *check.Violation
}

// played is what came of a run.
type played struct {
	world *scene
	whom  string
	began time.Duration
	until time.Duration
}

// play asks one question.
func (p *plan) play(q question, o Options) (played, error) {
	w := &scene{World: engine.New(o.Seed), plan: p}
	w.recorder = trace.New(trace.Options{Keep: o.keep})
	w.Hear(w.recorder.Hear)
	if err := w.judge(); err != nil {
		return played{}, err
	}
	truth := traffic.NewCluster(w.World, memory)
	w.stage = stage.New(w.World, stage.Options{Members: len(p.cast.Members), Cluster: p.stage, Program: o.Program})
	defer w.stage.Strike()
	w.back = fault.New(w.stage)
	w.life = newLife(w.World, w.stage.Kube, p)
	probe := w.probe(truth)
	w.account = newAccount(accountOptions{Every: probe.every, Nodes: p.addresses()})
	w.Hear(w.account.hear)
	w.Hear(w.notice)
	w.stage.Raise()
	w.At(measured, probe.start)
	run := played{world: w, began: mishap, until: max(o.Duration, mishap+q.lasts+settling)}
	w.At(mishap, func() {
		whom, end, err := q.begin(w)
		if err != nil {
			w.Fail(fmt.Errorf("%s: %w", q.id, err))
			return
		}
		run.whom = whom
		w.After(q.lasts, end)
	})
	w.tick()
	err := w.Run(run.until)
	var violation check.Violation
	switch {
	case err == nil:
		w.account.finish(w.Now())
	case !errors.As(err, &violation):
		return run, fmt.Errorf("what if %s: %w", q.what, err)
	}
	run.until = w.Now()
	return run, nil
}

// judge has the rules of every world be checked here as well.
func (w *scene) judge() (err error) {
	top := check.Topology{Members: w.plan.cast.Members, Switches: w.plan.cast.Switches}
	for _, n := range w.plan.stage.Nodes {
		one := check.Node{Name: n.Name}
		for _, a := range n.Addresses {
			one.Addresses = append(one.Addresses, a.Addr())
		}
		top.Nodes = append(top.Nodes, one)
	}
	w.rules, err = check.New(check.Options{
		Bounds: check.Bounds{Drain: start.DrainDelay}, Topology: top, Violated: w.violated,
	})
	if err == nil {
		w.Hear(w.rules.Hear)
	}
	return err
}

// violated ends the run.
func (w *scene) violated(v check.Violation) {
	if w.broken == nil {
		w.broken = &v
		w.Fail(v)
	}
}

// notice follows who leads, and finds processes that crashed.
func (w *scene) notice(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.Leading:
		if x.On {
			w.leads = x.Process
		}
	case event.Log:
		if x.Level == stage.RawLine && (strings.HasPrefix(x.Text, "panic: ") || strings.HasPrefix(x.Text, "fatal error: ")) {
			w.violated(check.Violation{
				Rule: "crash", At: e.At, Subject: x.Process, Text: x.Process + " crashed: " + x.Text, Events: []uint64{e.Number},
			})
		}
	}
}

// leader is who leads; the first member if nobody does.
func (w *scene) leader() string {
	if w.leads == "" {
		return w.plan.cast.Members[0]
	}
	return w.leads
}

// tick has rules look at the time.
func (w *scene) tick() {
	w.rules.Tick(w.Now())
	w.After(tick, w.tick)
}

// addresses are the nodes by the addresses that routes lead to.
func (p *plan) addresses() map[netip.Addr]string {
	out := map[netip.Addr]string{}
	for _, n := range p.stage.Nodes {
		for _, a := range n.Addresses {
			out[a.Addr()] = n.Name
		}
	}
	return out
}

// alive is what users asked for and what there is of it, but for pods that do not answer though nobody was told.
type alive struct {
	*traffic.Cluster
	life *life
}

// Endpoint implements traffic.Truth.
func (t alive) Endpoint(at netip.AddrPort) (pod, node string, ok bool) {
	pod, node, ok = t.Cluster.Endpoint(at)
	return pod, node, ok && t.life.serves(pod, at.Addr())
}

// probe asks every address, at a steady pace.
type probe struct {
	world   *scene
	traffic *traffic.Traffic
	truth   *traffic.Cluster
	clients []traffic.Client
	every   time.Duration
}

// pace is how often each client asks each address; with more than so many addresses, seldom enough that a run stays quick.
const (
	pace    = 20 * time.Millisecond
	atPace  = 25
	clients = 2
)

func (w *scene) probe(truth *traffic.Cluster) *probe {
	x := &probe{world: w, truth: truth, every: pace * time.Duration(1+(len(w.plan.services)-1)/atPace)}
	for i := range clients {
		x.clients = append(x.clients, traffic.Client{Name: fmt.Sprintf("client-%c", 'a'+i), Addresses: []netip.Addr{
			netip.AddrFrom4([4]byte{198, 18, 0, byte(i + 1)}), netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0xff, 0xfe, 15: byte(i + 1)}),
		}})
	}
	kernels := map[netip.Addr]traffic.Kernel{}
	for _, n := range w.plan.stage.Nodes {
		for _, a := range n.Addresses {
			kernels[a.Addr()] = w.stage.Kernel(n.Name)
		}
	}
	var ways []traffic.Switch
	for _, s := range w.stage.Switches() {
		ways = append(ways, s)
	}
	x.traffic = traffic.New(w.World, traffic.Options{
		Switches: ways, Kernels: kernels, Truth: alive{truth, w.life}, Passes: w.stage.Network.Passes,
	})
	return x
}

// start begins. Clients ask in turn.
func (x *probe) start() {
	for i, c := range x.clients {
		x.world.After(x.every*time.Duration(i)/time.Duration(len(x.clients)), func() { x.ask(c) })
	}
}

func (x *probe) ask(c traffic.Client) {
	r := x.world.Random("probe " + c.Name)
	for _, t := range x.truth.Targets() {
		from := c.Addresses[1]
		if t.Address.Is4() {
			from = c.Addresses[0]
		}
		x.world.Publish(x.traffic.Send(c.Name, from, t, r.Uint64(), r.Uint64()))
	}
	x.world.After(x.every, func() { x.ask(c) })
}
