// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"io"
	"os"
	"unsafe"
)

// WireFD is the descriptor at which frames arrive (sim/network.Socket).
const WireFD = 100

// Wire opens the descriptor at which frames arrive. The host says that it does not block, so that reading parks a
// goroutine and no more.
func Wire() io.Reader { return os.NewFile(WireFD, "wire") }

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
