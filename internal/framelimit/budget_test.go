// SPDX-License-Identifier: Apache-2.0

package framelimit

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// Whoever waits until nothing is owed, each time before more is taken, never has more taken in a while than its Budget has for that while and one
// that it had not to wait for; and who spends less than that never waits.
func TestBudgetIsKept(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		b := Budget{Rate: rapid.IntRange(1, 1000).Draw(t, "rate"), AtOnce: rapid.IntRange(0, 5000).Draw(t, "at once")}
		begin := time.Unix(0, 0)
		now, a := begin, &account{budget: b, left: float64(b.AtOnce), at: begin}
		most, spent := 0, 0
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			owed := a.owes(now)
			if float64(spent) <= float64(b.AtOnce) && owed != 0 {
				t.Fatalf("waits for %v after %d", owed, spent)
			}
			now = now.Add(owed)
			cost := rapid.IntRange(1, 3000).Draw(t, "cost")
			if most = max(most, cost); owed > 0 && a.owes(now.Add(time.Microsecond)) > 0 {
				t.Fatal("owes after it waited")
			}
			a.spend(cost, now)
			spent += cost
			may := float64(b.AtOnce) + float64(b.Rate)*now.Sub(begin).Seconds() + float64(most) + 1
			if float64(spent) > may {
				t.Fatalf("spent %d in %v, may %v", spent, now.Sub(begin), may)
			}
		}
	})
}

// Connections under one name share what it has, also with those that come when others have gone; a name that is away is forgotten.
func TestConnectionsOfANameShareItsBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := accounts{named: map[string]*account{}}, Budget{Rate: 10, AtOnce: 100}
		one := s.enter("x", b)
		one.spend(110, time.Now())
		if s.enter("y", b).owes(time.Now()) != 0 {
			t.Error("another name pays")
		}
		s.leave(one)
		time.Sleep(500 * time.Millisecond)
		two := s.enter("x", b)
		if owed := two.owes(time.Now()); owed != 500*time.Millisecond {
			t.Errorf("it owes %v", owed)
		}
		s.leave(two)
		time.Sleep(2 * forgetAfter)
		s.enter("z", b)
		if _, known := s.named["x"]; known || len(s.named) != 2 {
			t.Errorf("remembered: %v", s.named)
		}
	})
}
