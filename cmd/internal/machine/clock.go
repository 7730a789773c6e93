// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// bootClock is CLOCK_BOOTTIME: it goes on while the machine sleeps.
type bootClock struct{}

func (bootClock) Now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(fmt.Sprintf("read CLOCK_BOOTTIME: %v", err)) // every Linux since 2.6.39 has it
	}
	return time.Duration(t.Nano())
}

func (bootClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

func (bootClock) Wall() time.Time { return time.Now() }
