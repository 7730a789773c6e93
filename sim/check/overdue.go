// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"time"
)

// overdue keeps since when things have been as they must not stay.
type overdue struct {
	since map[string]wrong
}

type wrong struct {
	at    time.Duration
	why   string
	event uint64
}

func newOverdue() overdue { return overdue{map[string]wrong{}} }

// note says how a thing is now. What is wrong stays wrong since the first time that it was said to be.
func (o overdue) note(key string, is bool, now time.Duration, why string, event uint64) {
	if !is {
		delete(o.since, key)
		return
	}
	if w, ok := o.since[key]; ok {
		now = w.at
	}
	o.since[key] = wrong{now, why, event}
}

// over lists what has been wrong for longer than a bound, in order.
func (o overdue) over(now, bound time.Duration) (keys []string) {
	for key, w := range o.since {
		if now-w.at > bound {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
