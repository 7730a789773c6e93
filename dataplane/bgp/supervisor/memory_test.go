// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"testing"
	"testing/synctest"
	"time"
)

// A child that has more memory than what it announces can need is followed by one that announces the same.
func TestAChildWithTooMuchMemoryIsEnded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *Speaker) {
		d := desired(1, 2)
		apply(t, s, d, nil)
		first := w.last()
		if limit := first.limit.Load(); limit < mayHave(&d)/4*3 || limit >= mayHave(&d) {
			t.Errorf("it collects garbage at %d bytes, and may have %d", limit, mayHave(&d))
		}
		first.has.Store(mayHave(&d))
		time.Sleep(3 * wordEvery)
		synctest.Wait()
		if len(w.all()) != 1 {
			t.Fatal("a child was ended that had no more than it may")
		}
		first.has.Add(1)
		time.Sleep(3 * wordEvery)
		synctest.Wait()
		if len(w.all()) != 2 || len(w.last().prefixes()) != 2 {
			t.Errorf("%d children, the last announces %v", len(w.all()), w.last().prefixes())
		}
	})
}
