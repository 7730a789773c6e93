// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// garbage is how much of it may gather, in percent of what a process holds, where memory counts for more than processor time: agents
// share their nodes with what those are for, and seldom have much to do. Go's own is 100.
const (
	garbage   = 40
	goGarbage = 100
)

// A member that holds little leaves as much garbage as Go has it leave: it is quick, and small anyway. One that holds more leaves so many
// bytes of it; half of them once it holds as much again and half, and not less than littleGarbage of what it holds. What is garbage while
// a process is largest is room between its objects for good, as Go moves none.
const (
	muchGarbage   = 64 << 20
	littleGarbage = 10
)

// garbageFor is how much garbage a member leaves that holds so many bytes, in percent of them, in tens.
func garbageFor(held uint64) int {
	if held <= muchGarbage {
		return goGarbage
	}
	bytes := muchGarbage - min((held-muchGarbage)/3, muchGarbage/2)
	return max(littleGarbage, int(bytes*10/held)*10)
}

// Shares of one processor that collecting takes. Half the garbage is twice the work: what is little before must not be much afterwards.
const (
	muchCollecting   = 0.4
	littleCollecting = 0.05
)

// thrifty tells whether a member leaves half as much garbage as usual, once collecting took such a share of a processor: while it has
// little to do.
func thrifty(before bool, collecting float64) bool {
	return collecting < littleCollecting || before && collecting <= muchCollecting
}

// mostRoom is how many times as much garbage as usual is left at most.
const mostRoom = 4

// roomier tells how many times as much garbage as usual is left, once collecting took such a share of a processor: while a member has very much
// to do, as when a large backup is restored, collecting is most of that, and keeps it from answering in time. The memory is given back later.
func roomier(before int, collecting float64) int {
	switch {
	case collecting > muchCollecting:
		return min(2*before, mostRoom)
	case collecting < littleCollecting:
		return max(before/2, 1)
	}
	return before
}

// percentFor is how much garbage is left for so many bytes that are held.
func percentFor(held uint64, thrifty bool, room int) int {
	p := garbageFor(held)
	switch {
	case p >= goGarbage:
		return goGarbage
	case thrifty:
		return p / 2
	}
	return min(p*room, goGarbage)
}

// saveMemory has this process collect garbage earlier, unless whoever started it says how early (GOGC).
func saveMemory(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}

// restEvery is how often a member that holds much and has little to do gives memory back, which collects its garbage as well, and restSoon
// how soon it does so where it made much garbage since: Go keeps what that needed.
const (
	restEvery = 30 * time.Second
	restSoon  = 6 * time.Second
)

// idleMemory is how much more a process may hold than when it gave back last, in bytes, before it does so again. Go gives memory back by
// itself, but slowly, keeps a tenth, and only after a collection, which a process that has nothing to do seldom needs.
const idleMemory = 8 << 20

// thrift gives memory back. The zero value is for a process that never did.
type thrift struct{ kept uint64 }

// longToGiveBack is what a process holds at most that gives memory back: to do so looks through all that it holds in one go, and much else waits.
// With 2 GB that takes a quarter of a second, in which a leader is taken for gone.
const longToGiveBack = 512 << 20

// giveBack has the kernel take back what is not needed, where that may be much, and tells whether it did.
func (t *thrift) giveBack() bool {
	if ownBytes() <= t.kept+idleMemory || heldBytes() > longToGiveBack {
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

// saveMuchMemory has this process leave as much garbage as a member shall, looking every so often until ctx ends, unless whoever started
// it says how much (GOGC).
func saveMuchMemory(ctx context.Context, getenv func(string) string, every time.Duration) {
	if getenv("GOGC") != "" {
		return
	}
	percent, rests, room, before := goGarbage, false, 1, collectingSeconds()
	var own thrift
	var allocated uint64      // when it gave back last
	quiet := time.Duration(0) // for how long there was little to do
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			took := collectingSeconds()
			collecting := (took - before) / every.Seconds()
			rests, room = thrifty(rests, collecting), roomier(room, collecting)
			if next := percentFor(heldBytes(), rests, room); next != percent {
				debug.SetGCPercent(next) // it stops everything for a moment
				percent = next
			}
			before = took
			if quiet += every; !rests || percent == goGarbage {
				quiet = 0
			} else if quiet >= restEvery || quiet >= restSoon && allocatedBytes() >= allocated+muchGarbage {
				own.giveBack()
				quiet, allocated = 0, allocatedBytes()
				before = collectingSeconds() // that is no work that somebody waits for
			}
		}
	}
}

// heldBytes is what the newest collection found in use.
func heldBytes() uint64 { return read("/gc/heap/live:bytes").Uint64() }

// allocatedBytes is what was ever allocated.
func allocatedBytes() uint64 { return read("/gc/heap/allocs:bytes").Uint64() }

// collectingSeconds is the processor time that collections took so far, without what nobody else wanted.
func collectingSeconds() float64 {
	return read("/cpu/classes/gc/total:cpu-seconds").Float64() - read("/cpu/classes/gc/mark/idle:cpu-seconds").Float64()
}

func read(metric string) metrics.Value {
	sample := []metrics.Sample{{Name: metric}}
	metrics.Read(sample)
	return sample[0].Value
}
