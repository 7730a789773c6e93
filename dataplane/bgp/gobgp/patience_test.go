// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/internal/testkit"
)

// lookedAt looks again and again for a time, and at its end, and tells whether what is looked at was so at any time.
func lookedAt(from time.Time, d time.Duration, look func(at time.Time) bool) (ever bool) {
	for passed := time.Duration(0); passed < d; passed += oneLook / 2 {
		ever = look(from.Add(passed)) || ever
	}
	return look(from.Add(d)) || ever
}

// However long this process gets no processor, and whenever, what waits gives up after so much time of its own at the earliest, as an
// independent sum of it has it, and in the time that was asked for where it got one all the time.
func TestPropertyTimeWithoutAProcessorIsNoneThatIsWaited(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		now := time.Now()
		p, own, looks := newPatience(now), time.Duration(0), 0
		for range rapid.IntRange(1, 50).Draw(rt, "looks") {
			ran := time.Duration(rapid.Int64Range(0, int64(oneLook)).Draw(rt, "ran"))
			stood := time.Duration(rapid.SampledFrom([]int64{0, 0, int64(oneLook), int64(time.Hour)}).Draw(rt, "stood"))
			now, own, looks = now.Add(ran+stood), own+min(ran+stood, oneLook), looks+1
			if got := p.look(now); got != own || got > time.Duration(looks)*oneLook || p.look(now) != got || p.look(now.Add(-time.Hour)) != got {
				rt.Fatalf("after %d looks it has waited %s, want %s", looks, got, own)
			}
		}
	})
}

// A queue whose content is not certain is not taken for empty, nor a round put beside what it must not meet, because this process stood still for long.
func TestQueueOfAProcessThatStoodStillIsLookedAtAnew(t *testing.T) {
	with := capabilities{Families: []bgp.Family{bgp.IPv4}}
	now := time.Now()
	q := newQueue(now)
	q.table.sent = 0
	q.put(prefix(vip), false, now)
	now = now.Add(time.Minute)
	if q.empty(now, with, time.Hour) || !(&session{queue: q}).holdsUp(now) {
		t.Error("a minute without a processor counts as one in which nothing was written")
	}
	if !lookedAt(now, still, func(at time.Time) bool { return q.empty(at, with, time.Hour) }) {
		t.Errorf("it is not empty after %s of looks", still)
	}
}
