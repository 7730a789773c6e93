// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// garbage is how much of it may gather, in percent of what a process holds, where memory counts for more than processor time:
// agents share their nodes with what those are for, and seldom have much to do. Go's own is 100.
const (
	garbage   = 40
	goGarbage = 100
)

// muchMemory is what a member holds that is better kept small than quick, in bytes: many times of what usual clusters take.
const muchMemory = 256 << 20

// saveMemory has this process collect garbage earlier, unless whoever started it says how early (GOGC).
func saveMemory(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}

// saveMuchMemory does so once the process holds much, looking every so often until ctx ends.
func saveMuchMemory(ctx context.Context, getenv func(string) string, every time.Duration) {
	if getenv("GOGC") != "" {
		return
	}
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			debug.SetGCPercent(garbageOf(heldBytes()))
		}
	}
}

// garbageOf is how much garbage a process leaves that holds so many bytes.
func garbageOf(held uint64) int {
	if held > muchMemory {
		return garbage
	}
	return goGarbage
}

// heldBytes is what the newest collection found in use.
func heldBytes() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
