// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"fmt"
	"sync"
	"time"
)

// How soon a driver that does not answer is left alone, and for how long: short against the retries of calls, so that a
// driver which comes back is noticed.
const (
	openAfter = 5 // calls without an answer, in a row
	openFirst = 500 * time.Millisecond
	openMost  = 5 * time.Second
)

// circuit leaves a driver alone that does not answer. It is closed until some calls in a row had no answer; then it
// is open, for longer each time, and lets one call through in between (a probe). An answer of any kind closes it.
type circuit struct {
	now    func() time.Duration
	jitter func(time.Duration) time.Duration // at random, below what it is given

	mu       sync.Mutex
	failures int           // in a row
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

// ended takes in how an admitted call ended; nil is an answer.
func (c *circuit) ended(probe bool, err *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if probe {
		c.probing = false
	}
	switch {
	case err == nil || err.answered():
		c.failures, c.opened, c.last = 0, 0, nil
	case !err.silent():
		// It says nothing of the driver.
	case c.opened > 0 && !probe:
		c.last = err.Err // it went out before the circuit opened
	default:
		c.failures++
		c.last = err.Err
		if probe || c.failures >= openAfter {
			c.open()
		}
	}
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
