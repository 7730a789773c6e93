// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"weak"
)

// Who waits for a table that seldom changes would hold the whole record as it was when they began.
func TestWaitHoldsNoView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		s.ApplyEntries([]LogEntry{entry(t, s, 1, &InitGroup{Group: "g", Format: NewestFormat})})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		wait := func(v *View) weak.Pointer[View] {
			go func() { done <- s.Wait(ctx, v, TableHolds) }()
			return weak.Make(v)
		}
		of := wait(s.Read())
		synctest.Wait()
		s.ApplyEntries([]LogEntry{entry(t, s, 2, &PutNode{ID: "n1"})})
		synctest.Wait()
		runtime.GC()
		if of.Value() != nil {
			t.Error("the view that was waited with is held")
		}
		cancel()
		if err := <-done; err == nil {
			t.Error("it did not wait")
		}
	})
}
