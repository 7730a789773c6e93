// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// World plays one world with a planted bug on. Without a bug's name it plays the same world, drawn from the same seed
// or read from the same scenario, as the source is.
type World func(ctx context.Context, m Mutant, seed uint64) (Verdict, error)

// Verdict is how a world ended.
type Verdict struct {
	Rule string        // that broke; empty if all held
	At   time.Duration // when it broke, or how long the world lasted
	Text string
}

// Catch is what became of one planted bug. Its JSON form is stable.
type Catch struct {
	Name   string `json:"name"`
	Caught bool   `json:"caught"`
	// Seeds were tried, the one that caught it included, and VirtualSeconds went by in them up to the catch.
	Seeds          int     `json:"seeds"`
	VirtualSeconds float64 `json:"virtual_seconds"`
	Rule           string  `json:"rule,omitempty"` // that caught it
	Seed           uint64  `json:"seed,omitempty"` // in which it did
	Text           string  `json:"text,omitempty"`
	// Drawn is what worlds drawn from seeds showed. They are all there is for a bug without a scenario of its own; for others
	// it is nil unless Hunt.Drawn asked for it.
	Drawn *Drawn `json:"drawn,omitempty"`
	// Spoiled are seeds in which a rule breaks without the bug as well. Where it is the same rule, or breaks earlier, the
	// seed proves nothing.
	Spoiled []Spoiled `json:"spoiled,omitempty"`
}

// Drawn is what became of a planted bug in worlds drawn from seeds, which nobody made for it.
type Drawn struct {
	Caught bool   `json:"caught"`
	Seeds  int    `json:"seeds"` // tried, the one that caught it included
	Rule   string `json:"rule,omitempty"`
	Seed   uint64 `json:"seed,omitempty"`
}

// Spoiled is a seed in which a rule breaks without a planted bug.
type Spoiled struct {
	Seed uint64 `json:"seed"`
	Rule string `json:"rule"`
	Text string `json:"text"`
}

// Hunt looks for a seed in which a planted bug is caught.
type Hunt struct {
	World World
	Seeds []uint64 // to be tried, in order
	// Drawn is with how many of them bugs that have a scenario of their own are tried in drawn worlds, too.
	Drawn int
	// Workers is how many worlds run at once.
	Workers int
	// Done is called with each bug as soon as it is known what became of it, one at a time; optional.
	Done func(Mutant, Catch)

	mu       sync.Mutex
	controls map[control]*outcome
}

// control names a world without a planted bug.
type control struct {
	scenario string
	seed     uint64
}

// outcome is what a control came to, once over is closed.
type outcome struct {
	over    chan struct{}
	verdict Verdict
	err     error
}

// Run hunts all bugs, and gives what became of them in the same order. It fails when a world could not be played.
func (h *Hunt) Run(ctx context.Context, all []Mutant) ([]Catch, error) {
	h.controls = map[control]*outcome{}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := make([]Catch, len(all))
	next := make(chan int)
	var working sync.WaitGroup
	for range max(1, h.Workers) {
		working.Go(func() {
			for i := range next {
				var err error
				if out[i], err = h.hunt(ctx, all[i]); err != nil {
					cancel(fmt.Errorf("planted bug %s: %w", all[i].Name, err))
					continue
				}
				h.done(all[i], out[i])
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	working.Wait()
	return out, context.Cause(ctx)
}

func (h *Hunt) done(m Mutant, c Catch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.Done != nil {
		h.Done(m, c)
	}
}

// hunt looks for a bug in the worlds that it names, and in drawn ones.
func (h *Hunt) hunt(ctx context.Context, m Mutant) (Catch, error) {
	c, err := h.try(ctx, m, h.Seeds)
	drawn := c
	if err == nil && m.Scenario != "" {
		if h.Drawn == 0 {
			return c, nil
		}
		m.Scenario = ""
		drawn, err = h.try(ctx, m, h.Seeds[:min(h.Drawn, len(h.Seeds))])
		c.Spoiled = append(c.Spoiled, drawn.Spoiled...)
	}
	c.Drawn = &Drawn{Caught: drawn.Caught, Seeds: drawn.Seeds, Rule: drawn.Rule, Seed: drawn.Seed}
	return c, err
}

// try tries one seed after the other until a rule breaks that holds without the bug.
func (h *Hunt) try(ctx context.Context, m Mutant, seeds []uint64) (Catch, error) {
	c := Catch{Name: m.Name}
	for _, seed := range seeds {
		if ctx.Err() != nil {
			return c, context.Cause(ctx)
		}
		v, err := h.World(ctx, m, seed)
		if err != nil {
			return c, fmt.Errorf("seed %d: %w", seed, err)
		}
		c.Seeds++
		c.VirtualSeconds += v.At.Seconds()
		if v.Rule == "" {
			continue
		}
		without, err := h.control(ctx, m, seed)
		if err != nil {
			return c, fmt.Errorf("seed %d, without the bug: %w", seed, err)
		}
		if without.Rule != "" {
			c.Spoiled = append(c.Spoiled, Spoiled{seed, without.Rule, without.Text})
			if without.Rule == v.Rule || without.At <= v.At {
				continue
			}
		}
		c.Caught, c.Rule, c.Seed, c.Text = true, v.Rule, seed, v.Text
		return c, nil
	}
	return c, nil
}

// control plays a world without the bug, once for all bugs that share it.
func (h *Hunt) control(ctx context.Context, m Mutant, seed uint64) (Verdict, error) {
	key := control{m.Scenario, seed}
	h.mu.Lock()
	o := h.controls[key]
	first := o == nil
	if first {
		o = &outcome{over: make(chan struct{})}
		h.controls[key] = o
	}
	h.mu.Unlock()
	if first {
		o.verdict, o.err = h.World(ctx, Mutant{Scenario: m.Scenario}, seed)
		close(o.over)
	}
	<-o.over
	return o.verdict, o.err
}

// Survivors lists the bugs that were not caught.
func Survivors(all []Catch) (names []string) {
	for _, c := range all {
		if !c.Caught {
			names = append(names, c.Name)
		}
	}
	return names
}

// SpoiledSeeds lists the seeds in which a rule broke without a bug, each once.
func SpoiledSeeds(all []Catch) (out []Spoiled) {
	for _, c := range all {
		for _, s := range c.Spoiled {
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}
