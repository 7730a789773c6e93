// SPDX-License-Identifier: Apache-2.0

// Package freeport finds TCP ports for servers that are told their port before they listen at it, or listen at it again.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
)

// Ports are drawn below the range from which Linux takes the local ports of outgoing connections (32768 and up): a
// port of that range may be somebody's connection by the time that it is listened at.
const (
	lowest  = 16_384
	highest = 32_767
	tries   = 256
)

// drawn are the ports that this process drew last: whoever it drew one for may not listen there yet, and some servers listen at all
// addresses whatever they are told.
var drawn struct {
	sync.Mutex
	ports map[uint16]bool
}

// fresh tells whether a port is none of those, and makes it one.
func fresh(port uint16) bool {
	drawn.Lock()
	defer drawn.Unlock()
	if drawn.ports[port] {
		return false
	}
	if len(drawn.ports) >= (highest-lowest)/4 || drawn.ports == nil {
		drawn.ports = map[uint16]bool{}
	}
	drawn.ports[port] = true
	return true
}

// Draw returns a port of address that nobody listens at just now, at random, so that processes which draw at the same
// time hardly draw the same. A process draws none of its last thousands again, whatever the address. Errors: the last attempt's, if all failed.
func Draw(address netip.Addr) (uint16, error) {
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
