// SPDX-License-Identifier: Apache-2.0

package steer_test

import (
	"net/netip"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/internal/testkit"
)

// turnedAway reads the metric of packets that were turned away.
func turnedAway(t *testing.T, registry *prometheus.Registry) map[string]int {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "fairlead_steer_turned_away_total" {
				out[m.GetLabel()[0].GetValue()] = int(m.GetCounter().GetValue())
			}
		}
	}
	return out
}

// K52: what is refused because nobody translates it is counted by why, and what is served is not. A table that is made anew
// forgets nothing.
// Rule: K52.
func TestTurnedAwayPacketsAreCountedByReason(t *testing.T) {
	l := newLab(t)
	registry := prometheus.NewPedanticRegistry()
	o := l.options()
	o.Metrics = registry
	s := l.steerWith(o)
	w := wanted(vip4, vip6)
	l.apply(s, w)
	for _, a := range []netip.Addr{vip4, vip6} {
		for _, c := range []struct {
			reason string
			port   uint16
		}{{"unanswered", 81}, {"no-port", 4711}, {"", 80}} {
			if c.reason == "unanswered" && a.Is6() {
				continue // to the kernel the address is its own, by the rule that leads there: it refuses by itself
			}
			before := turnedAway(t, registry)
			if c.reason == "" {
				if got, err := dial(l.client, a, c.port, testkit.Patience); err != nil {
					t.Errorf("%s port %d: %q, %v", a, c.port, got, err)
				}
			} else {
				wantRefused(t, l.client, a, c.port)
			}
			after := turnedAway(t, registry)
			for _, reason := range []string{"unanswered", "no-port", "icmp"} {
				more := after[reason] - before[reason]
				if reason == c.reason && more < 1 || reason != c.reason && more != 0 {
					t.Errorf("%s port %d: %d more of %q, before %v, after %v", a, c.port, more, reason, before, after)
				}
			}
		}
	}
	was := turnedAway(t, registry)
	w.Config.FwMark = 0x4000 // other rules
	l.apply(s, w)
	if now := turnedAway(t, registry); now["unanswered"] < was["unanswered"] || now["no-port"] < was["no-port"] {
		t.Errorf("the table was made anew: counted %v, before %v", now, was)
	}
	wantRefused(t, l.client, vip4, 81)
	if now := turnedAway(t, registry); now["unanswered"] <= was["unanswered"] {
		t.Errorf("a table that was made anew counts on from %v: %v", was, now)
	}
}
