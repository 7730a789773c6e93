// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
)

// lookEvery is how often the switch's table is looked at.
const lookEvery = 50 * time.Millisecond

// Bounds of how long the switch may send packets where the record no longer wants them (docs/failures.md), each with the time in which a
// change gets from the log to the switch when nothing fails.
const (
	takesEffect = 2 * time.Second
	// afterDeath is how long a switch keeps a dead member's paths at full rank, for which that one asked.
	afterDeath = time.Second + takesEffect
	// afterCut is how long a member believes its record that hears nothing of the others.
	afterCut = 3*time.Second + takesEffect
	// afterStandstill is how long the speaker of a member that stands still goes on, with what comes after its end; and a member that stood still
	// is cut off from then on as far as it knows.
	afterStandstill = 15*time.Second + afterDeath + afterCut
)

// view is one look at the switch, from before it began until it ended.
type view struct {
	begin, end time.Duration
	ecmp       []birdtest.Entry
	lastResort map[netip.Prefix]bool // whose best path is one that ranks last: of who believes himself cut off, or of the dead
	bound      time.Duration         // within which the record has to have wanted what is there
	forgot     bool                  // it lost all paths, and nobody has said since that it has all again
}

// border watches the switch.
type border struct {
	pace  *pace
	bound func() time.Duration // that counts just now

	mu     sync.Mutex
	before time.Duration // the end of the last look
	forgot bool
	views  []view
	looks  int
}

// hear takes a look.
func (b *border) hear(l birdtest.Look) {
	now := b.pace.now() + beat
	v := view{begin: b.before, end: now, ecmp: l.ECMP(), lastResort: lastResorts(l.Routes), bound: b.bound()}
	b.mu.Lock()
	defer b.mu.Unlock()
	v.forgot = b.forgot
	b.before = now
	b.looks++
	b.views = append(b.views, v)
}

// forgets says that the switch has no paths but those that it is told from now on. Who is to tell it may be down, or stand still.
func (b *border) forgets() { b.set(true) }

// knows says that it has all of them again.
func (b *border) knows() { b.set(false) }

func (b *border) set(forgot bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forgot = forgot
}

// lastResorts are prefixes whose best path is demoted or kept of somebody who was lost for long.
func lastResorts(routes []birdtest.Route) map[netip.Prefix]bool {
	out := map[netip.Prefix]bool{}
	for _, r := range routes {
		if r.Best && (r.LongLived || r.MED > 0) {
			out[r.Prefix] = true
		}
	}
	return out
}

func (b *border) take() []view {
	b.mu.Lock()
	defer b.mu.Unlock()
	views := b.views
	b.views = nil
	return views
}

// judgeBorder tells what the switch had that the record had not, and which of the prefixes that are announced all along it lacked.
func judgeBorder(views []view, l *ledger, always []netip.Prefix) (wrong []string) {
	told := map[string]bool{}
	tell := func(of, text string) {
		if !told[of] {
			told[of] = true
			wrong = append(wrong, text)
		}
	}
	for _, v := range views {
		for _, p := range always {
			if !v.forgot && !slices.ContainsFunc(v.ecmp, func(e birdtest.Entry) bool { return e.Prefix == p }) {
				tell("none "+p.String(), fmt.Sprintf("at %v of the pace the switch had no way to %s", v.end, p))
			}
		}
		for _, e := range v.ecmp {
			for _, h := range e.NextHops {
				if !v.lastResort[e.Prefix] && !l.mayHave(e.Prefix, h, v.begin-v.bound, v.end) {
					tell(e.Prefix.String()+h.String(), fmt.Sprintf("from %v to %v of the pace the switch sent packets for %s to %s, which the record did not want then nor in %v before; %s",
						v.begin, v.end, e.Prefix, h, v.bound, l.around(e.Prefix)))
				}
			}
		}
	}
	return wrong
}

// around tells what was wanted of a prefix, as far as that is not forgotten.
func (l *ledger) around(p netip.Prefix) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var parts []string
	add := func(what string, of []reading) {
		last := ""
		for _, r := range of {
			if text := fmt.Sprint(r.hops[p]); text != last {
				last = text
				parts = append(parts, fmt.Sprintf("%s from %v: %s", what, r.begin, text))
			}
		}
	}
	add("manifests", l.asked)
	add("record", l.readings)
	return strings.Join(parts, "; ")
}
