// SPDX-License-Identifier: Apache-2.0

//go:build simulated && !wasip1

package abi

import (
	"io"
	"unsafe"
)

// Wire is where frames arrive.
func Wire() io.Reader { return wire{} }

type wire struct{}

// Read implements io.Reader: it waits until there are frames.
func (wire) Read(b []byte) (int, error) { return int(read(bytes(b), uint32(len(b)))), nil }

// The runtime has these (sim/native).

//go:noescape
func read(to unsafe.Pointer, size uint32) uint32

//go:noescape
func dial(host unsafe.Pointer, hostLen uint32, port unsafe.Pointer, portLen uint32, hello unsafe.Pointer, helloLen uint32) uint32

//go:noescape
func listen(port unsafe.Pointer, portLen uint32)

//go:noescape
func send(conn uint32, data unsafe.Pointer, size uint32)

//go:noescape
func closeConn(conn, how uint32)

//go:noescape
func observe(kind uint32, data unsafe.Pointer, size uint32)
