// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"golang.org/x/sys/unix"

	"github.com/tetratelabs/wazero/experimental"
)

// allocator maps memory that never moves and goes back to the system when a process ends: nothing is copied as it
// grows, and the garbage collector has nothing to do with it.
type allocator struct{}

// Allocate implements experimental.MemoryAllocator.
func (allocator) Allocate(_, largest uint64) experimental.LinearMemory {
	whole, err := unix.Mmap(-1, 0, int(largest), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return &mapping{} // Reallocate says no
	}
	return &mapping{whole}
}

type mapping struct{ whole []byte }

// Reallocate implements experimental.LinearMemory.
func (m *mapping) Reallocate(size uint64) []byte {
	if size > uint64(len(m.whole)) {
		return nil
	}
	return m.whole[:size:len(m.whole)]
}

// Free implements experimental.LinearMemory.
func (m *mapping) Free() {
	if m.whole != nil {
		_ = unix.Munmap(m.whole) // fails only for what is not mapped
		m.whole = nil
	}
}
