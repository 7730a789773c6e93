// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// While bindings are under way their BackendRecords wait, but never for longer than a few seconds: all of them are written
// then, however much more is under way.
func TestRecordsMakeWayForBindingsForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newBook(t), newServer()
		b.edgeReady(t)
		var binding atomic.Bool
		binding.Store(true)
		c := config(b, s)
		c.Yield = binding.Load
		defer lead(t, c)()
		bind := func(from, to int) {
			for i := from; i <= to; i++ {
				b.do(t, pod(i))
				b.addressed(t, i)
				b.ensured(t, i, "")
			}
		}
		expect := func(what string, first, last int, want bool) {
			t.Helper()
			for i := first; i <= last; i++ {
				if o := s.record(i); want != (o != nil && o.Status.BackendAddr != "") {
					t.Errorf("%s: record %d is there: %v", what, i, o != nil)
				}
			}
		}
		bind(1, 50)
		pass(4 * time.Second)
		expect("while bindings are under way", 1, 50, false)
		if got := s.reasons(Record); got != "" {
			t.Errorf("told of records that wait: %s", got)
		}
		pass(1500 * time.Millisecond)
		expect("after five seconds", 1, 50, true)

		bind(51, 60)
		pass(4 * time.Second)
		expect("while more are under way", 51, 60, false)
		binding.Store(false)
		pass(time.Second)
		expect("once they are bound", 51, 60, true)
	})
}
