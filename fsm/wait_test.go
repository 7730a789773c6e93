// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"context"
	"net/netip"
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

// Who reads a view, and asks whether anything changed since an older one, may go on from the view that was read: what it shows that the
// older one did not is told as changed. Else that would be overlooked for ever.
func TestWhatAViewShowsIsToldAsChanged(t *testing.T) {
	s := New()
	s.ApplyEntries([]LogEntry{entry(t, s, 1, &InitGroup{Group: "g", Format: NewestFormat})})
	const changes = 20_000
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range changes {
			s.ApplyEntries([]LogEntry{entry(t, s, Index(i+2), &PutNode{ID: "n1", Addresses: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})}})})
		}
	}()
	for before, over := s.Read(), false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		v := s.Read()
		if !s.Changed(before, TableNodes) && Differ(before, v, TableNodes) {
			t.Errorf("view %d of %d shows what is not told as changed since view %d", v.published, changes, before.published)
			break // the other goroutine ends first: it uses the test, too
		}
		before = v
	}
	<-done
}
