// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"errors"
	"testing"
	"time"
)

// Patience is how long Eventually and Until wait. It is no promise of the product: a test that waits for something that comes in
// milliseconds holds on a machine that is many times as busy as it should be, and the time is lost only when something is wrong.
// A promise in time is tested by time stamps of the system under test, or by events that are counted.
const Patience = 2 * time.Minute

// Between two looks there is a pause: as long as a look takes, so that at most half of the time goes into them, and so much at least.
const (
	firstPause  = time.Millisecond
	longerPause = 5 * time.Millisecond
)

// Eventually looks until look returns nil. If that does not happen within Patience, it fails the test with what and with what was last
// seen, the error of the last look. Inside a bubble of testing/synctest the time is the bubble's.
func Eventually(t testing.TB, what string, look func() error) {
	t.Helper()
	EventuallyWithin(t, what, Patience, look)
}

// Until is Eventually for what is only so or not.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	Eventually(t, what, func() error {
		if !holds() {
			return errNotYet
		}
		return nil
	})
}

var errNotYet = errors.New("not so yet")

// EventuallyWithin is Eventually with another limit than Patience: that of a promise, or of what takes longer.
func EventuallyWithin(t testing.TB, what string, limit time.Duration, look func() error) {
	t.Helper()
	began := time.Now()
	for pause := firstPause; ; pause = min(2*pause, longerPause) {
		looking := time.Now()
		last := look()
		if last == nil {
			return
		}
		if time.Since(began) > limit {
			t.Fatalf("not within %v: %s; last seen: %v", limit, what, last)
		}
		time.Sleep(max(pause, time.Since(looking)))
	}
}
