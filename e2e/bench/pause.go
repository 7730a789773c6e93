// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/fsm"
)

// applyPause takes the longest time that Apply needed for an entry of one command while snapshots of a large record
// were taken and written. In detail, the longest without snapshots, which is what else goes on in this process and on
// this machine, and the longest in processor time.
func applyPause(t *bench) figures {
	s := filled(t, largeRecord)
	file := filepath.Join(t.TempDir(), "snapshot")
	var freezes []float64
	snapshots := func() {
		for range snapshotRuns {
			begin := time.Now()
			frozen := s.Freeze()
			freezes = append(freezes, milliseconds(time.Since(begin)))
			writeSnapshot(t, frozen, file)
		}
	}
	alone := timeApply(t, s, clock, func() { time.Sleep(10 * time.Second) })
	during := timeApply(t, s, clock, snapshots)
	runtime.LockOSThread()
	processor := timeApply(t, s, threadTime, snapshots)
	runtime.UnlockOSThread()
	longest := slices.Max(during)
	return figures{samples: during, value: &longest, detail: map[string]any{
		"bindings": largeRecord, "snapshots": snapshotRuns, "freeze_longest": slices.Max(freezes),
		"during": pauses(during), "alone": pauses(alone), "during_processor_time": pauses(processor),
	}}
}

// pauses sums up what entries took, in milliseconds.
func pauses(took []float64) map[string]any {
	sorted := slices.Sorted(slices.Values(took))
	over := 0
	for _, ms := range sorted {
		if ms >= 1 {
			over++
		}
	}
	return map[string]any{
		"entries": len(sorted), "p50": quantile(sorted, 0.5), "p99": quantile(sorted, 0.99),
		"p999": quantile(sorted, 0.999), "longest": quantile(sorted, 1), "over_1ms": over,
	}
}

// timeApply applies single commands while beside runs, and gives what each took by a clock, in milliseconds.
func timeApply(t *bench, s *fsm.State, now func() time.Duration, beside func()) (took []float64) {
	var done atomic.Bool
	go func() {
		defer done.Store(true)
		beside()
	}()
	for !done.Load() {
		for _, batch := range batches(t, s, largeRecord, 1024, 1, begin) {
			for _, e := range batch {
				start := now()
				mustApply(t, s, []fsm.LogEntry{e})
				took = append(took, milliseconds(now()-start))
			}
		}
	}
	return took
}

// clock is monotonic.
func clock() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// threadTime is what the calling thread has used of any core.
func threadTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
