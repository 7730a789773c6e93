// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"time"

	"fairlead.io/fairlead/internal/mapped"
)

// shedEvery is how often agents and members give memory back, and shed their program. They shed it shedSoon after garbage was collected, too:
// what is needed comes back in less than a millisecond.
const (
	shedEvery = 30 * time.Second
	shedSoon  = 5 * time.Second
)

// shedProgram has the kernel take back, every so often until ctx ends, the pages of the program's file that this process has
// mapped: a start touches something nearly everywhere, and to collect garbage touches much. It gives back first what it does not need of its own
// memory, which collects.
func shedProgram(ctx context.Context) {
	var own thrift
	var collected uint64
	ticks := time.NewTicker(shedSoon)
	defer ticks.Stop()
	for began := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		due := time.Since(began) >= shedEvery
		if due {
			own.giveBack()
			began = time.Now()
		}
		if now := collections(); due || now != collected {
			shed()
			collected = now
		}
	}
}

// collections is how often garbage was collected.
func collections() uint64 { return read("/gc/cycles/total:gc-cycles").Uint64() }

// shed does so once.
func shed() {
	if program, err := os.Readlink("/proc/self/exe"); err == nil {
		mapped.Shed(program)
	}
}
