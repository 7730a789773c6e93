// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"slices"
	"time"

	"fairlead.io/fairlead/sim/fault"
	"fairlead.io/fairlead/sim/scenario/parameter"
	"fairlead.io/fairlead/sim/workload"
)

// Shrink leaves out of a scenario that fails what the failure does not need: faults, steps, Services, machines,
// parameters and time. It calls fails at most budget times, with valid scenarios only, and gives the smallest that
// failed; s itself if none did, or ctx ended at once. It does the same each time.
func Shrink(ctx context.Context, s Scenario, fails func(Scenario) bool, budget int) Scenario {
	k := &shrinker{ctx: ctx, best: s, fails: fails, budget: budget, tried: map[string]bool{string(s.Text()): true}}
	for k.progress = true; k.progress; {
		k.progress = false
		k.all()
	}
	return k.best
}

type shrinker struct {
	ctx      context.Context
	best     Scenario
	fails    func(Scenario) bool
	budget   int
	tried    map[string]bool
	progress bool
}

// all tries everything once, what saves most first.
func (k *shrinker) all() {
	lists(k, func(s *Scenario) *[]fault.Fault { return &s.Faults })
	lists(k, func(s *Scenario) *[]workload.Step { return &s.Work })
	k.number(func(s *Scenario) *int { return &s.Services }, 0)
	k.number(func(s *Scenario) *int { return &s.Balancers }, 0)
	k.number(func(s *Scenario) *int { return &s.Clients }, 0)
	k.number(func(s *Scenario) *int { return &s.Outside }, 0)
	k.number(func(s *Scenario) *int { return &s.Aggregate }, 0)
	k.number(func(s *Scenario) *int { return &s.Drift }, 0)
	k.number(func(s *Scenario) *int { return &s.Nodes }, 1)
	k.number(func(s *Scenario) *int { return &s.Members }, 1)
	k.number(func(s *Scenario) *int { return &s.Switches }, 1)
	for i := range k.best.Faults {
		k.fault(i)
	}
	for i := range k.best.Work {
		k.parameters(func(s *Scenario) *parameter.Values { return &s.Work[i].With })
		k.time(func(s *Scenario) *time.Duration { return &s.Work[i].At }, Raised)
	}
	k.time(func(s *Scenario) *time.Duration { return &s.Duration }, time.Second)
}

// try takes a smaller scenario if it fails, too.
func (k *shrinker) try(change func(*Scenario)) bool {
	if k.budget <= 0 || k.ctx.Err() != nil {
		return false
	}
	s := k.best.clone()
	change(&s)
	text := string(s.Text())
	if k.tried[text] || s.Validate() != nil {
		return false
	}
	k.tried[text] = true
	k.budget--
	if !k.fails(s.clone()) {
		return false
	}
	k.best, k.progress = s, true
	return true
}

// lists leaves elements out: many at a time first, then one by one, from the end.
func lists[T any](k *shrinker, of func(*Scenario) *[]T) {
	for size := len(*of(&k.best)); size > 0; size /= 2 {
		for end := len(*of(&k.best)); end > 0; end -= size {
			begin := max(end-size, 0)
			k.try(func(s *Scenario) { *of(s) = slices.Delete(*of(s), begin, min(end, len(*of(s)))) })
		}
	}
}

// number makes a number smaller: as small as it can be, half, or by one. Machines that are no more leave all faults and
// steps.
func (k *shrinker) number(of func(*Scenario) *int, least int) {
	for {
		n := *of(&k.best)
		smaller := false
		for _, next := range []int{least, (least + n) / 2, n - 1} {
			if next >= least && next < n && !smaller {
				smaller = k.try(func(s *Scenario) { *of(s) = next; s.forget() })
			}
		}
		if !smaller {
			return
		}
	}
}

// forget leaves out of faults and steps whom there is no more.
func (s *Scenario) forget() {
	all := s.Cast().All()
	for i := range s.Faults {
		s.Faults[i].On = slices.DeleteFunc(s.Faults[i].On, func(n string) bool { return !slices.Contains(all, n) })
	}
	s.Faults = slices.DeleteFunc(s.Faults, func(f fault.Fault) bool { return s.Cast().Check(f) != nil })
	s.Work = slices.DeleteFunc(s.Work, func(w workload.Step) bool { return s.Plan().Check(w) != nil })
}

// fault makes one fault smaller.
func (k *shrinker) fault(i int) {
	for at := len(k.best.Faults[i].On) - 1; at >= 0; at-- {
		k.try(func(s *Scenario) { s.Faults[i].On = slices.Delete(s.Faults[i].On, at, at+1) })
	}
	k.parameters(func(s *Scenario) *parameter.Values { return &s.Faults[i].With })
	k.time(func(s *Scenario) *time.Duration { return &s.Faults[i].For }, 0)
	k.time(func(s *Scenario) *time.Duration { return &s.Faults[i].At }, Raised)
}

// parameters leaves parameters out, in order of their names.
func (k *shrinker) parameters(of func(*Scenario) *parameter.Values) {
	for _, name := range of(&k.best).Names() {
		k.try(func(s *Scenario) { delete(*of(s), name) })
	}
}

// time makes a time shorter and rounder, not below least.
func (k *shrinker) time(of func(*Scenario) *time.Duration, least time.Duration) {
	k.try(func(s *Scenario) { *of(s) = min(*of(s), least) })
	for k.try(func(s *Scenario) { *of(s) = max(least, (*of(s) / 2).Round(100*time.Millisecond)) }) {
	}
	k.try(func(s *Scenario) { *of(s) = min(*of(s), max(least, of(s).Truncate(time.Second))) })
}

// clone copies all that a change may touch.
func (s Scenario) clone() Scenario {
	s.Faults, s.Work = slices.Clone(s.Faults), slices.Clone(s.Work)
	for i := range s.Faults {
		s.Faults[i].On = slices.Clone(s.Faults[i].On)
		s.Faults[i].With = s.Faults[i].With.Clone()
	}
	for i := range s.Work {
		s.Work[i].With = s.Work[i].With.Clone()
	}
	return s
}
