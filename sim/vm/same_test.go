// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"fairlead.io/fairlead/sim/disk"
	"fairlead.io/fairlead/sim/engine"
)

// world runs talkers and journals which are killed, paused and crashed, and digests everything they let be seen.
func world(t testing.TB, seed uint64) string {
	w := engine.New(seed)
	s, r, sum := newSwitchboard(w), w.Random("faults"), sha256.New()
	var all []*seen
	note := func(format string, args ...any) {
		fmt.Fprintf(sum, "%d "+format+"\n", append([]any{w.Now()}, args...)...)
	}
	start := func(spec Spec, args ...string) *seen {
		o := s.start(spec, args...)
		o.process.spec.Line = func(stream int, line string) {
			o.lines = append(o.lines, line)
			note("%s %d %s", spec.Name, stream, line)
		}
		o.process.spec.Ended = func(err error) { note("%s ended %v", spec.Name, err) }
		all = append(all, o)
		return o
	}
	start(Spec{Name: "s"}, "echo")
	d := disk.New()
	for k := range 3 {
		c := start(Spec{Name: fmt.Sprint("c", k), Clock: NewClock(w, 0, r.IntN(1000))}, "chat", "s", "1000000")
		w.After(time.Duration(r.IntN(1000))*time.Millisecond, func() { c.process.Pause(w.Now() + 100*time.Millisecond) })
		w.After(time.Duration(r.IntN(1000))*time.Millisecond, func() { c.process.Fuse(r.IntN(1000)) })
	}
	for life := range 5 {
		o := start(Spec{Name: "j", Life: life, Disk: d}, "journal")
		if err := w.Run(w.Now() + time.Duration(r.IntN(300))*time.Millisecond); err != nil {
			t.Error(err)
		}
		o.process.Kill()
		d.Crash(r)
	}
	for _, path := range d.Files() {
		raw, _ := d.Get(path)
		note("%s %x", path, raw)
	}
	for _, o := range all {
		note("resumed %d times", o.process.Resumes())
		if text := strings.Join(o.lines, "\n"); strings.Contains(text, "panic") {
			t.Errorf("seed %d: %s", seed, text)
		}
		o.process.Kill()
	}
	note("sent %d", s.sent)
	return fmt.Sprintf("%x", sum.Sum(nil))
}

func TestEqualSeedsGiveEqualRunsOnAnyNumberOfThreads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	alone := map[uint64]string{}
	for seed := range uint64(3) {
		alone[seed] = world(t, seed)
	}
	if alone[0] == alone[1] {
		t.Error("different seeds give equal runs: the digest sees nothing")
	}
	runtime.GOMAXPROCS(2)
	var group sync.WaitGroup
	for seed := range uint64(3) { // in parallel over one module
		group.Go(func() {
			if got := world(t, seed); got != alone[seed] {
				t.Errorf("seed %d: digest %s, was %s", seed, got, alone[seed])
			}
		})
	}
	group.Wait()
}

func BenchmarkResume(b *testing.B) {
	w := engine.New(1)
	s := newSwitchboard(w)
	server := s.start(Spec{Name: "s"}, "echo")
	client := s.start(Spec{Name: "c"}, "chat", "s", "1000000000")
	b.ReportAllocs()
	for server.process.Resumes()+client.process.Resumes() < uint64(b.N) {
		if err := w.Run(w.Now() + time.Millisecond); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(w.Now())/float64(b.Elapsed()), "x-real-time")
	server.process.Kill()
	client.process.Kill()
}

func BenchmarkClockRead(b *testing.B) {
	w := engine.New(1)
	start(w, Spec{Limits: Limits{Calls: 1 << 60, Real: time.Hour}}, "reads", fmt.Sprint(b.N))
	b.ReportAllocs()
	if err := w.Run(1 << 60); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkStart(b *testing.B) {
	b.ReportAllocs()
	for range b.N {
		w := engine.New(1)
		o := start(w, Spec{}, "sleep", "1000000", "1")
		if err := w.Run(time.Millisecond); err != nil {
			b.Fatal(err)
		}
		o.process.Kill()
	}
}
