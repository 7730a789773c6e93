// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"testing"
	"time"

	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// Who leads when an act comes to the point that is named is hit then, not before, and once, for as long as it is to last and no longer than the act.
func TestActsHaveSomebodyHitAtTheirPoints(t *testing.T) {
	for _, c := range []struct {
		name  string
		f     Fault
		point event.Event
	}{
		{"transfer", Fault{Kind: "transfer", On: []string{"m3"}, With: parameter.Values{"inside": "taken"}}, event.Leading{Process: "m2", Life: 1, Term: 2, On: true}},
		{"restore", Fault{Kind: "restore", With: parameter.Values{"inside": "begun"}}, event.Log{Process: "m2", Text: "restoring a backup"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			play := newTheatre(1)
			defer play.Strike()
			play.state()
			play.World.Publish(event.Leading{Process: "m1", Life: 1, Term: 1, On: true})
			c.f.For = 10 * time.Second
			c.f.At = play.World.Now()
			end, err := play.Begin(c.f)
			if err != nil {
				t.Fatal(err)
			}
			runs := func(after time.Duration, m1, m2 bool) {
				t.Helper()
				if err := play.World.Run(c.f.At + after); err != nil {
					t.Fatal(err)
				}
				if play.Running("m1") != m1 || play.Running("m2") != m2 {
					t.Errorf("after %s: m1 runs %v, m2 %v; want %v, %v", after, play.Running("m1"), play.Running("m2"), m1, m2)
				}
			}
			runs(time.Second, true, true)
			play.World.Publish(event.Leading{Process: "m1", Life: 1, Term: 1})
			if c.name == "restore" {
				play.World.Publish(event.Leading{Process: "m2", Life: 1, Term: 2, On: true})
			}
			runs(2*time.Second, true, true)
			play.World.Publish(c.point)
			runs(2100*time.Millisecond, true, false)
			runs(4900*time.Millisecond, true, false)
			runs(5100*time.Millisecond, true, true)
			play.World.Publish(c.point) // once
			runs(6*time.Second, true, true)
			end()
		})
	}
}

// The last member is hit once it leads as a group of one, and not when it led before.
func TestWhoIsRecoveredIsHitWhenItLeads(t *testing.T) {
	play := newTheatre(1)
	defer play.Strike()
	play.state()
	leads := event.Leading{Process: "m2", Life: 1, Term: 1, On: true}
	play.World.Publish(leads)
	f := Fault{Kind: "recover", At: play.World.Now(), For: 10 * time.Second, On: []string{"m1", "m3"}, With: parameter.Values{"inside": "recovered", "lasts": "1s"}}
	end, err := play.Begin(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at   time.Duration
		runs bool
		say  event.Event
	}{{4 * time.Second, true, leads}, {4100 * time.Millisecond, true, nil}, {6 * time.Second, true, leads}, {6100 * time.Millisecond, false, nil}, {7100 * time.Millisecond, true, leads}, {8 * time.Second, true, nil}} {
		if err := play.World.Run(f.At + c.at); err != nil {
			t.Fatal(err)
		}
		if play.Running("m2") != c.runs {
			t.Errorf("after %s it runs: %t", c.at, !c.runs)
		}
		if c.say != nil {
			play.World.Publish(c.say)
		}
	}
	end()
}

// Who leads is hit when an operator begins to raise the format, once everybody has had its turn and before the end.
func TestWhoLeadsIsHitWhenTheFormatIsRaised(t *testing.T) {
	play := newTheatre(1)
	defer play.Strike()
	play.state()
	play.World.Publish(event.Leading{Process: "m1", Life: 1, Term: 1, On: true})
	f := Fault{Kind: RollingUpgrade, At: play.World.Now(), For: 10 * time.Second, On: []string{"m3", "m2"}, With: parameter.Values{"inside": "finalizing", "lasts": "1s"}}
	end, err := play.Begin(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at   time.Duration
		runs bool
	}{{4900 * time.Millisecond, true}, {5100 * time.Millisecond, false}, {6100 * time.Millisecond, true}} {
		if err := play.World.Run(f.At + c.at); err != nil {
			t.Fatal(err)
		}
		if play.Running("m1") != c.runs {
			t.Errorf("after %s it runs: %t", c.at, !c.runs)
		}
	}
	end()
}

// What an act has befall somebody is over with the act.
func TestWhoIsHitInsideAnActIsBackAtItsEnd(t *testing.T) {
	play := newTheatre(1)
	defer play.Strike()
	play.state()
	play.World.Publish(event.Leading{Process: "m1", Life: 1, Term: 1, On: true})
	end, err := play.Begin(Fault{Kind: "transfer", At: play.World.Now(), For: time.Minute, On: []string{"m3"}, With: parameter.Values{"inside": "asked", "lasts": "50s"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := play.World.Run(play.World.Now() + time.Second); err != nil {
		t.Fatal(err)
	}
	if play.Running("m1") {
		t.Error("nobody is hit")
	}
	end()
	if !play.Running("m1") {
		t.Error("it is not back")
	}
}
