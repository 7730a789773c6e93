// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"fairlead.io/fairlead/sim/trace"
	"fairlead.io/fairlead/sim/vm"
)

// Options say how a cluster is asked about.
type Options struct {
	Program *vm.Module // of members and agents
	Members int        // of the group
	Nodes   int        // that are made if the manifests have none
	Seed    uint64
	// Duration is how long each world is watched in virtual time, its beginning included. Where a mishap takes longer, so
	// does its world.
	Duration time.Duration
	// Only are the questions to be asked, by id; none means all.
	Only []string
	// Each is told of every answer, in order; optional.
	Each func(Answer)

	keep bool // the trace
}

// Ask asks all questions about a cluster, each in a world of its own, in parallel on all cores. It stops early when ctx
// ends, whose error it returns beside the answers until then. A rule that broke is no error: the answer says so.
func (c *Cluster) Ask(ctx context.Context, o Options) (Report, error) {
	p, all, err := c.prepare(o)
	if err != nil {
		return Report{}, err
	}
	r := p.report(c.dir, o)
	inner, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait() // nobody uses the program when this returns
	defer stop()
	for i, wait := range p.playAll(inner, &running, all, o) {
		run, err := wait()
		if err != nil {
			return r, err
		}
		a := run.answer(all[i])
		a.Replay = replay(c.dir, o, a.ID)
		if i == 0 && run.until > mishap {
			r.Unserved = run.world.unserved()
		}
		r.Resolution = seconds(run.world.account.o.Every)
		r.Answers = append(r.Answers, a)
		for rule, n := range run.world.rules.Counts() {
			r.Checks[rule] += n
		}
		if o.Each != nil {
			o.Each(a)
		}
	}
	return r, ctx.Err()
}

// Check tells whether a cluster can be asked about so, before anything runs.
func (c *Cluster) Check(o Options) error {
	_, _, err := c.prepare(o)
	return err
}

// IDs lists the ids of all questions about a cluster. Errors: it cannot be asked about so.
func (c *Cluster) IDs(o Options) ([]string, error) {
	o.Only = nil
	_, all, err := c.prepare(o)
	var ids []string
	for _, q := range all {
		ids = append(ids, q.id)
	}
	return ids, err
}

// prepare makes a cluster ready, and chooses the questions.
func (c *Cluster) prepare(o Options) (*plan, []question, error) {
	p, err := c.plan(o.Members, o.Nodes)
	if err != nil {
		return nil, nil, err
	}
	all := p.questions()
	var known []string
	for _, q := range all {
		known = append(known, q.id)
	}
	for _, id := range o.Only {
		if !slices.Contains(known, id) {
			return nil, nil, fmt.Errorf("what-if %q: there is none; choose of %s", id, strings.Join(known, ", "))
		}
	}
	if len(o.Only) > 0 {
		all = slices.DeleteFunc(all, func(q question) bool { return !slices.Contains(o.Only, q.id) })
	}
	return p, all, nil
}

// WriteHTML plays the world of one answer again and writes it as a page for a browser.
func (c *Cluster) WriteHTML(ctx context.Context, to io.Writer, o Options, id string) error {
	o.Only, o.keep = []string{id}, true
	p, all, err := c.prepare(o)
	if err != nil {
		return err
	}
	run, err := p.play(ctx, all[0], o)
	if err != nil {
		return err
	}
	t := run.trace
	t.About = trace.About{
		Seed: o.Seed, Scenario: "If " + all[0].what, Module: moduleOf(o), Command: replay(c.dir, o, id), Until: run.until,
	}
	if v := run.world.broken; v != nil {
		t.About.Violation = &trace.Violation{Rule: v.Rule, At: v.At, Sentence: v.Subject + ": " + v.Text}
		if len(v.Events) > 0 {
			t.About.Violation.Number = v.Events[len(v.Events)-1]
		}
	}
	return trace.WriteHTML(to, t, trace.Page{})
}

// playAll begins the runs in order, as many at a time as there are cores, and gives for each what waits for it. What it
// begins is among running.
func (p *plan) playAll(ctx context.Context, running *sync.WaitGroup, all []question, o Options) []func() (played, error) {
	type outcome struct {
		run played
		err error
	}
	outcomes := make([]chan outcome, len(all))
	waits := make([]func() (played, error), len(all))
	next := make(chan int, len(all))
	for i := range all {
		outcomes[i] = make(chan outcome, 1)
		waits[i] = func() (played, error) {
			out := <-outcomes[i]
			return out.run, out.err
		}
		next <- i
	}
	close(next)
	for range min(len(all), runtime.GOMAXPROCS(0)) {
		running.Go(func() {
			for i := range next {
				out := outcome{err: ctx.Err()}
				if out.err == nil {
					out.run, out.err = p.play(ctx, all[i], o)
				}
				outcomes[i] <- out
			}
		})
	}
	return waits
}

// uncovered closes every report.
const uncovered = "Measured in a model: the shipped members and agents ran, in a network with 0.5 ms between machines, with " +
	"switches that forward as BIRD's routes say and pods that take a second to start. The order of events and what is lost " +
	"for want of a way are the product's; the times are not those of your hardware. Connections that were open, load, " +
	"bandwidth, firewalls, BFD, layer 2 and what other controllers do are not covered."

// report begins a report.
func (p *plan) report(dir string, o Options) Report {
	return Report{
		Folder: dir, Seed: o.Seed, Module: moduleOf(o), Members: p.cast.Members, Nodes: p.cast.Nodes, Switches: p.cast.Switches,
		Made: filled(p.made), Notes: filled(p.notes), Unused: filled(p.unused), Unserved: []Unserved{}, Answers: []Answer{}, Checks: map[string]int{}, Uncovered: uncovered,
	}
}

// filled is a list that is empty rather than nothing.
func filled(list []string) []string { return append([]string{}, list...) }

func moduleOf(o Options) string {
	sum := o.Program.Sum()
	return hex.EncodeToString(sum[:8])
}

// replay is the command that repeats one answer.
func replay(dir string, o Options, id string) string {
	return fmt.Sprintf("fairlead sim run --manifests %s --what-if %s --seeds %d --duration %v --members %d --nodes %d", dir, id, o.Seed, o.Duration, o.Members, o.Nodes)
}

// answer says what came of a run.
func (r played) answer(q question) Answer {
	w := r.world
	a := Answer{
		ID: q.id, What: q.what, Whom: r.whom, Lasted: seconds(q.lasts), Watched: seconds(r.until - r.began),
		Leaders: steps(w.account.led), Addresses: w.account.outcomes(), Digest: r.digest,
	}
	if v := w.broken; v != nil {
		a.Violation = &Violation{Rule: v.Rule, At: v.At.Seconds(), Subject: v.Subject, Text: v.Text}
	}
	a.Summary = a.summarize()
	return a
}
