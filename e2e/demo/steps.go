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

func stepNames() []string {
	var names []string
	for _, s := range steps {
		names = append(names, s.name)
	}
	return names
}

// perform goes through the chosen steps. What was told until an error comes with it.
func perform(ctx context.Context, w *world, out io.Writer) (report, error) {
	var r report
	printHead(out)
	for _, s := range steps {
		if len(w.o.Only) > 0 && !slices.Contains(w.o.Only, s.name) {
			continue
		}
		one, err := s.perform(ctx, w)
		if err != nil {
			return r, fmt.Errorf("%s: %w", s.name, err)
		}
		one.print(out)
		r.Steps = append(r.Steps, one)
	}
	return r, nil
}

func (s step) perform(ctx context.Context, w *world) (stepReport, error) {
	w.sayf("%s …", s.name)
	got, err := under(ctx, func(ctx context.Context) error {
		if err := during(ctx, w.a(2*time.Second)); err != nil { // as it was before
			return err
		}
		return s.do(ctx, w)
	})
	if err != nil {
		return stepReport{}, err
	}
	r := newStepReport(s.name, got.Tally)
	r.Dropped, r.Seconds = got.dropped, got.took.Seconds()
	if s.back != nil {
		after, err := under(ctx, func(ctx context.Context) error { return errors.Join(s.back(ctx, w), during(ctx, w.a(2*time.Second))) })
		if err != nil {
			return r, fmt.Errorf("bring back: %w", err)
		}
		f := figuresOf(after.Figures)
		r.After = &f
	}
	return r, w.right(ctx)
}

// a is how long something lasts: less for tests.
func (w *world) a(d time.Duration) time.Duration {
	if w.o.Shorter {
		return d / 4
	}
	return d
}
