// SPDX-License-Identifier: Apache-2.0

package main

import "runtime/debug"

// garbage is how much of it agents and members let gather, in percent of what they hold: they share their machines with what
// those are for, and seldom have much to do. Go's own is 100.
const garbage = 40

// saveMemory has this process collect garbage earlier, unless whoever started it says how early (GOGC).
func saveMemory(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}
