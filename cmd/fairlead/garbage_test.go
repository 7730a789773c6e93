// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
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
func TestMembersCollectGarbageEarlierTheMoreTheyHold(t *testing.T) {
	const mb = 1 << 20
	for held, want := range map[uint64][3]int{ // thrifty, usually, and with very much to do
		0: {100, 100, 100}, 64 * mb: {100, 100, 100}, 65 * mb: {45, 90, 100}, 100 * mb: {25, 50, 100}, 128 * mb: {15, 30, 100}, 160 * mb: {10, 20, 80},
		250 * mb: {5, 10, 40}, 4096 * mb: {5, 10, 40},
	} {
		if got := [3]int{percentFor(held, true, mostRoom), percentFor(held, false, 1), percentFor(held, false, mostRoom)}; got != want {
			t.Errorf("holding %d bytes: %v, want %v", held, got, want)
		}
	}
	for _, c := range []struct {
		before     bool
		collecting float64
		want       bool
	}{
		{false, 0.01, true}, {false, 0.1, false}, {true, 0.3, true}, // what it was before, or nearly
		{true, 0.5, false}, {false, 1.1, false},
	} {
		if got := thrifty(c.before, c.collecting); got != c.want {
			t.Errorf("collecting %.2f after %t: %t, want %t", c.collecting, c.before, got, c.want)
		}
	}
	room := 1
	for _, c := range []struct {
		collecting float64
		want       int
	}{{0.5, 2}, {0.3, 2}, {0.7, 4}, {0.9, 4}, {0.04, 2}, {0.05, 2}, {0, 1}, {0, 1}} { // never less, and no more than so much
		if room = roomier(room, c.collecting); room != c.want {
			t.Errorf("collecting %.2f: %d times as much, want %d", c.collecting, room, c.want)
		}
	}
	much := make([]byte, muchGarbage+1<<20)
	runtime.GC()
	if heldBytes() <= muchGarbage {
		t.Errorf("it holds %d bytes", heldBytes())
	}
	if collectingSeconds() <= 0 {
		t.Error("collecting took no time")
	}
	runtime.KeepAlive(much)
	saveMuchMemory(t.Context(), func(string) string { return "75" }, time.Hour) // it was said: there is nothing to wait for
}

// A member that holds much gives back what it needed for a while, once it has little to do.
func TestMembersAtRestGiveBackWhatTheyNeedNoMore(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	synctest.Test(t, func(t *testing.T) {
		held, needed := touched(muchGarbage+16<<20), touched(2*muchGarbage)
		runtime.KeepAlive(needed)
		runtime.GC()
		go saveMuchMemory(t.Context(), func(string) string { return "" }, 2*time.Second)
		gives := func(after time.Duration, needed uint64) {
			t.Helper()
			time.Sleep(after - time.Second)
			before := ownBytes()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if now := ownBytes(); before < muchGarbage+needed || now > before-needed/2 {
				t.Errorf("after %s it has %d bytes, had %d", after, now, before)
			}
		}
		gives(restSoon, 2*muchGarbage)
		runtime.KeepAlive(touched(muchGarbage / 2)) // no more than at rest
		gives(restEvery-time.Second, muchGarbage/2)
		runtime.KeepAlive(held)
	})
}

// touched gives memory that the kernel has given, too.
func touched(size int) []byte {
	out := make([]byte, size)
	for i := range out {
		out[i] = 1
	}
	return out
}

// What an agent needed for a while does not stay with it.
func TestAgentsGiveBackWhatTheyNeedNoMore(t *testing.T) {
	var own thrift
	if !own.giveBack() || own.giveBack() {
		t.Fatal("it is to be done once at first")
	}
	runtime.KeepAlive(touched(8 * idleMemory))
	before := ownBytes()
	if !own.giveBack() {
		t.Error("nothing was given back")
	}
	if now := ownBytes(); now > before-7*idleMemory {
		t.Errorf("it has %d bytes, had %d", now, before)
	}
}

// Giving back much at once would stop a member for longer than others wait for it.
func TestWhoHoldsVeryMuchGivesNothingBackAtOnce(t *testing.T) {
	very := make([]byte, longToGiveBack+1)
	runtime.GC()
	if own := (thrift{}); own.giveBack() {
		t.Errorf("it gave back, holding %d bytes", heldBytes())
	}
	runtime.KeepAlive(very)
}
