// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime/debug"
	"testing"
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
