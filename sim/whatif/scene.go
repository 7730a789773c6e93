// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"context"
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
)

// When things happen in a world.
const (
	measured = 10 * time.Second // from when on requests are sent
	mishap   = 15 * time.Second // when the mishap begins
	settling = 34 * time.Second // that are left after all that comes of it, at least: what is to agree has 30 s for it (L1)
	tick     = 10 * time.Millisecond
)

// scene is one run.
type scene struct {
	*engine.World
	within   context.Context
	plan     *plan
	stage    *stage.Stage
	back     *fault.Backstage
	life     *life
	rules    *check.Set
	recorder *trace.Recorder
	account  *account
	leads    string
	broken   *check.Violation
	silent   bool // the last request came to a pod that did not answer, though nobody was told
}

// played is what came of a run.
type played struct {
	world *scene
	whom  string
	began time.Duration
	until time.Duration
	// digest and trace are of what happened until then; the trace only if it was to be kept.
	digest string
	trace  trace.Trace
}

// play asks one question. It gives up when ctx ends.
func (p *plan) play(ctx context.Context, q question, o Options) (played, error) {
	w := &scene{World: engine.New(o.Seed), within: ctx, plan: p}
	w.recorder = trace.New(trace.Options{Keep: o.keep})
	w.Hear(w.recorder.Hear)
	if err := w.judge(); err != nil {
		return played{}, err
	}
	w.stage = stage.New(w.World, stage.Options{Members: len(p.cast.Members), Cluster: p.stage, Program: o.Program})
	defer w.stage.Strike()
	w.back = fault.New(w.stage)
	w.life = newLife(w.World, w.stage.Kube, p)
	probe := w.probe()
	w.account = newAccount(accountOptions{Every: probe.every, Nodes: p.addresses()})
	for _, x := range (truth{world: w}).typed() { // members write nothing to Services that are no load balancers
		w.account.owners[netip.AddrPortFrom(x.Address, x.Port)] = x.Service
	}
	w.Hear(w.account.hear)
	w.Hear(w.notice)
	w.stage.Raise()
	w.At(measured, probe.start)
	run := played{world: w, began: mishap, until: max(o.Duration, mishap+max(q.lasts, q.echoes)+settling)}
	w.At(mishap, func() {
		whom, end, err := q.begin(w)
		if err != nil {
			w.Fail(fmt.Errorf("%s: %w", q.id, err))
			return
		}
		run.whom = whom
		w.After(q.lasts, func() {
			end()
			w.Publish(event.Calm{})
		})
	})
	w.tick()
	err := w.Run(run.until)
	if err == nil {
		w.rules.Finish(w.Now())
		err = w.Failed()
	}
	var violation check.Violation
	switch {
	case err == nil:
		w.account.finish(w.Now())
	case !errors.As(err, &violation):
		return run, fmt.Errorf("what if %s: %w", q.what, err)
	}
	run.until, run.digest = w.Now(), w.recorder.Digest()
	if o.keep {
		run.trace = w.recorder.Trace()
	}
	return run, nil
}

// judge has the rules of every world be checked here as well.
func (w *scene) judge() (err error) {
	top := check.Topology{Members: w.plan.cast.Members, Switches: w.plan.cast.Switches, Exchanges: w.plan.exchanges}
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
		w.Hear(func(e event.Stamped) {
			if !w.nobodysFault(e) {
				w.rules.Hear(e)
			}
		})
	}
	return err
}

// nobodysFault is what rules are not told: what fails for want of any switch, or because a pod is silent that nobody
// could tell of, and Services that the product can make nothing of, as it says.
func (w *scene) nobodysFault(e event.Stamped) bool {
	switch x := e.Event.(type) {
	case event.Flow:
		return !x.Served && (x.Switch == "" || w.silent)
	case event.Object:
		return x.Kind == "Service" && w.plan.unusable[x.Namespace+"/"+x.Name] != ""
	}
	return false
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
	if err := w.within.Err(); err != nil {
		w.Fail(err)
		return
	}
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
