// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// seenCall is a call as a driver saw it.
type seenCall struct {
	action     fsm.Action
	address    string
	begun, end time.Duration
	result     fsm.Result
}

// busy is a driver that takes its time, has luck now and then, and notes what it sees.
type busy struct {
	terms Terms
	began time.Time
	takes time.Duration  // at most
	lucky int            // of ten calls that many are answered; it answers all of them before it is
	third map[string]int // where it is set, each third call about an address is answered, whatever luck says
	hangs bool           // what is not answered hangs until its time is over, and is refused at once otherwise

	mu     sync.Mutex
	easy   bool
	random *rand.Rand
	calls  []*seenCall
}

func (d *busy) Terms(fsm.Action) Terms { return d.terms }

func (d *busy) now() time.Duration { return time.Since(d.began) }

// Call implements Driver.
func (d *busy) Call(ctx context.Context, a fsm.Action, r Request) Answer {
	if r.Binding == nil {
		return Answer{Result: fsm.ResultSucceeded}
	}
	d.mu.Lock()
	c := &seenCall{action: a, address: cmp.Or(r.Binding.Address, string(r.Binding.ID)), begun: d.now(), end: -1}
	d.calls = append(d.calls, c)
	luck, takes := d.easy || d.random.IntN(10) < d.lucky, time.Duration(0)
	if d.third != nil && !d.easy {
		d.third[c.address]++
		luck = d.third[c.address]%3 == 0
	}
	if !d.easy {
		takes = time.Duration(d.random.Int64N(int64(d.takes)))
	}
	d.mu.Unlock()
	answer := Answer{Result: fsm.ResultSucceeded}
	if a == fsm.ActionAddress && luck {
		answer.Address = "10.0.2." + string(r.Binding.ID)
	}
	switch {
	case luck:
		time.Sleep(takes)
	case d.hangs:
		<-ctx.Done()
		answer.Result = fsm.ResultUnknown
	default:
		answer.Result = fsm.ResultFailed
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c.end, c.result = d.now(), answer.Result
	return answer
}

// Whatever a driver's luck, and however many backends wait to be registered: it has no more calls at a time than it takes; two
// calls about one address do not overlap, and after each failure the next one keeps the distance of that many failures in a row; and
// of the calls that begin while a deregistration waits for a place one in four at most is anything else.
func TestPropertyDeregistrationsHaveTheNextPlace(t *testing.T) {
	waited, failed := 0, 0
	testkit.CheckUntil(t, func() string {
		if waited == 0 || failed == 0 {
			return fmt.Sprintf("%d deregistrations waited for a place, %d calls failed: this test shows nothing", waited, failed)
		}
		return ""
	}, func(rt *rapid.T) {
		d := &busy{
			terms:  Terms{Timeout: 10 * time.Second, Concurrent: rapid.IntRange(1, 6).Draw(rt, "places")},
			takes:  time.Duration(rapid.IntRange(1, 5000).Draw(rt, "takes")) * time.Millisecond,
			lucky:  rapid.SampledFrom([]int{10, 7, 3}).Draw(rt, "lucky"),
			hangs:  rapid.Bool().Draw(rt, "hangs"),
			random: rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1)),
		}
		leaving, registering := rapid.IntRange(1, 6).Draw(rt, "leaving"), rapid.IntRange(0, 60).Draw(rt, "registering")
		asks := rapid.Bool().Draw(rt, "asks") // the driver for addresses
		pauses := rapid.SliceOfN(rapid.IntRange(0, 4000), leaving, leaving).Draw(rt, "pauses")
		removed := map[string]time.Duration{}
		if why := bubble(t, func(t failer) {
			g := newLiveGroup(t)
			d.began, d.easy = time.Now(), true
			g.commit(balancer("drv/a"))
			for i := range leaving {
				g.commit(bind(fmt.Sprint("old", i), fmt.Sprint("10.0.0.", i)))
			}
			led(leaderOf(t, g, g, func(string) (Driver, bool) { return d, true }), func() {
				time.Sleep(time.Second)
				d.mu.Lock()
				d.easy = false
				d.mu.Unlock()
				for i := range registering {
					address := fmt.Sprint("10.0.1.", i)
					if asks {
						address = ""
					}
					g.commit(bind(fmt.Sprint("new", i), address))
				}
				for i, p := range pauses {
					time.Sleep(time.Duration(p)*time.Millisecond + time.Microsecond)
					g.commit(&fsm.RemoveBinding{ID: fsm.BindingID(fmt.Sprint("old", i))})
					removed[fmt.Sprint("10.0.0.", i)] = d.now()
				}
				time.Sleep(5 * time.Minute)
			})
		}); why != "" {
			rt.Fatal(why)
		}
		for _, c := range d.calls {
			if c.result == fsm.ResultFailed {
				failed++
			}
		}
		if why := judgeCalls(d.calls, d.terms.Concurrent, removed, &waited); why != "" {
			rt.Fatalf("%s:\n%s", why, sightings(d.calls))
		}
	})
}

// judgeCalls holds what a driver saw against what was promised to it.
func judgeCalls(calls []*seenCall, places int, removed map[string]time.Duration, waited *int) string {
	lines := map[string][]*seenCall{}
	for _, c := range calls {
		open := 0
		for _, o := range calls {
			if o.begun <= c.begun && (o.end < 0 || o.end > c.begun) {
				open++
			}
		}
		if open > places {
			return fmt.Sprintf("%d calls at %s", open, c.begun)
		}
		lines[c.address] = append(lines[c.address], c)
	}
	for address, line := range lines {
		failures := 0
		for i, c := range line[1:] {
			before := line[i]
			if before.result == fsm.ResultSucceeded || before.action != c.action {
				failures = 0
			}
			if before.result == fsm.ResultFailed || before.result == fsm.ResultUnknown {
				failures++
			}
			least := time.Duration(0) // the first unknown outcome is looked into at once
			if failures > 1 || failures == 1 && before.result == fsm.ResultFailed {
				least = min(250*time.Millisecond<<((failures-1)/2), 2*time.Minute) / 2
			}
			if before.action == c.action && c.begun-before.end < least {
				return fmt.Sprintf("%s: the call at %s is %s after the end of the one before, the %d. failure in a row", address, c.begun, c.begun-before.end, failures)
			}
		}
		at, gone := removed[address]
		if !gone {
			continue
		}
		first := slices.IndexFunc(line, func(c *seenCall) bool { return c.action == fsm.ActionDeregister })
		if first < 0 {
			return address + " was never to be deregistered"
		}
		ahead, others := 0, 0
		for _, c := range calls {
			switch {
			case c.begun <= at || c.begun >= line[first].begun:
			case c.action == fsm.ActionDeregister:
				ahead++
			default:
				others++
			}
		}
		if line[first].begun > at {
			*waited++
		}
		if others > 1+ahead/3 {
			return fmt.Sprintf("%s went at %s, and was to be deregistered at %s: %d others began meanwhile, and %d deregistrations", address, at, line[first].begun, others, ahead)
		}
	}
	return ""
}

func sightings(calls []*seenCall) (out string) {
	for _, c := range calls {
		out += fmt.Sprintf("%s to %s: %s %s, %d\n", c.begun, c.end, c.action, c.address, c.result)
	}
	return out
}

// A driver that cannot deregister at all goes on registering: who comes waits for a few of the many that are to go, and not for
// the end of that.
func TestOperateRegistersWhileNothingCanBeDeregistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLiveGroup(t)
		g.commit(balancer("drv/a"))
		d := &told{terms: Terms{Concurrent: 2}, do: succeed}
		const leaving, registering = 400, 10
		for i := range leaving {
			g.commit(bind(fmt.Sprint("old", i), fmt.Sprint("10.0.0.", i)))
		}
		operated(t, g, g, d, func() {
			time.Sleep(time.Second)
			d.mu.Lock()
			d.do = func(_ context.Context, a fsm.Action, _ Request) Answer {
				time.Sleep(time.Second)
				return Answer{Result: map[bool]fsm.Result{true: fsm.ResultFailed, false: fsm.ResultSucceeded}[a == fsm.ActionDeregister]}
			}
			d.mu.Unlock()
			for i := range leaving {
				g.commit(&fsm.RemoveBinding{ID: fsm.BindingID(fmt.Sprint("old", i))})
			}
			for i := range registering {
				g.commit(bind(fmt.Sprint("new", i), fmt.Sprint("10.0.1.", i)))
			}
			time.Sleep((registering*4/2 + 2) * time.Second)
			for i := range registering {
				if s := stateOf(g, fmt.Sprint("new", i)); s != "bound" {
					t.Errorf("new%d is %s", i, s)
				}
			}
		})
	})
}

// Of each address every third call is answered, and a thousand backends are registered while three go: these are gone once three
// places came free for each of them and three calls took their time, with the waits between; the others take minutes.
func TestOperateDeregistersSoonThroughADriverThatAnswersOneCallInThree(t *testing.T) {
	if why := bubble(t, func(t failer) {
		g := newLiveGroup(t)
		d := &busy{terms: Terms{Timeout: 10 * time.Second, Concurrent: 16}, takes: 4 * time.Second, third: map[string]int{}, random: rand.New(rand.NewPCG(1, 2)), began: time.Now(), easy: true}
		g.commit(balancer("drv/a"))
		const leaving, registering = 3, 1000
		for i := range leaving {
			g.commit(bind(fmt.Sprint("old", i), fmt.Sprint("10.0.0.", i)))
		}
		late := ""
		led(leaderOf(t, g, g, func(string) (Driver, bool) { return d, true }), func() {
			time.Sleep(time.Second)
			d.mu.Lock()
			d.easy = false
			d.mu.Unlock()
			for i := range registering {
				g.commit(bind(fmt.Sprint("new", i), fmt.Sprint("10.0.1.", i)))
			}
			time.Sleep(2 * time.Second)
			for i := range leaving {
				g.commit(&fsm.RemoveBinding{ID: fsm.BindingID(fmt.Sprint("old", i))})
			}
			time.Sleep(3*(4+4)*time.Second + time.Second)
			for i := range leaving {
				if s := stateOf(g, fmt.Sprint("old", i)); s != "gone" {
					late = fmt.Sprintf("backend %d is still %s", i, s)
				}
			}
		})
		if late != "" {
			t.Fatalf("%s", late)
		}
	}); why != "" {
		t.Error(why)
	}
}
