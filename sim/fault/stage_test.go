// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/disk"
	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/network"
	"fairlead.io/fairlead/sim/network/head"
	"fairlead.io/fairlead/sim/network/httpd"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/stage"
	"fairlead.io/fairlead/sim/vm"
)

// sleeper is a program that does nothing but sleep: (loop (drop (call $poll_oneoff ...)) (br 0)) with one subscription, to
// the monotonic clock an hour on, written byte by byte.
var sleeper *vm.Module

func TestMain(m *testing.M) {
	code, err := os.ReadFile("testdata/sleeper.wasm")
	if err == nil {
		sleeper, err = vm.Load(context.Background(), code, "")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// theatre is a stage with processes that do nothing.
type theatre struct {
	*Backstage
	open map[int]bool // faults that were published to have begun
}

func newTheatre(seed uint64) *theatre {
	w := engine.New(seed)
	t := &theatre{open: map[int]bool{}}
	w.Hear(func(e event.Stamped) {
		switch x := e.Event.(type) {
		case event.FaultBegan:
			t.open[x.ID] = true
		case event.FaultEnded:
			delete(t.open, x.ID)
		}
	})
	t.Backstage = New(stage.New(w, stage.Options{Members: 3, Nodes: 2, Switches: 2, Balancers: 1, Segments: 2, Program: sleeper, DriftPPM: 100,
		Sockets: start.Sockets{Policies: true, Probes: true}}))
	t.Raise()
	for _, name := range slices.Concat(t.machines(), outsiders()) {
		t.Network.Listen(name, "probe", func(c *network.Conn) { c.Handle(nil, nil) })
	}
	return t
}

func (t *theatre) machines() (out []string) {
	for _, name := range t.Cast.All() {
		out = append(out, t.Cast.machine(name))
	}
	return out
}

// outsiders are at the addresses that policies list.
func outsiders() (out []string) {
	for _, a := range listed() {
		out = append(out, start.ListedPrefix+a)
	}
	return out
}

// state is all that faults may change, told by what can be done. Asking takes a second.
func (t *theatre) state() map[string]string {
	state := map[string]string{}
	w := t.World
	for _, name := range t.Cast.Machines() {
		d, clock := t.Disk(name), t.Clock(name)
		d.Put("/probe", []byte("x"))
		n, e := d.Find(d.Root(), "/probe")
		state["disk of "+name] = fmt.Sprint(e, n.Size(), write(n), n.Sync(), d.Delay(), d.Hangs(start.LogFile))
		made, opened := d.Open(d.Root(), "/made", disk.Flags{Create: true})
		read, failed := n.ReadAt(make([]byte, 1), 0)
		state["folder of "+name] = fmt.Sprint(made != nil, opened, read, failed, d.Rename(d.Root(), "/made", d.Root(), "/moved"), d.Remove(d.Root(), "/moved", false))
		state["wall clock of "+name] = fmt.Sprint(clock.Wall().Sub(vm.Epoch) - clock.Monotonic())
		begun, mono := w.Now(), clock.Monotonic()
		w.After(900*time.Millisecond, func() {
			state["clock of "+name] = fmt.Sprint((clock.Monotonic() - mono) - (w.Now() - begun))
			state["process of "+name] = fmt.Sprint(t.Running(name))
		})
	}
	for _, from := range t.machines() {
		for _, to := range t.machines() {
			if from != to {
				t.probe(state, from, to)
			}
		}
	}
	for _, from := range t.Cast.Nodes {
		for _, to := range outsiders() {
			t.probe(state, from, to)
		}
	}
	for _, s := range t.Switches() {
		least, most := s.Lag(0)
		state["switch "+s.Name()] = fmt.Sprint(s.On(), least, most, s.Hostility())
	}
	for _, name := range t.Cast.Nodes {
		state["kernel of "+name] = fmt.Sprint(t.Kernel(name).IsUp(), t.Kernel(name).Steered())
		for _, l := range t.Links(name) {
			state["link of "+name+" to "+l.Name()] = fmt.Sprint(l.Up(), l.Passes())
		}
	}
	for _, from := range t.Cast.Members {
		t.ask(state, from)
	}
	if err := w.Run(w.Now() + time.Second); err != nil {
		panic(err)
	}
	return state
}

func write(n *disk.Node) disk.Error { return n.WriteAt([]byte("y"), 1) }

// probe notes whether a dial arrives soon.
func (t *theatre) probe(state map[string]string, from, to string) {
	c := t.Network.Dial(from, to, "probe", nil)
	broken := false
	c.Handle(nil, func(bool) { broken = true })
	t.World.After(80*time.Millisecond, func() {
		state["link "+from+" "+to] = fmt.Sprint(t.Network.Passes(from, to), broken)
		c.End()
	})
}

// ask asks the API server for something.
func (t *theatre) ask(state map[string]string, from string) {
	key := "kubernetes for " + from
	state[key] = "late"
	httpd.Call(t.World, t.Network, from, start.Kubernetes, start.KubernetesPort,
		head.Request{Method: "GET", Target: "/api/v1/nodes?resourceVersion=0", Header: map[string][]string{"Accept": {"application/json"}}}, nil,
		80*time.Millisecond, func(r httpd.Response, err error) {
			state[key] = fmt.Sprint(err, r.Status, len(r.Body) > 0)
		})
}

// play plays faults, beginning a second from now, and goes on until all have ended and it is calm.
func (t *theatre) play(tb rapid.TB, faults ...Fault) {
	w := t.World
	last := w.Now()
	for _, f := range faults {
		f.At += w.Now() + time.Second
		last = max(last, f.End())
		w.At(f.At, func() {
			end, err := t.Begin(f)
			if err != nil {
				tb.Fatal(err)
			}
			w.At(f.End(), end)
		})
	}
	w.At(last+time.Millisecond, func() { w.Publish(event.Calm{}) })
	if err := w.Run(last + time.Second); err != nil {
		tb.Fatal(err)
	}
}

func (t *theatre) run(tb rapid.TB, d time.Duration) {
	if err := t.World.Run(t.World.Now() + d); err != nil {
		tb.Fatal(err)
	}
}

// settle lets restarts of what ended by itself, and what was held back, pass.
const settle = 30 * time.Second

// unheard is longer than an operator goes on whom nobody answers, as nobody does here: some of the asked may be silent.
const unheard = patience * 30 * time.Second

func (t *theatre) unchanged(tb rapid.TB, before map[string]string, why string) {
	t.run(tb, settle)
	for until := t.World.Now() + unheard; len(t.open) > 0 && t.World.Now() < until; {
		t.run(tb, time.Second)
	}
	after := t.state()
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if before[key] != after[key] {
			tb.Errorf("after %s: %s is %s, and was %s", why, key, after[key], before[key])
		}
	}
	if len(t.open) > 0 {
		tb.Errorf("after %s: faults have not ended: %v", why, t.open)
	}
}

// one draws a fault of a kind.
func one(t *rapid.T, k Kind, c Cast) Fault {
	d := dice.Of(t)
	f := Fault{Kind: k.Name, For: d.Time("for", k.Least, k.Most)}
	k.Draw(d, c, &f)
	return f
}

func TestEachFaultLeavesTheStageAsItWas(t *testing.T) {
	for _, k := range All() {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			play := newTheatre(1)
			defer play.Strike()
			before := play.state()
			for i := range 4 {
				f := rapid.Custom(func(t *rapid.T) Fault { return one(t, k, play.Cast) }).Example(i)
				if err := play.Cast.Check(f); err != nil {
					t.Fatalf("%s: %v", f, err)
				}
				play.play(t, f)
				play.unchanged(t, before, f.String())
			}
		})
	}
}

func TestFaultsOfOneTargetDoNotFight(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		play := newTheatre(rapid.Uint64().Draw(t, "seed"))
		defer play.Strike()
		before := play.state()
		var faults []Fault
		text := ""
		for range rapid.IntRange(2, 6).Draw(t, "faults") {
			f := one(t, rapid.SampledFrom(All()).Draw(t, "kind"), play.Cast)
			f.At = dice.Of(t).Time("at", 0, 10*time.Second)
			faults = append(faults, f)
			text += fmt.Sprintf("%s from %s for %s; ", f, f.At, f.For)
		}
		play.play(t, faults...)
		play.unchanged(t, before, text)
	})
}

// A fault that nobody would notice tests nothing.
func TestEachFaultIsNoticed(t *testing.T) {
	unseen := []string{ // by a stage whose processes sleep
		"transfer", "snapshot", "remove", "session-break", "break", "foreign-rule", "meddle", "kernel-error", "kernel-slow", "tables-full", "fuse", "freeze", "speaker-kill", "confusing-switch", "revoke", "revoke-removed", "flip", "old-disk",
		"kubernetes-error", "kubernetes-watch-delay", "kubernetes-watch-drop", "kubernetes-watch-break", "kubernetes-duplicate", "kubernetes-coalesce", "kubernetes-compact",
		"kubernetes-rewind", "kubernetes-stale-lists", "kubernetes-empty-lists", "kubernetes-partial-lists", "kubernetes-other-cluster", "kubernetes-slow",
		"rolling-restart", "rolling-upgrade", "rolling-downgrade", "downgrade", "restore", "delay", "loss", "swizzle", "disk-slow", "strangers", "stray-record",
	}
	for _, k := range All() {
		if slices.Contains(unseen, k.Name) || slices.Contains(k.On.Roles, Driver) && len(k.On.Roles) == 1 {
			continue
		}
		play := newTheatre(1)
		before := play.state()
		f := rapid.Custom(func(t *rapid.T) Fault { return one(t, k, play.Cast) }).Example(1)
		f.At, f.For = play.World.Now(), time.Minute
		if _, err := play.Begin(f); err != nil {
			t.Fatal(err)
		}
		if reflect.DeepEqual(play.state(), before) {
			t.Errorf("%s is not noticed", f)
		}
		play.Strike()
	}
}

func TestProcessRunsWhileNobodyHoldsIt(t *testing.T) {
	play := newTheatre(1)
	defer play.Strike()
	play.state()
	begin := play.World.Now()
	for _, f := range []Fault{
		{Kind: "kill", At: 1 * time.Second, For: 4 * time.Second, On: []string{"m1"}},
		{Kind: "kill", At: 3 * time.Second, For: 6 * time.Second, On: []string{"m1", "m2"}},
		{Kind: "power", At: 8 * time.Second, For: 4 * time.Second, On: []string{"m1"}},
		{Kind: "power", At: 10 * time.Second, For: 6 * time.Second, On: []string{"m1"}},
		{Kind: "kill", At: 15 * time.Second, For: 3 * time.Second, On: []string{"m1"}},
	} {
		f.At += begin
		play.World.At(f.At, func() {
			end, err := play.Begin(f)
			if err != nil {
				t.Error(err)
			}
			play.World.At(f.End(), end)
		})
	}
	for _, want := range []struct {
		at     time.Duration
		m1, m2 bool
	}{{500 * time.Millisecond, true, true}, {2 * time.Second, false, true}, {6 * time.Second, false, false}, {9500 * time.Millisecond, false, true},
		{13 * time.Second, false, true}, {17 * time.Second, false, true}, {19 * time.Second, true, true}} {
		if err := play.World.Run(begin + want.at); err != nil {
			t.Fatal(err)
		}
		if play.Running("m1") != want.m1 || play.Running("m2") != want.m2 {
			t.Errorf("at %s: m1 %v, m2 %v", want.at, play.Running("m1"), play.Running("m2"))
		}
	}
}

// An agent that begins with an empty disk is excused until a second after it carried out what it was told, however late that is.
func TestAgentThatLostItsDiskIsExcusedUntilItHasCaughtUp(t *testing.T) {
	play := newTheatre(1)
	over, err := play.Begin(Fault{Kind: "lost-disk", On: []string{"n1"}, For: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	over()
	excused := func() bool { return len(play.open) > 0 }
	wait := func(d time.Duration) {
		if err := play.World.Run(play.World.Now() + d); err != nil {
			t.Fatal(err)
		}
	}
	wait(20 * time.Second)
	if !excused() {
		t.Error("nobody has told it anything, and it is excused no more")
	}
	play.World.Publish(event.Acted{Process: "n1", Life: 2})
	wait(900 * time.Millisecond)
	if !excused() {
		t.Error("it is at work on what it was told, and excused no more")
	}
	wait(200 * time.Millisecond)
	if excused() {
		t.Error("it has caught up, and is excused still")
	}
}
