// SPDX-License-Identifier: Apache-2.0

package load

import (
	"time"
)

// Nowhere is the next hop of requests whose first packet was sent to none.
const Nowhere = "none"

// Figures count requests. The zero value is of none.
type Figures struct {
	Requests int
	Failed   int
	Unjudged int // answered, but nobody knows whether in time
	// Gap is the time from the start of the first to the start of the last failed request; 0 with fewer than two.
	Gap time.Duration

	first, last time.Time
}

func (f *Figures) add(r Request) {
	f.Requests++
	if r.Unjudged {
		f.Unjudged++
	}
	if !r.Failed() {
		return
	}
	if f.Failed++; f.Failed == 1 {
		f.first, f.last = r.Start, r.Start
	}
	if r.Start.Before(f.first) {
		f.first = r.Start
	}
	if r.Start.After(f.last) {
		f.last = r.Start
	}
	f.Gap = f.last.Sub(f.first)
}

// Tally is what became of the requests of a step.
type Tally struct {
	Figures
	Hops    map[string]Figures // by the next hop that the switch chose
	Targets map[string]Figures // by the service that was asked
	Causes  map[string]int     // why requests failed, and how many
}

// LongestGap is the longest of the gaps: overall and of every next hop.
func (t Tally) LongestGap() time.Duration {
	longest := t.Gap
	for _, h := range t.Hops {
		longest = max(longest, h.Gap)
	}
	return longest
}

// Count sums requests up, in any order. hop tells where the switch sent a request's first packet.
func Count(requests []Request, hop func(Request) string) Tally {
	t := Tally{Hops: map[string]Figures{}, Targets: map[string]Figures{}, Causes: map[string]int{}}
	for _, r := range requests {
		t.add(r)
		addTo(t.Hops, hop(r), r)
		addTo(t.Targets, r.Target, r)
		if r.Failed() {
			t.Causes[cause(r.Err)]++
		}
	}
	return t
}

func addTo(m map[string]Figures, key string, r Request) {
	f := m[key]
	f.add(r)
	m[key] = f
}
