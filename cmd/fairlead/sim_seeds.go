// SPDX-License-Identifier: Apache-2.0

package main

import (
	"iter"
	"strconv"
	"strings"

	"fairlead.io/fairlead/sim"
	"fairlead.io/fairlead/sim/scenario"
)

// seeds are those of one command: each step-th from first to last.
type seeds struct{ first, last, step uint64 }

// parseSeeds reads A..B, or one seed, and which part of them, I/N; nothing is all.
func parseSeeds(text, part string) (seeds, error) {
	from, to, ranged := strings.Cut(text, "..")
	if !ranged {
		to = from
	}
	first, err1 := strconv.ParseUint(from, 10, 64)
	last, err2 := strconv.ParseUint(to, 10, 64)
	switch {
	case err1 != nil || err2 != nil:
		return seeds{}, usagef("--seeds %q: want A..B, two numbers from 0 up, such as 1..50", text)
	case last < first:
		return seeds{}, usagef("--seeds %q: the first seed is greater than the last; write %d..%d", text, last, first)
	}
	index, parts, err := parsePart(part)
	s := seeds{first + index, last, parts}
	switch {
	case err != nil:
		return seeds{}, err
	case index > last-first:
		return seeds{}, usagef("--part %s: there are only %d seeds; ask for fewer parts", part, last-first+1)
	case s.steps() >= maxSeeds:
		return seeds{}, usagef("--seeds %q: more than %d at a time; run them in parts", text, maxSeeds)
	}
	return s, nil
}

// maxSeeds bounds what one command holds in memory of its runs.
const maxSeeds = 1_000_000

// parsePart reads I/N; nothing is all of one part.
func parsePart(text string) (index, parts uint64, err error) {
	if text == "" {
		return 0, 1, nil
	}
	i, n, _ := strings.Cut(text, "/")
	index, err1 := strconv.ParseUint(i, 10, 64)
	parts, err2 := strconv.ParseUint(n, 10, 64)
	if err1 != nil || err2 != nil || index >= parts {
		return 0, 0, usagef("--part %q: want I/N with I from 0 to N-1, such as 3/20", text)
	}
	return index, parts, nil
}

// steps are those from the first seed to the last one; all of 64 bits are one more than these.
func (s seeds) steps() uint64 { return (s.last - s.first) / s.step }

// count tells how many there are.
func (s seeds) count() int { return int(s.steps()) + 1 }

// draw draws the scenario of each when it is asked for.
func (s seeds) draw(o scenario.Options) iter.Seq[scenario.Scenario] {
	return func(yield func(scenario.Scenario) bool) {
		for i := range s.steps() + 1 {
			if !yield(sim.Draw(s.first+i*s.step, o)) {
				return
			}
		}
	}
}
