// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

func drawSeconds(t *rapid.T, name string, from ...int) time.Duration {
	return time.Duration(rapid.SampledFrom(from).Draw(t, name)) * time.Second
}

// retrying is an operator that retries, with its clock at zero.
func retrying(t Timing) *operator {
	now := time.Duration(0)
	return &operator{c: Config{Clock: handClock{&now}, Random: rand.New(rand.NewPCG(1, 2)), Timing: t.withDefaults()}}
}

// lbcf §4.1 and §4.2: delay = max(min(step * 2^n, most), least, hint), where n counts failures since the last success;
// Running begins it anew and counts once. An unknown outcome is a failure.
func TestPropertyRetriesFollowLBCFsFormula(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		step := drawSeconds(t, "step", 1, 5, 10)
		least := drawSeconds(t, "least", 0, 5, 15, 300)
		most := drawSeconds(t, "most", 60, 120)
		o, l := retrying(Timing{RetryStep: step, RetryLeast: least, RetryCap: most}), &line{}
		n := 0
		for range rapid.IntRange(1, 40).Draw(t, "attempts") {
			r := result{job: &job{}, answer: Answer{
				Result:     rapid.SampledFrom([]fsm.Result{fsm.ResultFailed, fsm.ResultFailed, fsm.ResultFailed, fsm.ResultUnknown, fsm.ResultRunning, fsm.ResultSucceeded}).Draw(t, "result"),
				RetryAfter: drawSeconds(t, "hint", 0, 0, 7, 500),
			}}
			got := o.retryAfter(l, r)
			if r.answer.Result == fsm.ResultSucceeded {
				n = 0
				continue
			}
			if r.answer.Result == fsm.ResultRunning {
				n = 0
			}
			want := step
			for i := 0; i < n && want < most; i++ {
				want *= 2
			}
			want = max(min(want, most), least, r.answer.RetryAfter)
			if n++; got != want {
				t.Fatalf("after %v with %s hinted, %d in a row: %s, want %s", r.answer.Result, r.answer.RetryAfter, n, got, want)
			}
		}
	})
}

// Without LBCF's formula the first attempts come sooner, and yet never before what the driver or this member's
// configuration asks for (INV-16), nor later than the longer of those and the cap.
func TestPropertyRetriesKeepToTheLeastAndTheMost(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		least, most := drawSeconds(t, "least", 0, 5, 15, 300), drawSeconds(t, "most", 60, 120)
		o, l := retrying(Timing{RetryLeast: least, RetryCap: most}), &line{}
		for range rapid.IntRange(1, 60).Draw(t, "attempts") {
			hint := drawSeconds(t, "hint", 0, 0, 7, 500)
			r := rapid.SampledFrom([]fsm.Result{fsm.ResultFailed, fsm.ResultUnknown, fsm.ResultRunning}).Draw(t, "result")
			got := o.retryAfter(l, result{job: &job{}, answer: Answer{Result: r, RetryAfter: hint}})
			if floor := max(least, hint); got < floor || got > max(floor, most) {
				t.Fatalf("after %v: %s, want %s to %s", r, got, floor, max(floor, most))
			}
		}
	})
}

// lbcf §4.2: nothing is ensured again sooner than the least delay.
func TestPeriodsAreNotShorterThanTheLeastDelay(t *testing.T) {
	o := retrying(Timing{RetryLeast: 20 * time.Second})
	for policy, want := range map[fsm.EnsurePolicy]time.Duration{
		{}: 0,
		{Policy: "Always", Period: 10 * time.Second}: 20 * time.Second,
		{Policy: "Always"}:                           time.Minute,
	} {
		if got := o.every(policy); got != want {
			t.Errorf("%+v: every %s, want %s", policy, got, want)
		}
	}
}
