// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"strconv"
	"testing"
	"time"
)

func TestRepeatsRememberABoundedNumberOfThings(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	repeats := NewRepeats(func() time.Time { return now })
	for i := range 10 * maxRemembered {
		if _, due := repeats.Due(strconv.Itoa(i)); !due {
			t.Fatalf("first line about %d left out", i)
		}
		now = now.Add(time.Millisecond)
		if len(repeats.seen) > maxRemembered {
			t.Fatalf("%d things remembered", len(repeats.seen))
		}
	}
	if _, due := repeats.Due(strconv.Itoa(10*maxRemembered - 1)); due {
		t.Fatal("a repetition was due at once")
	}
}
