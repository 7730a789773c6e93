// SPDX-License-Identifier: Apache-2.0

// Package heap measures memory for benchmarks of what is kept.
package heap

import "runtime"

// InUse is how many bytes are in use once everything else was freed.
func InUse() int64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools let go of, too
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
