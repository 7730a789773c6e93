// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"github.com/tetratelabs/wazero/sys"
)

func argsSizesGet(p *Process, a []uint64) uint32 { return p.putSizes(p.spec.Args, a[0], a[1]) }

func argsGet(p *Process, a []uint64) uint32 { return p.putStrings(p.spec.Args, a[0], a[1]) }

func environSizesGet(p *Process, a []uint64) uint32 { return p.putSizes(p.spec.Env, a[0], a[1]) }

func environGet(p *Process, a []uint64) uint32 { return p.putStrings(p.spec.Env, a[0], a[1]) }

// putSizes writes how many strings there are, and the bytes they take, each with a zero at its end.
func (p *Process) putSizes(list []string, count, size uint64) uint32 {
	total := 0
	for _, s := range list {
		total += len(s) + 1
	}
	return errno(p.put32(count, uint32(len(list))) && p.put32(size, uint32(total)))
}

func (p *Process) putStrings(list []string, pointers, bytes uint64) uint32 {
	for _, s := range list {
		if !p.put32(pointers, uint32(bytes)) || !p.memory.WriteString(uint32(bytes), s+"\x00") {
			return fault
		}
		pointers += 4
		bytes += uint64(len(s)) + 1
	}
	return ok
}

// Clocks of WASI.
const (
	clockWall      = 0
	clockMonotonic = 1
)

func clockTimeGet(p *Process, a []uint64) uint32 {
	switch uint32(a[0]) {
	case clockWall:
		return errno(p.put64(a[2], uint64(p.clock.Wall().UnixNano())))
	case clockMonotonic:
		return errno(p.put64(a[2], uint64(p.clock.Monotonic())))
	}
	return invalid
}

func clockResGet(p *Process, a []uint64) uint32 {
	if uint32(a[0]) > clockMonotonic {
		return invalid
	}
	return errno(p.put64(a[1], 1))
}

func randomGet(p *Process, a []uint64) uint32 {
	data, good := p.memory.Read(uint32(a[0]), uint32(a[1]))
	if !good {
		return fault
	}
	_, _ = p.random.Read(data) // never fails
	return ok
}

func schedYield(p *Process, _ []uint64) uint32 {
	p.spec.World.Pass(yieldTime)
	return ok
}

func procExit(_ *Process, a []uint64) uint32 { panic(sys.NewExitError(uint32(a[0]))) }

// put32 and put64 write a result; false: the pointer is wrong.
func (p *Process) put32(at uint64, v uint32) bool { return p.memory.WriteUint32Le(uint32(at), v) }

func (p *Process) put64(at uint64, v uint64) bool { return p.memory.WriteUint64Le(uint32(at), v) }

// errno is the result of a call that only a wrong pointer makes fail.
func errno(good bool) uint32 {
	if good {
		return ok
	}
	return fault
}
