// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

var begin0 = time.Unix(1_000_000, 0)

func request(at time.Duration, hop string, failed bool) Request {
	r := Request{Start: begin0.Add(at), Target: "web", Server: hop}
	if failed {
		r.Err = ErrTimeout
	}
	return r
}

// hopOf takes the next hop from where these tests put it.
func hopOf(r Request) string { return r.Server }

func TestGapRunsFromTheFirstToTheLastFailedStart(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	tally := Count([]Request{
		request(900*ms, "n2", true), // the last of n2 comes first here: order does not matter
		request(0, "n1", false),
		request(100*ms, "n1", true),
		request(250*ms, "n1", true),
		request(260*ms, "n1", false),
		request(400*ms, "n2", true),
		request(2000*ms, "n3", true), // one failure is no gap
		request(3000*ms, "n1", false),
	}, hopOf)
	if tally.Requests != 8 || tally.Failed != 5 || tally.Gap != 1900*ms {
		t.Errorf("overall %+v", tally.Figures)
	}
	for hop, want := range map[string]time.Duration{"n1": 150 * ms, "n2": 500 * ms, "n3": 0} {
		if got := tally.Hops[hop].Gap; got != want {
			t.Errorf("gap of %s is %s, want %s", hop, got, want)
		}
	}
	if tally.LongestGap() != 1900*ms {
		t.Errorf("longest gap %s", tally.LongestGap())
	}
}

func TestCausesCountEachKindOfFailureOnce(t *testing.T) {
	t.Parallel()
	odd := request(0, "n1", true)
	odd.Err = errors.New("odd")
	got := Count([]Request{odd, request(1, "n1", true), request(2, "n1", true), request(3, "n1", false)}, hopOf).Causes
	if want := map[string]int{"odd": 1, "no answer in time": 2}; !maps.Equal(got, want) {
		t.Errorf("causes %v, want %v", got, want)
	}
}

// The model sorts the failed ones of each next hop and takes the ends.
func TestPropertyTallyAgreesWithSortedFailures(t *testing.T) {
	t.Parallel()
	testkit.Check(t, func(t *rapid.T) {
		var requests []Request
		failures := map[string][]time.Duration{}
		counts := map[string]int{}
		for range rapid.IntRange(0, 40).Draw(t, "n") {
			at := time.Duration(rapid.IntRange(0, 20).Draw(t, "at")) * time.Millisecond
			hop := rapid.SampledFrom([]string{"n1", "n2", Nowhere}).Draw(t, "hop")
			failed := rapid.Bool().Draw(t, "failed")
			requests = append(requests, request(at, hop, failed))
			counts[hop]++
			if failed {
				failures[hop] = append(failures[hop], at)
				failures["all"] = append(failures["all"], at)
			}
		}
		span := func(of string) time.Duration {
			f := slices.Sorted(slices.Values(failures[of]))
			if len(f) == 0 {
				return 0
			}
			return f[len(f)-1] - f[0]
		}
		tally := Count(requests, hopOf)
		if tally.Requests != len(requests) || tally.Failed != len(failures["all"]) || tally.Gap != span("all") {
			t.Fatalf("overall %+v, failures %v", tally.Figures, failures)
		}
		for hop, n := range counts {
			if got := tally.Hops[hop]; got.Requests != n || got.Failed != len(failures[hop]) || got.Gap != span(hop) {
				t.Fatalf("%s: %+v, failures %v of %d", hop, got, failures[hop], n)
			}
		}
		if len(tally.Hops) != len(counts) {
			t.Fatalf("next hops %v, want %v", tally.Hops, counts)
		}
	})
}
