// SPDX-License-Identifier: Apache-2.0

package load

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// The model asks of every millisecond whether the witness was overdue in it, in a pause that became longer than usual.
func TestPropertyPausedAgreesWithEveryMillisecond(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return begin0.Add(time.Duration(ms) * time.Millisecond) }
	testkit.Check(t, func(t *rapid.T) {
		w := newWitness(begin0)
		still := map[int]bool{}
		now := 0
		step := func() {
			due := now + 5
			now += rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 300)).Draw(t, "next look")
			for ms := due; ms < now && now-due >= 25; ms++ {
				still[ms] = true
			}
		}
		for range rapid.IntRange(0, 20).Draw(t, "looks") {
			step()
			w.look(at(now))
		}
		step() // whoever asks looks, too
		from := rapid.IntRange(0, now).Draw(t, "from")
		var want time.Duration
		for ms := from; ms < now; ms++ {
			if still[ms] {
				want += time.Millisecond
			}
		}
		if got := w.paused(at(from), at(now)); got != want {
			t.Fatalf("%s paused from %d to %d, want %s: %v", got, from, now, want, w.pauses)
		}
	})
}
