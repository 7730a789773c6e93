// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// stayOn keeps the goroutine, until it ends, and the processes that it starts on one of the cores that this program may
// use. World and processes take turns, many thousand times a second: on one core, that costs no waking of another one,
// and caches stay warm. Where the system does not want it, nothing is lost but time.
func stayOn(core int) {
	runtime.LockOSThread() // for ever: the thread ends with the goroutine, and with it what it is bound to
	var may, one unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil {
		return
	}
	core %= may.Count()
	for cpu := 0; ; cpu++ {
		if !may.IsSet(cpu) {
			continue
		}
		if core--; core < 0 {
			one.Set(cpu)
			_ = unix.SchedSetaffinity(0, &one)
			return
		}
	}
}
