// SPDX-License-Identifier: Apache-2.0

//go:build wasip1 || simulated

// Package abi is what a simulated process asks of its world besides what it asks of any system: connections, and to be
// heard. How it asks depends on what it was built for: as a WebAssembly module it imports functions, and as a program
// for this machine it has a runtime that knows of worlds (sim/native).
package abi

import "unsafe"

// World implements port.System.
type World struct{}

// Dial connects to a port of a host; the number of the connection is even.
func (World) Dial(host, port string, hello []byte) uint32 {
	return dial(text(host), uint32(len(host)), text(port), uint32(len(port)), bytes(hello), uint32(len(hello)))
}

// Listen serves a port of this machine.
func (World) Listen(port string) { listen(text(port), uint32(len(port))) }

// Send sends data, which stays the caller's.
func (World) Send(conn uint32, data []byte) { send(conn, bytes(data), uint32(len(data))) }

// Close says the last word on a connection, or breaks it.
func (World) Close(conn uint32, broken bool) {
	how := uint32(0)
	if broken {
		how = 1
	}
	closeConn(conn, how)
}

// Observe tells the world a fact; see sim/guest/fact.
func Observe(kind uint32, data []byte) { observe(kind, bytes(data), uint32(len(data))) }

func text(s string) unsafe.Pointer  { return unsafe.Pointer(unsafe.StringData(s)) }
func bytes(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
