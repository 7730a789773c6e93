// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// slowKernel is an Applier that takes its time, and fails at first: by turns altogether and for an address.
type slowKernel struct {
	takes   time.Duration
	failing int // how many times
	began   []time.Time
	newest  fsm.Revision
}

func (k *slowKernel) Apply(_ context.Context, want desired.State) ([]Failure, error) {
	k.began = append(k.began, time.Now())
	k.newest = want.Revision
	time.Sleep(k.takes)
	switch n := len(k.began); {
	case n > k.failing:
		return nil, nil
	case n%2 == 0:
		return nil, errors.New("no such device")
	}
	return []Failure{{Prefix: netip.MustParsePrefix("192.0.2.1/32"), Why: "no such device"}}, nil
}

// kept is a Store that takes everything.
type kept struct{}

func (kept) Load() ([]byte, error) { return nil, nil }
func (kept) Save([]byte) error     { return nil }

// K44: a burst of changes is carried out as few states, no two of them nearer to each other than asked for, and the last
// one is among them; also while an address fails, and while all do.
// Rule: K44.
func TestNoTwoStatesAreNearerThanAskedFor(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		between := time.Duration(rapid.IntRange(1, 200).Draw(rt, "between ms")) * time.Millisecond
		pauses := rapid.SliceOfN(rapid.IntRange(0, 50), 1, 40).Draw(rt, "pauses ms")
		slow := time.Duration(rapid.IntRange(0, 300).Draw(rt, "slow ms")) * time.Millisecond
		failing := rapid.IntRange(0, 3).Draw(rt, "failing")
		k := &slowKernel{takes: slow, failing: failing}
		var burst time.Duration
		synctest.Test(t, func(*testing.T) { burst = carryOutBurst(k, between, pauses) })
		for i := range k.began[1:] {
			if pause := k.began[i+1].Sub(k.began[i]); pause < between {
				rt.Errorf("state %d came %v after the one before, want %v", i+1, pause, between)
			}
		}
		if want := fsm.Index(len(pauses)); k.newest.Index != want {
			rt.Errorf("state %d is carried out, want the last, %d", k.newest.Index, want)
		}
		if most := min(len(pauses), int(burst/between)+2) + failing; len(k.began) > most {
			rt.Errorf("%d states within %v, want one every %v, and %d that failed", len(k.began), burst, between, failing)
		}
	})
}

// carryOutBurst tells an agent a state after each of the pauses, in milliseconds, and how long that took altogether.
func carryOutBurst(k *slowKernel, between time.Duration, pauses []int) time.Duration {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a := &Agent{
		o:    Options{Tuning: Tuning{Between: between}.withDefaults(), Store: kept{}, Applier: k},
		told: newMailbox[desired.State](), done: newMailbox[ack](), log: slog.New(slog.DiscardHandler),
	}
	a.metrics, _ = newMetrics(nil)
	go a.apply(ctx, desired.State{})
	began := time.Now()
	for i, pause := range pauses {
		a.told.put(desired.State{Revision: fsm.Revision{Epoch: 1, Index: fsm.Index(i + 1)}})
		time.Sleep(time.Duration(pause) * time.Millisecond)
	}
	burst := time.Since(began)
	time.Sleep(time.Minute)
	return burst
}
