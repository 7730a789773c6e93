// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"fmt"
	"sync"
	"time"
)

// How soon a driver that answers nothing is left alone: after many calls in a row, or where few are made, after a long time. A
// driver that answers one call in three fails 64 in a row once in 10^11 times, however fast they are made. It may be left alone
// where few lines call it: they lose little by that, since the circuit looks for an answer more often than they.
const (
	openCalls, openAfter = 64, 3 * time.Second
	openFew, openLong    = 5, 20 * time.Second
)

// For how long it is: short against the retries of calls, so that a driver which comes back is noticed.
const (
	openFirst = 500 * time.Millisecond
	openMost  = 5 * time.Second
)

// circuit leaves a driver alone that answers nothing. It is closed until then; then it is open, for longer each time, and lets one
// call through in between (a probe). An answer of any kind closes it. How long who failed waits is not its business.
type circuit struct {
	now    func() time.Duration
	jitter func(time.Duration) time.Duration // at random, below what it is given

	mu       sync.Mutex
	failures int           // in a row
	since    time.Duration // nothing is answered: the beginning of the first of those, or the answer before it
	heard    time.Duration // the last answer
	opened   int           // times without an answer between
	until    time.Duration // while opened > 0: open until then
	probing  bool
	last     error
}

// openError says that a driver is left alone.
type openError struct {
	last  error
	after time.Duration
}

func (e *openError) Error() string {
	return fmt.Sprintf("the driver is left alone for %v, since it does not answer: %v", e.after.Round(time.Millisecond), e.last)
}

// admit tells whether a call may go out now, and whether as a probe. Who may not comes back after some time: not all at once.
func (c *circuit) admit() (probe bool, refused *openError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened == 0 {
		return false, nil
	}
	left := c.until - c.now()
	if left <= 0 && !c.probing {
		c.probing = true
		return true, nil
	}
	return false, &openError{last: c.last, after: max(left, openFirst) + c.jitter(openFirst)}
}

// ended takes in how an admitted call ended that was sent at a time; nil is an answer.
func (c *circuit) ended(probe bool, err *Error, sent time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if probe {
		c.probing = false
	}
	switch {
	case err == nil || err.answered():
		c.failures, c.opened, c.last, c.heard = 0, 0, nil, c.now()
	case !err.silent():
		// It says nothing of the driver.
	case c.opened > 0 && !probe:
		c.last = err.Err // it went out before the circuit opened
	default:
		if c.failures++; c.failures == 1 || sent < c.since {
			c.since = max(sent, c.heard)
		}
		c.last = err.Err
		if probe || c.silent() {
			c.open()
		}
	}
}

// silent tells whether the driver answers nothing.
func (c *circuit) silent() bool {
	lasts := c.now() - c.since
	return c.failures >= openCalls && lasts >= openAfter || c.failures >= openFew && lasts >= openLong
}

func (c *circuit) open() {
	wait := openMost
	if c.opened < 10 {
		wait = min(openFirst<<c.opened, openMost)
	}
	c.opened++
	c.until = c.now() + wait/2 + c.jitter(wait/2)
}

// silence is why the driver is left alone; nil if it is not.
func (c *circuit) silence() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened == 0 {
		return nil
	}
	return c.last
}
