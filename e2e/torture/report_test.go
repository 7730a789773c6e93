// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// report is what a run came to.
type report struct {
	began      time.Time
	rounds     int
	calls      int
	writes     int // acknowledged
	unknown    int
	checked    int
	looks      int
	recoveries []time.Duration
	memory     int // of the member that had most
	disk       int
	said       float64 // bytes a second, of the member that logged most in a round
	load       float64
}

func newReport() *report { return &report{began: time.Now()} }

func (p *report) round() {
	p.rounds++
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		var now float64
		if _, err := fmt.Sscan(string(text), &now); err == nil {
			p.load = max(p.load, now)
		}
	}
}

// recovered notes how long it took from the end of the last of several faults until a write was acknowledged that began after it. Where the
// next fault came first nobody knows.
func (p *report) recovered(calls []call, times []calm) {
	for _, of := range times {
		best := time.Duration(-1)
		for _, c := range calls {
			if took := c.ended - of.from; c.put && c.told == done && c.began >= of.from && c.ended < of.until && (best < 0 || took < best) {
				best = took
			}
		}
		if best >= 0 {
			p.recoveries = append(p.recoveries, best)
		}
	}
}

func (p *report) judged(calls []call, checked, looks int) {
	p.calls += len(calls)
	p.checked += checked
	p.looks += looks
	for _, c := range calls {
		switch {
		case c.put && c.told == done:
			p.writes++
		case c.told == unknown:
			p.unknown++
		}
	}
}

func (p *report) took(memory, disk int, said float64) {
	p.memory, p.disk, p.said = max(p.memory, memory), max(p.disk, disk), max(p.said, said)
}

// line is the figures of a run so far.
func (p *report) line() string {
	return fmt.Sprintf("%d rounds in %v; %d calls, %d of them checked, %d writes acknowledged, %d calls without an answer; %d looks at the switch; %d recoveries, p50 %v, max %v",
		p.rounds, time.Since(p.began).Round(time.Second), p.calls, p.checked, p.writes, p.unknown, p.looks,
		len(p.recoveries), p.quantile(50).Round(time.Millisecond), p.quantile(100).Round(time.Millisecond))
}

func (p *report) quantile(percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(p.recoveries))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)-1)*percent/100]
}

// lines are all figures.
func (p *report) lines(r *run) []string {
	var acts []string
	total := 0
	for _, kind := range slices.Sorted(keysOf(r.trace.counts)) {
		acts = append(acts, fmt.Sprintf("%s %d", kind, r.trace.counts[kind]))
		total += r.trace.counts[kind]
	}
	return []string{
		p.line(),
		fmt.Sprintf("%d events: %s", total, strings.Join(acts, ", ")),
		fmt.Sprintf("most memory of a member %d MiB, most disk %d KiB, most log %.1f KiB/s in a round; load of the machine at most %.1f", p.memory>>20, p.disk>>10, p.said/1024, p.load),
	}
}
