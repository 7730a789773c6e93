// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// caller is who made a call, by the connection that it came over.
type caller struct {
	recordID string
	conn     net.Conn
}

type connKey struct{}

// withConn has the requests of a connection know it.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

func callerOf(ctx context.Context, recordID string) *caller {
	conn, _ := ctx.Value(connKey{}).(net.Conn)
	return &caller{recordID: recordID, conn: conn}
}

// waits tells whether the caller still holds its end of the connection. The kernel is asked, which knows of a close before
// whoever closed can send anything else; the server's goroutine may hear of it after the caller's next call came.
func (c *caller) waits() bool {
	socket, ok := c.conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false // closed at this end
	}
	const established = 1 // TCP_ESTABLISHED of the kernel's tcp_states.h
	open := false
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		open = err == nil && info.State == established
	})
	return err == nil && open
}
