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

// A member is quick as long as it holds little, and small once it holds much.
func TestMembersCollectGarbageEarlyOnceTheyHoldMuch(t *testing.T) {
	for held, want := range map[uint64]int{0: 100, muchMemory: 100, muchMemory + 1: garbage} {
		if got := garbageOf(held); got != want {
			t.Errorf("holding %d bytes: %d, want %d", held, got, want)
		}
	}
	much := make([]byte, muchMemory+1<<20)
	runtime.GC()
	if heldBytes() <= muchMemory {
		t.Errorf("it holds %d bytes", heldBytes())
	}
	runtime.KeepAlive(much)
	saveMuchMemory(t.Context(), func(string) string { return "75" }, time.Hour) // it was said: there is nothing to wait for
}
