// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/fsm"
)

// oneCore makes this process run Go code on one core at a time, garbage collection included, until the benchmark ends.
func oneCore(t *bench) {
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(before)
		debug.FreeOSMemory()
	})
}

// applyGroups is how many groups of bindings applyPerSecond changes: about a third of the record.
const applyGroups = largeRecord / perEntry / 3

// applyPerSecond applies changes of bound bindings to a large record on one core, three commands for each: put, begin
// the call, finish it. Decoding the entries, the digest, publishing what changed and collecting garbage are part of
// it. The calls by which those bindings became bound, two commands for each, are in detail.
func applyPerSecond(t *bench) figures {
	oneCore(t)
	s := filled(t, largeRecord)
	firstCalls := applyAll(t, s, batches(t, s, largeRecord, applyGroups, perEntry, begin))
	changes := applyAll(t, s, batches(t, s, largeRecord, applyGroups, perEntry, change))
	value := changes.commands / changes.wall.Seconds()
	return figures{samples: changes.windows, value: &value, detail: map[string]any{
		"bindings": largeRecord, "changes": changes.detail(), "first_calls": firstCalls.detail(),
	}}
}

// applied is what applying some commands took.
type applied struct {
	commands    float64
	wall, cpu   time.Duration
	windows     []float64 // commands a second, by the clock
	cpuWindows  []float64 // by this process's processor time
	before, now runtime.MemStats
}

// applyAll applies batches in ten windows.
func applyAll(t *bench, s *fsm.State, all [][]fsm.LogEntry) applied {
	runtime.GC()
	t.progressf("applying %d batches of entries", len(all))
	var a applied
	runtime.ReadMemStats(&a.before)
	for window := range slices.Chunk(all, (len(all)+9)/10) {
		n := 0.0
		start, used := time.Now(), processorTime()
		for _, batch := range window {
			mustApply(t, s, batch)
			n += float64(len(batch) * perEntry)
		}
		wall, cpu := time.Since(start), processorTime()-used
		a.commands, a.wall, a.cpu = a.commands+n, a.wall+wall, a.cpu+cpu
		a.windows = append(a.windows, n/wall.Seconds())
		a.cpuWindows = append(a.cpuWindows, n/cpu.Seconds())
	}
	runtime.ReadMemStats(&a.now)
	return a
}

// detail tells what a core to itself would give too: others may use this machine.
func (a applied) detail() map[string]any {
	return map[string]any{
		"commands": a.commands, "per_s": a.commands / a.wall.Seconds(),
		"per_processor_second": a.commands / a.cpu.Seconds(), "per_processor_second_of_tenths": a.cpuWindows,
		"allocated_bytes_each": float64(a.now.TotalAlloc-a.before.TotalAlloc) / a.commands,
		"allocations_each":     float64(a.now.Mallocs-a.before.Mallocs) / a.commands,
		"collections":          a.now.NumGC - a.before.NumGC, "heap_mb": a.now.HeapAlloc >> 20,
	}
}

// processorTime is what this process has used of any core.
func processorTime() time.Duration { return used(unix.RUSAGE_SELF) }

// used is the processor time of this process or of the children that have ended.
func used(by int) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(by, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
