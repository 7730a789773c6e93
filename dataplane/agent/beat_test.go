// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// However long ago an agent began, its next beat is within a period, and on the same grid as all others.
func TestBeatsFallTogether(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		period := time.Duration(rapid.Int64Range(int64(10*time.Millisecond), int64(time.Second)).Draw(t, "period"))
		age := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "age"))
		now := time.Now()
		a := &Agent{o: Options{Tuning: Tuning{Heartbeat: period}}, began: now.Add(-age)}
		left := a.untilBeat(now)
		if left <= 0 || left > period || (age+left)%period != 0 {
			t.Fatalf("the next beat is in %v, of a period of %v", left, period)
		}
	})
}
