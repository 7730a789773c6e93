// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/writes"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// The queue against a map that is searched.
func TestPropertyQueueGivesEachOnceInOrder(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		q, want := writes.NewQueue[string](), map[string]time.Time{}
		now := noon
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "add") {
				id := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "id")
				at := now.Add(time.Duration(rapid.IntRange(-2, 5).Draw(t, "at")) * time.Second)
				if have, ok := want[id]; !ok || at.Before(have) {
					want[id] = at
				}
				q.Add(id, at)
			} else {
				now = now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "pass")) * time.Second)
				id, due := q.Next(now)
				at, ok := want[id]
				switch {
				case due && !ok:
					t.Fatalf("%s was not asked for", id)
				case due:
					delete(want, id)
				}
				for other, t2 := range want {
					if due && t2.Before(at) {
						t.Fatalf("%s came before %s", id, other)
					}
					if !due && !t2.After(now) {
						t.Fatalf("%s is due and not given", other)
					}
				}
			}
			if q.Len() != len(want) {
				t.Fatalf("%d in the queue, want %d", q.Len(), len(want))
			}
		}
	})
}

func TestABucketLetsABurstThroughAndThenARate(t *testing.T) {
	b := writes.NewBucket(10, 5)
	taken := func(now time.Time, spare int) (n int) {
		for b.Take(now, spare) {
			n++
		}
		return n
	}
	for _, c := range []struct {
		after       time.Duration
		spare, want int
	}{
		{0, 2, 3}, {0, 0, 2}, {0, 0, 0}, {50 * time.Millisecond, 0, 0}, {100 * time.Millisecond, 0, 1}, {time.Second, 0, 5}, {time.Hour, 0, 5},
	} {
		if got := taken(noon.Add(c.after), c.spare); got != c.want {
			t.Errorf("%d after %s, want %d", got, c.after, c.want)
		}
	}
	later := noon.Add(time.Hour)
	if w := b.Wait(later); w <= 0 || !b.Take(later.Add(w), 0) {
		t.Errorf("nothing after %s", w)
	}
}

func TestOverwrittenStatusIsWrittenBackAtOnceButNotForEver(t *testing.T) {
	var p writes.Pace
	now := noon
	var waits []time.Duration
	slowed := 0
	for range 12 {
		d, _ := p.Wait(1, now)
		waits = append(waits, d)
		now = now.Add(d)
		if p.Wrote(1, now) {
			slowed++
		}
	}
	want := "[0s 0s 0s 0s 1m0s 2m0s 4m0s 8m0s 16m0s 32m0s 1h0m0s 1h0m0s]"
	if got := fmt.Sprint(waits); got != want || slowed != 1 {
		t.Errorf("waits %s, slowed down %d times, want %s", got, slowed, want)
	}
	if d, overwritten := p.Wait(2, now); d != 0 || overwritten {
		t.Error("what is new waits, too")
	}
	p = writes.Pace{}
	p.Wrote(1, noon)
	p.Wrote(1, noon)
	p.Wrote(1, noon)
	p.Wrote(1, noon)
	if d, _ := p.Wait(1, noon.Add(11*time.Minute)); d != 0 {
		t.Error("what was long ago is not forgotten")
	}
}
