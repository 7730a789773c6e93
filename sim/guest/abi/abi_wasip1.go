// SPDX-License-Identifier: Apache-2.0

// Package abi is what a simulated process asks of its world besides WASI: connections, and to be heard.
package abi

import (
	"os"
	"unsafe"
)

// WireFD is the descriptor at which frames arrive (sim/network.Socket).
const WireFD = 100

// World implements port.System over the imports of the module.
type World struct{}

// Wire opens the descriptor at which frames arrive. The host says that it does not block, so that reading parks a
// goroutine and no more.
func Wire() *os.File { return os.NewFile(WireFD, "wire") }

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

//go:wasmimport fairlead dial
//go:noescape
func dial(host unsafe.Pointer, hostLen uint32, port unsafe.Pointer, portLen uint32, hello unsafe.Pointer, helloLen uint32) uint32

//go:wasmimport fairlead listen
//go:noescape
func listen(port unsafe.Pointer, portLen uint32)

//go:wasmimport fairlead send
//go:noescape
func send(conn uint32, data unsafe.Pointer, size uint32)

//go:wasmimport fairlead close
//go:noescape
func closeConn(conn, how uint32)

//go:wasmimport fairlead observe
//go:noescape
func observe(kind uint32, data unsafe.Pointer, size uint32)
