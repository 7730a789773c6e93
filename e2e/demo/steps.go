// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// step is one mishap. While do runs, clients ask; it returns when the users' side of it is over. Then back brings back
// what was killed, still under load, which is told apart.
type step struct {
	name string
	do   func(ctx context.Context, w *world) error
	back func(ctx context.Context, w *world) error
}

// steps are in the order in which they are shown.
var steps = []step{
	{name: "steady", do: steady},
	{name: "leader-killed", do: leaderKilled},
	{name: "member-cut-off", do: memberCutOff},
	{name: "all-members-stopped", do: allMembersStopped},
	{name: "pod-moved", do: podMoved, back: podsReturn},
	{name: "node-killed", do: nodeKilled, back: machinesReturn},
	{name: "agent-restarted", do: agentRestarted},
	{name: "api-stopped", do: apiStopped, back: machinesReturn},
	{name: "switch-restarted", do: switchRestarted},
}

// asked are steps that are made only when they are asked for by name.
var asked = []step{{name: "node-drained", do: nodeDrained, back: nodeUndrained}}

func stepNames() []string { return namesOf(steps) }

func namesOf(steps []step) []string {
	var names []string
	for _, s := range steps {
		names = append(names, s.name)
	}
	return names
}

// chosen are the steps of these names, in their order and as often; all if there are none.
func chosen(names []string) []step {
	if len(names) == 0 {
		return steps
	}
	var out []step
	all := slices.Concat(steps, asked)
	for _, name := range names {
		out = append(out, all[slices.Index(namesOf(all), name)])
	}
	return out
}

// perform goes through the chosen steps. What was told until an error comes with it.
func perform(ctx context.Context, w *world, out io.Writer) (report, error) {
	r := report{Steps: []stepReport{}}
	printHead(out)
	for _, s := range chosen(w.o.Only) {
		w.sayf("%s …", s.name)
		one, err := s.perform(ctx, w)
		if one.Name != "" {
			one.print(out)
			r.Steps = append(r.Steps, one)
		}
		if err == nil {
			err = w.right(ctx)
		}
		if err != nil {
			return r, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return r, nil
}

// around is how long clients ask before and after something happens.
const around = 2 * time.Second

// perform gives what became of the requests; its name is empty if the mishap itself failed.
func (s step) perform(ctx context.Context, w *world) (stepReport, error) {
	got, err := w.under(ctx, func(ctx context.Context) error {
		if err := w.during(ctx, w.a(around)); err != nil {
			return err
		}
		return s.do(ctx, w)
	})
	if err := errors.Join(err, got.record(w.log("failures"), s.name)); err != nil {
		return stepReport{}, err
	}
	r := newStepReport(s.name, got.Tally)
	r.Dropped, r.Seconds = got.dropped, got.took.Seconds()
	if s.back == nil {
		return r, nil
	}
	after, err := w.under(ctx, func(ctx context.Context) error {
		if err := s.back(ctx, w); err != nil {
			return fmt.Errorf("bring back: %w", err)
		}
		return w.during(ctx, w.a(around))
	})
	f := figuresOf(after.Figures)
	r.After = &f
	return r, errors.Join(err, after.record(w.log("failures"), s.name+" (coming back)"))
}

// a is how long something lasts: less for tests.
func (w *world) a(d time.Duration) time.Duration {
	if w.o.Shorter {
		return d / 4
	}
	return d
}
