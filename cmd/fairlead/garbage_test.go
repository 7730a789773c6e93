// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestGarbageIsCollectedEarlyUnlessItIsSaidWhen(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	for _, c := range []struct {
		gogc string
		want int
	}{{"75", 100}, {"", garbage}} { // Go itself has obeyed GOGC already
		saveMemory(func(string) string { return c.gogc })
		if got := debug.SetGCPercent(100); got != c.want {
			t.Errorf("with GOGC=%q: %d, want %d", c.gogc, got, c.want)
		}
	}
}

// A member is quick as long as it holds little, and small once it holds much: smallest while that costs little.
func TestMembersCollectGarbageEarlyOnceTheyHoldMuch(t *testing.T) {
	for _, c := range []struct {
		held       uint64
		before     int
		collecting float64
		want       int
	}{
		{0, 100, 0, 100},
		{muchMemory, 20, 2, 100},
		{muchMemory + 1, 100, 0.6, 20},
		{muchMemory + 1, 100, 1.1, 40},
		{muchMemory + 1, 20, 0.9, 20},
		{muchMemory + 1, 20, 1.1, 40},
		{muchMemory + 1, 40, 0.55, 40}, // what it was at 20, or nearly
		{muchMemory + 1, 40, 0.3, 20},
		{muchMemory + 1, 40, 1.5, 40},
	} {
		if got := garbageOf(c.held, c.before, c.collecting); got != c.want {
			t.Errorf("holding %d bytes, collecting %.2f at %d%%: %d, want %d", c.held, c.collecting, c.before, got, c.want)
		}
	}
	much := make([]byte, muchMemory+1<<20)
	runtime.GC()
	if heldBytes() <= muchMemory {
		t.Errorf("it holds %d bytes", heldBytes())
	}
	if collectingSeconds() <= 0 {
		t.Error("collecting took no time")
	}
	runtime.KeepAlive(much)
	saveMuchMemory(t.Context(), func(string) string { return "75" }, time.Hour) // it was said: there is nothing to wait for
}

// What an agent needed for a while does not stay with it.
func TestAgentsGiveBackWhatTheyNeedNoMore(t *testing.T) {
	var own thrift
	if !own.giveBack() || own.giveBack() {
		t.Fatal("it is to be done once at first")
	}
	much := make([]byte, 8*idleMemory)
	for i := range much {
		much[i] = 1
	}
	runtime.KeepAlive(much)
	before := ownBytes()
	if !own.giveBack() {
		t.Error("nothing was given back")
	}
	if now := ownBytes(); now > before-7*idleMemory {
		t.Errorf("it has %d bytes, had %d", now, before)
	}
}
