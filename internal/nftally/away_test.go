// SPDX-License-Identifier: Apache-2.0

package nftally

import (
	"errors"
	"log/slog"
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// tally is a kernel.
type tally func() (map[string]uint64, error)

func (t tally) Tally() (map[string]uint64, error) { return t() }

// K52: whatever becomes of the kernel's counters, the metric only grows, and by no less than what was counted between two
// looks with nothing made anew between them.
// Rule: K52.
func TestPropertyTurnedAwayOnlyGrows(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		kernel, fails := map[string]uint64{}, false
		away := NewAway("away_total", "help", map[string]string{"refuse-port": "no-port", "drop-source": "source-range"}, tally(func() (map[string]uint64, error) {
			if fails {
				return nil, errors.New("busy")
			}
			return maps.Clone(kernel), nil
		}), slog.New(slog.DiscardHandler))
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(away)
		packets, shown := uint64(0), 0.0 // since the beginning; by the newest look
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"packets", "packets", "anew", "fails"}).Draw(t, "what") {
			case "packets":
				n := rapid.Uint64Range(0, 9).Draw(t, "packets")
				kernel["refuse-port"] += n
				packets += n
			case "anew": // whoever makes rules anew looks before
				fails = false
				away.Look()
				kernel = map[string]uint64{}
			case "fails":
				fails = !fails
			}
			now := shownFor(t, registry, "no-port")
			if now < shown || !fails && now != float64(packets) {
				t.Fatalf("shown %v, before %v, counted %d", now, shown, packets)
			}
			shown = now
			if other := shownFor(t, registry, "source-range"); other != 0 {
				t.Fatalf("%v packets of another reason", other)
			}
		}
	})
}

func shownFor(t *rapid.T, registry *prometheus.Registry, reason string) float64 {
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range families[0].GetMetric() {
		if m.GetLabel()[0].GetValue() == reason {
			return m.GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric of %q", reason)
	return 0
}
