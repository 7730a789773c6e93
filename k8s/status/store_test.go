// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strconv"
	"testing"
	"time"
)

// The answer to a write counts for more than a watch that lags, but not for ever: the API server may have been set back.
func TestWatchThatStaysBehindIsBelieved(t *testing.T) {
	at := func(version int) *served {
		s := newServed("web", "LoadBalancer", "")
		s.version = version
		return s
	}
	for what, c := range map[string]struct {
		next, want int // what the watch shows later, 0 for nothing, and what counts in the end
	}{
		"set back":       {0, 6},
		"further behind": {5, 5},
		"caught up":      {7, 7},
		"changed since":  {8, 8},
	} {
		t.Run(what, func(t *testing.T) {
			store := NewStore()
			store.Set(at(4).object())
			store.answer(SeenOf(at(7).object()))
			store.Set(at(6).object())
			now := time.Unix(0, 0)
			look := func(after time.Duration, want int) {
				t.Helper()
				now = now.Add(after)
				store.settle(now)
				if have := store.get("default/web").ResourceVersion; have != strconv.Itoa(want) {
					t.Errorf("after %s version %s counts, want %d", now.Sub(time.Unix(0, 0)), have, want)
				}
			}
			look(0, 7)
			look(trust-time.Second, 7)
			if c.next != 0 {
				store.Set(at(c.next).object())
			}
			look(2*time.Second, c.want)
			if len(store.behind) > 0 {
				t.Errorf("waits for %v", store.behind)
			}
			store.take()
			look(time.Hour, c.want)
			if changed := store.take(); len(changed) > 0 {
				t.Errorf("changed again: %v", changed)
			}
		})
	}
}
