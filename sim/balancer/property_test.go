// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/balancer"
	"fairlead.io/fairlead/sim/balancer/message"
	"fairlead.io/fairlead/sim/event"
)

// asked is a call, and what was seen of it.
type asked struct {
	action  fsm.Action
	at      time.Duration
	address string
	effects []time.Duration
	result  string // as it was answered
	heard   string // by who asked
}

// whatever is wrong with the driver: an answer is true, nothing is done later than callers believe, somebody else's
// backend stays as it is, and Entries is what events said.
func TestPropertyAnswersAreTrueAndNothingIsTooLate(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		b := newBench(rapid.Uint64().Draw(t, "seed"))
		calls := map[fsm.Revision]*asked{}
		owners := map[string]string{}
		b.w.Hear(func(e event.Stamped) { hear(t, calls, owners, e) })
		b.ask(fsm.ActionEnsureBalancer, message.Request{Balancer: "lb1", Info: balancer.Info("lb1")}, func(int, message.Answer, error) {})
		b.wait(time.Second)
		var ends []func()
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"call", "call", "call", "begin", "end", "hand"}).Draw(t, "step") {
			case "call":
				b.draw(t, calls)
			case "begin":
				ends = append(ends, b.Begin(rapid.SampledFrom(balancer.Faults()).Draw(t, "fault"), balancer.Scope{
					Share: rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "share"),
					Delay: rapid.SampledFrom([]time.Duration{0, 6 * time.Second}).Draw(t, "delay"),
					How:   rapid.SampledFrom([]string{"", "refused", "unavailable", "status"}).Draw(t, "how"),
				}))
			case "end":
				if len(ends) > 0 {
					ends[0]()
					ends = ends[1:]
				}
			case "hand":
				if address := drawAddress(t); rapid.Bool().Draw(t, "add") {
					b.AddByHand("lb1", address)
				} else {
					b.RemoveByHand("lb1", address)
				}
			}
			b.wait(time.Duration(rapid.IntRange(0, 4000).Draw(t, "wait")) * time.Millisecond)
		}
		for _, end := range ends {
			end()
		}
		b.wait(within + settle + 10*time.Second)
		for attempt, c := range calls {
			c.judge(t, attempt)
		}
		have := map[string]string{}
		for _, e := range b.Entries("lb1") {
			have[e.Address] = map[bool]string{true: "fairlead", false: "foreign"}[e.Ours]
		}
		if !maps.Equal(have, owners) {
			t.Fatalf("it holds %v, and events said %v", have, owners)
		}
	})
}

func drawAddress(t *rapid.T) string {
	return fmt.Sprintf("10.0.0.%d", rapid.IntRange(1, 3).Draw(t, "address"))
}

// draw makes a call. What is heard of it comes later.
func (b *bench) draw(t *rapid.T, calls map[fsm.Revision]*asked) {
	c := &asked{action: rapid.SampledFrom([]fsm.Action{fsm.ActionEnsure, fsm.ActionDeregister}).Draw(t, "action"), at: b.w.Now(), address: drawAddress(t)}
	m := about("lb1", rapid.SampledFrom([]string{"b1", "b2"}).Draw(t, "binding"), c.address)
	b.attempt++
	m.Attempt = fsm.Revision{Epoch: 1, Index: b.attempt}
	calls[m.Attempt] = c
	b.ask(c.action, m, func(_ int, answer message.Answer, _ error) { c.heard = answer.Result })
}

// hear keeps what events say.
func hear(t *rapid.T, calls map[fsm.Revision]*asked, owners map[string]string, e event.Stamped) {
	switch x := e.Event.(type) {
	case event.Refused:
		t.Fatalf("refused: %s", x.Why)
	case event.Drive:
		if c := calls[x.Attempt]; c != nil && x.Phase == "effect" {
			c.effects = append(c.effects, e.At)
		} else if c != nil {
			c.result = x.Result
		}
	case event.Entry:
		was := owners[x.Address]
		switch {
		case x.By == "driver" && (x.Owner != "fairlead" || was == "foreign"):
			t.Fatalf("the driver touched %s, which is %q", x.Address, was)
		case x.Present == (was != ""):
			t.Fatalf("%+v, and it was %q", x, was)
		case x.Present:
			owners[x.Address] = x.Owner
		default:
			delete(owners, x.Address)
		}
	}
}

// judge compares what a caller was told with what was done.
func (c *asked) judge(t *rapid.T, attempt fsm.Revision) {
	bad := func(why string) {
		t.Fatalf("%s of %s at %s, attempt %s: %s: %+v", c.action, c.address, c.at, attempt, why, c)
	}
	first := time.Duration(0)
	if len(c.effects) > 0 {
		first = slices.Min(c.effects)
	}
	switch {
	case c.heard != "" && c.heard != c.result:
		bad("it heard what was not answered")
	case c.result == message.Succeeded && first == 0:
		bad("it succeeded, and nothing was done")
	case c.result == message.Failed && first != 0:
		bad("it failed, and was done")
	case c.heard == "" && first > c.at+within+settle:
		bad("it was done later than callers believe")
	}
}

// With nothing wrong, a balancer holds what the calls say, one after the other, and each is answered.
func TestPropertyASoundDriverDoesWhatItIsAsked(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		b := newBench(rapid.Uint64().Draw(t, "seed"))
		b.ask(fsm.ActionEnsureBalancer, message.Request{Balancer: "lb1", Info: balancer.Info("lb1")}, func(int, message.Answer, error) {})
		b.wait(time.Second)
		want := map[string]string{}
		for range rapid.IntRange(1, 20).Draw(t, "calls") {
			calls := map[fsm.Revision]*asked{}
			b.draw(t, calls)
			b.wait(time.Second)
			for _, c := range calls {
				if c.heard != message.Succeeded {
					t.Fatalf("%s of %s: %q", c.action, c.address, c.heard)
				}
				if delete(want, c.address); c.action == fsm.ActionEnsure {
					want[c.address] = "there"
				}
			}
			have := map[string]string{}
			for _, e := range b.Entries("lb1") {
				have[e.Address] = "there"
			}
			if !maps.Equal(have, want) {
				t.Fatalf("it holds %v, wanted %v", have, want)
			}
		}
	})
}
