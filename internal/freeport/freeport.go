// SPDX-License-Identifier: Apache-2.0

// Package freeport finds TCP ports for servers that are told their port before they listen at it, or listen at it again.
package freeport

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
)

// Ports are drawn below the range from which Linux takes the local ports of outgoing connections (32768 and up): a
// port of that range may be somebody's connection by the time that it is listened at.
const (
	lowest  = 16_384
	highest = 32_767
	tries   = 256
)

// drawn are the ports that this process drew last, and its claims to them: whoever it drew one for may not listen there yet, and some
// servers listen at all addresses whatever they are told.
var drawn struct { //nolint:gochecknoglobals // ports are the process's
	sync.Mutex
	ports map[uint16]io.Closer
	order []uint16 // the oldest first
}

// remembered is how many ports a process does not draw again.
const remembered = (highest - lowest) / 4

// fresh tells whether a port is none of those, and makes it one.
func fresh(port uint16) bool {
	drawn.Lock()
	defer drawn.Unlock()
	if _, own := drawn.ports[port]; own {
		return false
	}
	claim, others := claimed(port)
	if others {
		return false
	}
	if drawn.ports == nil {
		drawn.ports = map[uint16]io.Closer{}
	}
	if len(drawn.order) == remembered {
		_ = drawn.ports[drawn.order[0]].Close() // nobody connects there
		delete(drawn.ports, drawn.order[0])
		drawn.order = drawn.order[1:]
	}
	drawn.ports[port], drawn.order = claim, append(drawn.order, port)
	return true
}

// claimed keeps other processes of this network namespace from drawing a port, or tells that one of them keeps this one from it: of tests that
// run side by side, some would draw a port at which others do not listen yet, in one of some hundred runs. The claim is an abstract socket,
// which ends with the process and leaves no file. Where there are none, chance has to do.
func claimed(port uint16) (claim io.Closer, byOthers bool) {
	if runtime.GOOS != "linux" {
		return io.NopCloser(nil), false
	}
	l, err := net.Listen("unix", fmt.Sprintf("@fairlead-port-%d", port))
	if err != nil {
		return io.NopCloser(nil), errors.Is(err, syscall.EADDRINUSE)
	}
	return l, false
}

// Draw returns a port of address that nobody listens at just now, at random. A process draws none of its last thousands again, whatever the
// address, and on Linux none of those that another process drew. Errors: the last attempt's, if all failed.
func Draw(address netip.Addr) (uint16, error) {
	// A process that is started between the two has a copy of the listener until it runs its own program, and the port is taken that long.
	// Elsewhere the net package takes this lock itself.
	if runtime.GOOS == "linux" {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
	}
	l, err := Listen(address)
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).AddrPort().Port(), l.Close()
}

// Listen listens at a port that Draw would return. Who closes it may listen there again: what the kernel chooses for port
// 0 may be somebody's connection by then.
func Listen(address netip.Addr) (net.Listener, error) {
	last := errors.New("no attempt")
	for range tries {
		port := uint16(lowest + rand.IntN(highest-lowest+1))
		if !fresh(port) {
			continue
		}
		l, err := net.Listen("tcp", netip.AddrPortFrom(address, port).String())
		if err != nil {
			last = err
			continue
		}
		return l, nil
	}
	return nil, fmt.Errorf("find a free port of %s: %w", address, last)
}
