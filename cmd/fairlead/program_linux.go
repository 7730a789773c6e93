// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"time"

	"fairlead.io/fairlead/internal/mapped"
)

// shedEvery is how often agents and members shed their program: what is needed then comes back in less than a millisecond. So many times later
// they give memory back, too, which collects garbage.
const (
	shedEvery     = 5 * time.Second
	givesBackEach = 6
)

// shedProgram has the kernel take back, every so often until ctx ends, the pages of the program's file that this process has
// mapped: a start touches something nearly everywhere, and so does who collects garbage. It gives back before what it does not need of its own
// memory.
func shedProgram(ctx context.Context, every time.Duration) {
	var own thrift
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			if n%givesBackEach == 0 {
				own.giveBack()
			}
			shed()
		}
	}
}

// shed does so once.
func shed() {
	if program, err := os.Readlink("/proc/self/exe"); err == nil {
		mapped.Shed(program)
	}
}
