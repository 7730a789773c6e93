// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tetratelabs/wazero/experimental"
)

// allocator maps memory that never moves and goes back to the system when a process ends: nothing is copied as it
// grows, and the garbage collector has nothing to do with it.
type allocator struct{ image *image }

const access = unix.PROT_READ | unix.PROT_WRITE

// Allocate implements experimental.MemoryAllocator.
func (a allocator) Allocate(_, largest uint64) experimental.LinearMemory {
	whole, err := unix.Mmap(-1, 0, int(largest), access, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		panic(fmt.Sprintf("map %d bytes of memory for a process: %v", largest, err)) // there is no other way to say it
	}
	m := &mapping{whole}
	_ = unix.Madvise(whole, unix.MADV_HUGEPAGE) // faster where the system has them
	if i := a.image; i.file != nil {
		if i.size > len(whole) {
			panic("the program's data do not fit into its memory") // the fixed mapping would destroy ours
		}
		fd, at, flags := int(i.file.Fd()), unsafe.Pointer(&whole[0]), unix.MAP_PRIVATE|unix.MAP_FIXED
		if _, err := unix.MmapPtr(fd, 0, at, uintptr(i.size), access, flags); err != nil {
			m.Free()
			panic(fmt.Sprintf("map the program's data: %v", err))
		}
	}
	return m
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
