// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// garbage is how much of it may gather, in percent of what a process holds, where memory counts for more than processor time:
// agents share their nodes with what those are for, and seldom have much to do. Go's own is 100. A member that holds much has
// enough with littleGarbage while that costs little, as it does at rest.
const (
	littleGarbage = 20
	garbage       = 40
	goGarbage     = 100
)

// muchMemory is what a member holds that is better kept small than quick, in bytes: many times of what usual clusters take.
const muchMemory = 256 << 20

// Shares of one processor that collecting takes. A member that holds much leaves more garbage above muchCollecting, and less below
// littleCollecting. Half the garbage is twice the work: what is little before must not be much afterwards.
const (
	muchCollecting   = 1.0
	littleCollecting = 0.4
)

// saveMemory has this process collect garbage earlier, unless whoever started it says how early (GOGC).
func saveMemory(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}

// idleMemory is how much more an agent may hold than when it gave back last, in bytes, before it does so again. Go gives memory back by
// itself, but slowly, and only after a collection, which an agent that has nothing to do seldom needs.
const idleMemory = 8 << 20

// thrift gives memory back. The zero value is for a process that never did.
type thrift struct{ kept uint64 }

// giveBack has the kernel take back what is not needed, where that may be much, and tells whether it did.
func (t *thrift) giveBack() bool {
	if ownBytes() <= t.kept+idleMemory {
		return false
	}
	debug.FreeOSMemory()
	t.kept = ownBytes()
	return true
}

// ownBytes is what objects take that nobody has found to be garbage yet, with the room between them, and what is free and not given back.
func ownBytes() (sum uint64) {
	for _, class := range []string{"objects", "unused", "free"} {
		sum += read("/memory/classes/heap/" + class + ":bytes").Uint64()
	}
	return sum
}

// saveMuchMemory does so once the process holds much, looking every so often until ctx ends.
func saveMuchMemory(ctx context.Context, getenv func(string) string, every time.Duration) {
	if getenv("GOGC") != "" {
		return
	}
	percent, before := goGarbage, collectingSeconds()
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			now := collectingSeconds()
			if next := garbageOf(heldBytes(), percent, (now-before)/every.Seconds()); next != percent {
				debug.SetGCPercent(next) // it stops everything for a moment
				percent = next
			}
			before = now
		}
	}
}

// garbageOf is how much garbage a process leaves from now on that holds so many bytes, and whose collections took such a share of a
// processor while it left so much before.
func garbageOf(held uint64, before int, collecting float64) int {
	switch {
	case held <= muchMemory:
		return goGarbage
	case collecting > muchCollecting:
		return garbage
	case before == goGarbage || collecting < littleCollecting:
		return littleGarbage
	}
	return before
}

// heldBytes is what the newest collection found in use.
func heldBytes() uint64 { return read("/gc/heap/live:bytes").Uint64() }

// collectingSeconds is the processor time that collections took so far, without what nobody else wanted.
func collectingSeconds() float64 {
	return read("/cpu/classes/gc/total:cpu-seconds").Float64() - read("/cpu/classes/gc/mark/idle:cpu-seconds").Float64()
}

func read(metric string) metrics.Value {
	sample := []metrics.Sample{{Name: metric}}
	metrics.Read(sample)
	return sample[0].Value
}
