// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"encoding/binary"
	"math"
	"time"
)

// Sizes and tags of poll_oneoff in WASI preview 1.
const (
	subscriptionSize = 48
	eventSize        = 32

	tagClock = 0
	tagRead  = 1

	absolute = 1 // flag of a clock
)

// pollOneoff is where a process waits. Where nothing has to be waited for, it answers at once.
//
// The runtime waits for ever by leaving out the clock.
func pollOneoff(p *Process, a []uint64) uint32 {
	in, out, count := uint32(a[0]), uint32(a[1]), uint32(a[2])
	subscriptions, good := p.memory.Read(in, count*subscriptionSize)
	events, fits := p.memory.Read(out, count*eventSize)
	if !good || !fits {
		return fault
	}
	if count == 0 {
		return invalid
	}
	deadline, reading, ready := Forever, false, false
	for s := subscriptions; len(s) > 0; s = s[subscriptionSize:] {
		switch {
		case s[8] == tagClock:
			deadline = min(deadline, p.alarm(s))
		case s[8] == tagRead && binary.LittleEndian.Uint32(s[16:]) == wireFile:
			reading = true
		default: // files and streams are always ready
			ready = true
		}
	}
	if !ready && deadline > p.spec.World.Now() && !(reading && len(p.inbox) > 0) {
		p.park(deadline, reading)
	}
	// The guest did not run meanwhile, so its memory has not moved.
	happened := uint32(0)
	for s := subscriptions; len(s) > 0; s = s[subscriptionSize:] {
		if !p.due(s, deadline) {
			continue
		}
		e := events[happened*eventSize:][:eventSize]
		clear(e)
		copy(e, s[:8])
		e[10] = s[8]
		happened++
	}
	return errno(p.put32(a[3], happened))
}

// alarm is the time of the world that the subscription of a clock means.
func (p *Process) alarm(s []byte) time.Duration {
	timeout := binary.LittleEndian.Uint64(s[24:])
	if timeout > math.MaxInt64/4 {
		return Forever
	}
	d := time.Duration(timeout)
	if s[40]&absolute != 0 {
		if binary.LittleEndian.Uint32(s[16:]) == clockWall {
			d -= time.Duration(p.clock.Wall().UnixNano())
		} else {
			d -= p.clock.Monotonic()
		}
	}
	return p.clock.when(max(d, 0))
}

// due says whether what a subscription waits for has happened.
func (p *Process) due(s []byte, deadline time.Duration) bool {
	switch {
	case s[8] == tagClock:
		return deadline <= p.spec.World.Now() // the earliest of the clocks
	case s[8] == tagRead && binary.LittleEndian.Uint32(s[16:]) == wireFile:
		return len(p.inbox) > 0
	}
	return true
}
