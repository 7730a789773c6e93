// SPDX-License-Identifier: Apache-2.0

package network_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/network"
)

// Whatever happens to links, what arrives is a beginning of what was sent, and once everything has healed all of it
// arrives unless the connection broke, which then both ends know.
func TestConnectionsDeliverInOrderOrBreak(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		w := engine.New(rapid.Uint64().Draw(t, "seed"))
		n := network.New(w, network.Options{})
		var sent, got []byte
		var nearBroken, farBroken, ended bool
		var far *network.Conn
		n.Listen("b", "p", func(c *network.Conn) {
			far = c
			c.Handle(func(b []byte) { got = append(got, b...) }, func(broken bool) { farBroken = broken; ended = !broken })
		})
		near := n.Dial("a", "b", "p", nil)
		near.Handle(nil, func(broken bool) { nearBroken = nearBroken || broken })
		var heals []func()
		at := time.Duration(0)
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			at += time.Duration(rapid.IntRange(0, 400).Draw(t, "ms")) * time.Millisecond
			what := rapid.SampledFrom([]string{"send", "send", "send", "cut", "back", "slow", "lose", "break", "reset"}).Draw(t, "what")
			w.At(at, func() {
				switch what {
				case "send":
					if !nearBroken {
						sent = append(sent, byte(i))
						near.Send([]byte{byte(i)})
					}
				case "cut":
					heals = append(heals, n.Cut("a", "b"))
				case "back":
					heals = append(heals, n.Cut("b", "a"))
				case "slow":
					heals = append(heals, n.Slow("a", "b", 50*time.Millisecond, 20*time.Millisecond))
				case "lose":
					heals = append(heals, n.Lose("a", "b", 0.3))
				case "break":
					n.Break("a", "b")
				case "reset":
					near.Reset()
					nearBroken = true
				}
			})
		}
		w.At(at+time.Second, func() {
			for _, heal := range heals {
				heal()
			}
			near.End()
		})
		if err := w.Run(at + 5*time.Minute); err != nil {
			t.Fatal(err)
		}
		if len(got) > len(sent) || !slices.Equal(got, sent[:len(got)]) {
			t.Fatalf("sent %v, got %v", sent, got)
		}
		if !nearBroken && (!ended || len(got) != len(sent)) {
			t.Fatalf("whole connection: ended %v, sent %v, got %v", ended, sent, got)
		}
		if nearBroken && far != nil && !farBroken {
			t.Fatal("one end is broken, the other does not know")
		}
	})
}

func TestNothingPassesACutAndItComesAfterwards(t *testing.T) {
	w := engine.New(1)
	n := network.New(w, network.Options{})
	var arrived time.Duration
	n.Listen("b", "p", func(c *network.Conn) { c.Handle(func([]byte) { arrived = w.Now() }, nil) })
	heal := n.Cut("a", "b")
	n.Dial("a", "b", "p", nil).Send([]byte("x"))
	w.At(10*time.Second, heal)
	if err := w.Run(time.Minute); err != nil {
		t.Fatal(err)
	}
	if arrived < 10*time.Second || arrived > 12*time.Second {
		t.Fatalf("arrived at %v", arrived)
	}
}

func TestCutForTooLongBreaksTheConnection(t *testing.T) {
	w := engine.New(1)
	n := network.New(w, network.Options{})
	n.Listen("b", "p", func(c *network.Conn) { c.Handle(nil, nil) })
	c := n.Dial("a", "b", "p", nil)
	broken := false
	c.Handle(nil, func(reset bool) { broken = reset })
	w.At(time.Second, func() { n.Cut("a", "b"); c.Send([]byte("x")) })
	if err := w.Run(2 * network.GiveUp); err != nil {
		t.Fatal(err)
	}
	if !broken {
		t.Fatal("still waiting")
	}
}

func TestDialToNobodyIsRefusedAndToADarkMachineUnanswered(t *testing.T) {
	w := engine.New(1)
	n := network.New(w, network.Options{})
	ends := map[string]string{}
	for _, to := range []string{"nobody", "dark"} {
		if to == "dark" {
			n.Listen(to, "p", func(*network.Conn) { t.Error("a machine without power accepted") })
			n.Power(to, false)
		}
		c := n.Dial("a", to, "p", nil)
		c.Handle(nil, func(reset bool) { ends[to] = fmt.Sprint(reset, " ", c.Why()) })
	}
	if err := w.Run(time.Minute); err != nil {
		t.Fatal(err)
	}
	if ends["nobody"] != "true "+network.Refused || ends["dark"] != "" {
		t.Fatalf("%v", ends)
	}
}

// A process that ends leaves no connection behind: who talked to it hears so, unless the machine is gone as well.
func TestEndedProcessResetsItsConnections(t *testing.T) {
	w := engine.New(1)
	n := network.New(w, network.Options{})
	var frames [][]byte
	s := n.Attach("m1", func(f []byte) { frames = append(frames, f) })
	s.Listen("api")
	broken := false
	w.At(time.Second, func() {
		c := n.Dial("x", "m1", "api", []byte("hi"))
		c.Handle(nil, func(reset bool) { broken = reset })
	})
	w.At(2*time.Second, s.Detach)
	if err := w.Run(time.Minute); err != nil {
		t.Fatal(err)
	}
	if len(frames) != 1 || frames[0][4] != network.FrameInbound || string(frames[0][9:]) != "x\x00api\x00hi" {
		t.Fatalf("%q", frames)
	}
	if !broken {
		t.Fatal("the peer was not told")
	}
	s2 := n.Attach("m1", func([]byte) {})
	s2.Listen("api") // the port is free again
}

// What a process says in one go is found together; what it says later has a latency of its own.
func TestBurstArrivesTogether(t *testing.T) {
	w := engine.New(1)
	n := network.New(w, network.Options{})
	var at []time.Duration
	n.Listen("b", "p", func(c *network.Conn) {
		at = append(at, w.Now())
		c.Handle(func([]byte) { at = append(at, w.Now()) }, func(bool) { at = append(at, w.Now()) })
	})
	c := n.Dial("a", "b", "p", nil)
	w.Pass(time.Microsecond)
	c.Send([]byte("with the dial"))
	w.At(100*time.Microsecond, func() {
		c.Send([]byte("later"))
		c.End()
	})
	if err := w.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	if len(at) != 4 || at[0] != at[1] || at[1] == at[2] || at[2] != at[3] {
		t.Errorf("arrived at %v, want the first two together, and the others later together", at)
	}
}

// Who waits for an answer of a machine that lost power learns of it: soon after the machine is back, from whatever else
// is asked there, since that goes over the same connection, or else by pings.
func TestWaitingForAMachineThatLostPowerEnds(t *testing.T) {
	for _, c := range []struct {
		name              string
		again             bool
		least, most, lost time.Duration
	}{
		{"asked again", true, 3 * time.Second, 3100 * time.Millisecond, time.Second},
		{"asked while it was dark, and again", true, 3 * time.Second, 3100 * time.Millisecond, 0},
		{"not asked again", false, network.GiveUp, network.GiveUp + 2*time.Second, time.Second},
		{"asked while it was dark", false, network.GiveUp, network.GiveUp + 2*time.Second, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := engine.New(1)
			n := network.New(w, network.Options{})
			n.Listen("b", "p", func(c *network.Conn) { c.Handle(nil, nil) })
			n.Listen("b", "q", func(c *network.Conn) { c.Handle(nil, nil) })
			var broke time.Duration
			ask := func(port string) {
				conn := n.Dial("a", "b", port, nil)
				conn.Handle(nil, func(reset bool) {
					if reset && broke == 0 {
						broke = w.Now()
					}
				})
				conn.End()
			}
			if c.lost == 0 {
				n.Power("b", false)
			}
			ask("p")
			if c.lost > 0 {
				w.At(c.lost, func() { n.Power("b", false) })
			}
			w.At(2*time.Second, func() {
				n.Power("b", true)
				n.Dial("a", "b", "q", nil) // another one
			})
			if c.again {
				w.At(3*time.Second, func() { n.Dial("a", "b", "p", nil) })
			}
			if err := w.Run(time.Minute); err != nil {
				t.Fatal(err)
			}
			if broke < c.least || broke > c.most {
				t.Errorf("it ended at %v, want from %v to %v", broke, c.least, c.most)
			}
		})
	}
}

// Who talks on to a machine that lost power, before and after it is back, is told that nobody knows of the connection.
func TestWhoTalksOnToAMachineThatLostPowerIsTold(t *testing.T) {
	w := engine.New(1)
	n := network.New(w, network.Options{})
	n.Listen("b", "p", func(c *network.Conn) { c.Handle(nil, nil) })
	c := n.Dial("a", "b", "p", nil)
	var broke time.Duration
	c.Handle(nil, func(bool) { broke = w.Now() })
	w.At(time.Second, func() { n.Power("b", false) })
	w.At(2*time.Second, func() { c.Send([]byte("x")) })
	w.At(3*time.Second, func() { n.Power("b", true) })
	w.At(4*time.Second, func() { c.Send([]byte("y")) })
	if err := w.Run(time.Minute); err != nil {
		t.Fatal(err)
	}
	if broke < 4*time.Second || broke > 4100*time.Millisecond {
		t.Errorf("told at %v", broke)
	}
}
