// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"time"

	"fairlead.io/fairlead/internal/mapped"
)

// shedEvery is how often agents and members shed their program: what is needed then comes back in less than a millisecond.
const shedEvery = 30 * time.Second

// shedProgram has the kernel take back, every so often until ctx ends, the pages of the program's file that this process has
// mapped: a start touches something nearly everywhere. It gives back first what it does not need of its own memory: to find that out touches
// much of the program, too.
func shedProgram(ctx context.Context, every time.Duration) {
	var own thrift
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			own.giveBack()
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
