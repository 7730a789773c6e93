// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// oneCore makes this process run Go code on one core at a time, garbage collection included, until the benchmark ends.
func oneCore(t *bench) {
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(before)
		debug.FreeOSMemory()
	})
}

// applyPerSecond applies the commands of calls to a driver, two for each binding, to a large record on one core.
// Decoding the entries, the digest, publishing what changed and collecting garbage are part of it.
func applyPerSecond(t *bench) figures {
	oneCore(t)
	const window, windows = 25 * perEntry * perBatch, 10
	s := filled(t, largeRecord)
	c := &calls{size: largeRecord}
	batches := c.batches(t, s, s.Applied(), windows*window/(perEntry*perBatch))
	runtime.GC()
	t.progressf("applying %d commands", windows*window)
	var wall, cpu []float64
	var wallAll, cpuAll time.Duration
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	for chunk := range slices.Chunk(batches, len(batches)/windows) {
		begin, used := time.Now(), processorTime()
		for _, batch := range chunk {
			mustApply(t, s, batch)
		}
		tookWall, tookCPU := time.Since(begin), processorTime()-used
		wallAll, cpuAll = wallAll+tookWall, cpuAll+tookCPU
		wall = append(wall, window/tookWall.Seconds())
		cpu = append(cpu, window/tookCPU.Seconds())
	}
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	total := float64(windows * window)
	value := total / wallAll.Seconds()
	slices.Sort(cpu)
	return figures{samples: wall, value: &value, detail: map[string]any{
		"bindings": largeRecord, "commands": windows * window,
		"per_processor_second":     total / cpuAll.Seconds(), // what a core to itself would give: others use this machine
		"per_processor_second_p50": quantile(cpu, 0.5),
		"allocated_bytes_each":     float64(after.TotalAlloc-before.TotalAlloc) / total,
		"allocations_each":         float64(after.Mallocs-before.Mallocs) / total,
		"collections":              after.NumGC - before.NumGC,
		"heap_mb":                  after.HeapAlloc >> 20,
	}}
}

// processorTime is what this process has used of any core.
func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
