// SPDX-License-Identifier: Apache-2.0

package netnstest

import (
	"testing"
	"time"
)

// Eventually looks until a condition holds, and fails the test if it does not in time.
func Eventually(t testing.TB, within time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", within, what)
		}
		time.Sleep(5 * time.Millisecond) // between two looks
	}
}
