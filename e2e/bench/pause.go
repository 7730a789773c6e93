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
// were taken and written; in detail, the longest without snapshots, and the longest by processor time, which is what
// it costs where nobody else uses the machine.
func applyPause(t *bench) figures {
	s := filled(t, largeRecord)
	file := filepath.Join(t.TempDir(), "snapshot")
	alone := pausesBeside(t, s, func() { time.Sleep(10 * time.Second) })
	var freezes []float64
	during := pausesBeside(t, s, func() {
		for range snapshotRuns {
			begin := time.Now()
			frozen := s.Freeze()
			freezes = append(freezes, milliseconds(time.Since(begin)))
			writeSnapshot(t, frozen, file)
		}
	})
	longest := slices.Max(during.wall)
	return figures{samples: during.wall, value: &longest, detail: map[string]any{
		"bindings": largeRecord, "snapshots": snapshotRuns, "freeze_longest": slices.Max(freezes),
		"during": during.detail(), "alone": alone.detail(),
	}}
}

// pauses is what entries of one command took, in milliseconds.
type pauses struct {
	wall []float64
	cpu  []float64 // of the applying thread
}

func (p pauses) detail() map[string]any {
	wall, cpu := slices.Sorted(slices.Values(p.wall)), slices.Sorted(slices.Values(p.cpu))
	over := 0
	for _, ms := range wall {
		if ms >= 1 {
			over++
		}
	}
	return map[string]any{
		"entries": len(wall), "p50": quantile(wall, 0.5), "p99": quantile(wall, 0.99), "p999": quantile(wall, 0.999),
		"longest": quantile(wall, 1), "over_1ms": over, "longest_processor_ms": quantile(cpu, 1),
	}
}

// pausesBeside applies single commands while beside runs.
func pausesBeside(t *bench, s *fsm.State, beside func()) (p pauses) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var done atomic.Bool
	go func() {
		defer done.Store(true)
		beside()
	}()
	for !done.Load() {
		for _, batch := range batches(t, s, largeRecord, 1024, 1, begin) {
			for _, e := range batch {
				start, used := time.Now(), threadTime()
				mustApply(t, s, []fsm.LogEntry{e})
				p.wall = append(p.wall, milliseconds(time.Since(start)))
				p.cpu = append(p.cpu, milliseconds(threadTime()-used))
			}
		}
	}
	return p
}

// threadTime is what the calling thread has used of any core.
func threadTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
