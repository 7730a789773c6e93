// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/sim/disk"
	"fairlead.io/fairlead/sim/engine"
)

// runFor lets a world go on.
func runFor(t testing.TB, w *engine.World, d time.Duration) {
	t.Helper()
	if err := w.Run(w.Now() + d); err != nil {
		t.Fatal(err)
	}
}

// frameOf is a frame of some bytes in all.
func frameOf(size int) []byte {
	frame := make([]byte, size)
	binary.LittleEndian.PutUint32(frame[5:], uint32(size-9))
	return frame
}

func TestKillEndsAProcessWhereverItIs(t *testing.T) {
	w := engine.New(1)
	unborn := start(w, Spec{}, "sleep", "10", "100")
	unborn.process.Kill()
	o := start(w, Spec{}, "sleep", "10", "100")
	runFor(t, w, 35*time.Millisecond)
	if o.process.MemoryBytes() == 0 || !o.process.Alive() {
		t.Fatal("does not live")
	}
	o.process.Kill()
	o.process.Kill()
	o.process.Deliver([]byte("late"))
	o.process.Pause(0)
	runFor(t, w, time.Second)
	if len(unborn.lines) != 0 || len(o.lines) != 3 {
		t.Errorf("said %q and %q, want nothing and three lines", unborn.lines, o.lines)
	}
	for _, o := range []*seen{unborn, o} {
		if o.ends != 1 || o.err != ErrKilled || o.process.Alive() || o.process.MemoryBytes() != 0 {
			t.Errorf("ended %d times with %v, alive %v, %d bytes", o.ends, o.err, o.process.Alive(), o.process.MemoryBytes())
		}
	}
}

// Some fuse ends the process after it printed and before it sleeps, and so on: the longer, the more it did.
func TestFuseKillsInTheMiddleOfWork(t *testing.T) {
	said := map[int]bool{}
	last := 0
	for n := 1; n < 240; n += 7 {
		w := engine.New(1)
		o := start(w, Spec{}, "sleep", "1", "10")
		o.process.Fuse(n)
		runFor(t, w, time.Second)
		if o.ends != 1 || o.err != ErrKilled && o.err != nil {
			t.Fatalf("fuse %d: ended %d times with %v", n, o.ends, o.err)
		}
		if len(o.lines) < last {
			t.Errorf("fuse %d: %d lines, fewer than with a shorter fuse", n, len(o.lines))
		}
		last = len(o.lines)
		said[last] = true
	}
	if len(said) < 6 {
		t.Errorf("fuses ended the process after %v lines: hardly in the middle", said)
	}
}

func TestPauseFreezesAndKeepsWhatArrives(t *testing.T) {
	w := engine.New(1)
	o := start(w, Spec{}, "flood", "100")
	runFor(t, w, 10*time.Millisecond)
	o.process.Pause(w.Now() + time.Second)
	for range 3 {
		o.process.Deliver(frameOf(40))
	}
	runFor(t, w, 990*time.Millisecond)
	if len(o.lines) != 0 {
		t.Fatalf("said %q while frozen", o.lines)
	}
	runFor(t, w, 30*time.Millisecond)
	if want := []string{"read 80", "read 40"}; !slices.Equal(o.lines, want) {
		t.Errorf("said %q, want %q", o.lines, want)
	}
	o.process.Pause(w.Now() + time.Hour)
	o.process.Deliver(frameOf(10))
	runFor(t, w, time.Second)
	o.process.Pause(0)
	runFor(t, w, time.Millisecond)
	if want := []string{"read 80", "read 40", "read 10"}; !slices.Equal(o.lines, want) {
		t.Errorf("after an early end of a pause it said %q, want %q", o.lines, want)
	}
}

func TestFramesAreReadWholeWhereTheyFit(t *testing.T) {
	w := engine.New(1)
	o := start(w, Spec{}, "flood", "100")
	for _, size := range []int{30, 70, 60, 60, 250, 20} {
		o.process.Deliver(frameOf(size))
	}
	runFor(t, w, time.Second)
	want := []string{"read 100", "read 60", "read 60", "read 100", "read 100", "read 70"}
	if !slices.Equal(o.lines, want) {
		t.Errorf("said %q, want %q", o.lines, want)
	}
}

func TestClocksDriftAndStep(t *testing.T) {
	w := engine.New(1)
	c := NewClock(w, time.Hour, 100_000) // a tenth too fast
	o := start(w, Spec{Clock: c}, "clocks")
	runFor(t, w, 1500*time.Millisecond)
	c.Step(-24 * time.Hour)
	runFor(t, w, 1200*time.Millisecond)
	c.Drift(-500_000)
	runFor(t, w, 4*time.Second)
	if len(o.lines) != 8 {
		t.Fatalf("said %q", o.lines)
	}
	for k, want := range []string{"2026-01-01T01:00:00", "2026-01-01T01:00:01", "2025-12-31T01:00:02", "2025-12-31T01:00:03"} {
		if !strings.HasPrefix(o.lines[2*k], want) {
			t.Errorf("time of day %s, want %s", o.lines[2*k], want)
		}
		if slept := o.lines[2*k+1]; slept != "1s" {
			t.Errorf("slept %s by its own clock", slept)
		}
	}
	if c.Monotonic() < time.Hour+4*time.Second || c.Monotonic() > time.Hour+6*time.Second {
		t.Errorf("monotonic clock at %v", c.Monotonic())
	}
}

func TestMonotonicClockNeverRunsBack(t *testing.T) {
	w := engine.New(1)
	c, r, last := NewClock(w, 0, 0), w.Random("test"), time.Duration(0)
	for range 10_000 {
		switch r.IntN(3) {
		case 0:
			c.Drift(r.IntN(1_000_000) - 500_000)
		case 1:
			c.Step(-time.Duration(r.IntN(1_000_000_000)))
		case 2:
			d := time.Duration(r.Int64N(int64(time.Hour)))
			at, due := c.when(d), c.Monotonic()+d
			w.Pass(at - w.Now())
			if now := c.Monotonic(); now < due || now > due+10 {
				t.Fatalf("woken at %v, wanted %v", now, due)
			}
		}
		if now := c.Monotonic(); now < last {
			t.Fatalf("from %v back to %v", last, now)
		}
		last = c.Monotonic()
	}
}

func TestSpinningProcessFailsTheRun(t *testing.T) {
	w := engine.New(1)
	o := start(w, Spec{Limits: Limits{Calls: 100_000}}, "spin")
	err := w.Run(time.Hour)
	if err == nil || !strings.Contains(err.Error(), "process p") || !strings.Contains(err.Error(), "spins") {
		t.Errorf("run ended with %v", err)
	}
	if o.process.Alive() {
		t.Error("still alive")
	}
}

// Code that computes without end can only be stopped together with the program, so the test runs itself.
func TestEndlessComputingCrashesLoudly(t *testing.T) {
	if os.Getenv("COMPUTE_ENDLESSLY") != "" {
		w := engine.New(7)
		start(w, Spec{Limits: Limits{Real: 100 * time.Millisecond}}, "loop")
		_ = w.Run(time.Second)
		return
	}
	test := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	test.Env = append(os.Environ(), "COMPUTE_ENDLESSLY=1")
	out, err := test.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "process p, seed 7") {
		t.Errorf("ended with %v and said:\n%s", err, out)
	}
}

func TestPanicOfAGuestEndsItWithItsWords(t *testing.T) {
	w := engine.New(1)
	o := start(w, Spec{}, "panic")
	runFor(t, w, time.Second)
	if want := (ExitError{2}); o.err != want || !strings.Contains(strings.Join(o.lines, "\n"), "panic: as told") {
		t.Errorf("ended with %v after %q", o.err, o.lines)
	}
}

func TestPanicOfAModelIsNotTakenForTheGuests(t *testing.T) {
	w := engine.New(1)
	o := start(w, Spec{}, "hello", "0")
	o.process.spec.Observe = func(uint32, []byte) { panic("bug in a model") }
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "bug in a model") {
			t.Errorf("recovered %v", r)
		}
	}()
	_ = w.Run(time.Second)
	t.Error("went on")
}

func TestFullDiskIsSeen(t *testing.T) {
	w := engine.New(1)
	d := disk.New()
	o := start(w, Spec{Disk: d}, "full")
	w.After(20*time.Millisecond, d.Fill)
	w.After(20*time.Millisecond, func() { d.Fail(disk.OpSync, 1) })
	runFor(t, w, time.Second)
	want := []string{"write /big: no space left on device", "sync /big: i/o error"}
	if guest.native != nil {
		want[1] = "sync /big: input/output error"
	}
	if !slices.EqualFunc(o.lines, want, strings.EqualFold) {
		t.Errorf("said %q, want %q", o.lines, want)
	}
}

func TestSlowSyncStallsTheProcess(t *testing.T) {
	w := engine.New(1)
	d := disk.New()
	d.SyncTime = func() time.Duration { return 100 * time.Millisecond }
	o := start(w, Spec{Disk: d}, "journal")
	runFor(t, w, 1020*time.Millisecond)
	if n := len(o.lines); n < 9 || n > 11 {
		t.Errorf("%d lines in a second of syncs of 100 ms", n)
	}
}

// A sync that hangs is told, so that all else of the process goes on; what it was to make durable is not.
func TestSyncThatHangsIsToBeAskedAgain(t *testing.T) {
	w := engine.New(1)
	d := disk.New()
	d.Hang("journal")
	o := start(w, Spec{Disk: d}, "journal")
	runFor(t, w, time.Second)
	want := "panic: sync /data/log/journal: Try again"
	if guest.native != nil {
		want = "panic: sync /data/log/journal: resource temporarily unavailable"
	}
	if len(o.lines) < 2 || o.lines[1] != want {
		t.Errorf("said %q, want %q after what it found", o.lines, want)
	}
}

func TestSyncThatPowerWasLostInPromisesNothing(t *testing.T) {
	lost := 0
	for seed := range uint64(20) {
		w := engine.New(seed)
		d := disk.New()
		d.SyncTime = func() time.Duration { return time.Second }
		o := start(w, Spec{Disk: d}, "journal")
		runFor(t, w, 999*time.Millisecond)
		o.process.Kill()
		if raw, _ := d.Get("/data/log/journal"); len(raw) != 8 {
			t.Fatalf("a kill alone left %d bytes", len(raw))
		}
		d.Crash(w.Random("crash"))
		if raw, _ := d.Get("/data/log/journal"); len(raw) != 8 {
			lost++
		}
	}
	if lost == 0 {
		t.Error("all survived")
	}
}

// Whatever a process was told to be safe is there after kills, by fuse in the middle of writing, and losses of power.
func TestJournalKeepsWhatItSyncedAcrossKillsAndCrashes(t *testing.T) {
	for seed := range uint64(8) {
		w := engine.New(seed)
		d, r := disk.New(), w.Random("faults")
		safe := 0
		for life := 1; life <= 20; life++ {
			o := start(w, Spec{Disk: d, Life: life}, "journal")
			o.process.Fuse(100 + r.IntN(400))
			runFor(t, w, time.Duration(r.IntN(30))*time.Millisecond)
			o.process.Kill()
			if r.IntN(2) == 0 {
				d.Crash(r)
			}
			for _, line := range o.lines {
				var n int
				switch what, _, _ := strings.Cut(line, " "); what {
				case "found":
					_, _ = fmt.Sscanf(line, "found %d", &n)
					if n < safe {
						t.Fatalf("seed %d, life %d: found %d records, %d were safe", seed, life, n, safe)
					}
				case "safe":
					_, _ = fmt.Sscanf(line, "safe %d", &n)
				default:
					t.Fatalf("seed %d, life %d: %q", seed, life, o.lines)
				}
				safe = max(safe, n)
			}
		}
		if safe < 20 {
			t.Errorf("seed %d: only %d records", seed, safe)
		}
	}
}

func TestKillWithinAProcessOwnCallTakesEffectAtItsEnd(t *testing.T) {
	w := engine.New(1)
	o := start(w, Spec{}, "hello", "0")
	o.process.spec.Observe = func(uint32, []byte) { o.process.Kill() }
	runFor(t, w, time.Second)
	if o.ends != 1 || !errors.Is(o.err, ErrKilled) || len(o.lines) != 0 {
		t.Errorf("ended %d times with %v, and said %q", o.ends, o.err, o.lines)
	}
}
