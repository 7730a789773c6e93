// SPDX-License-Identifier: Apache-2.0

package netnstest

import (
	"context"
	"io"
	"net"
	"time"
)

// Listen listens inside, until the test ends.
func (n *Namespace) Listen(network, address string) (l net.Listener) {
	n.t.Helper()
	if err := n.Do(func() (err error) { l, err = net.Listen(network, address); return err }); err != nil {
		n.t.Fatalf("%s: %v", n.name, err)
	}
	n.t.Cleanup(func() { _ = l.Close() }) // a test that closed it wanted it so
	return l
}

// ListenPacket is Listen for datagrams.
func (n *Namespace) ListenPacket(network, address string) (c net.PacketConn) {
	n.t.Helper()
	if err := n.Do(func() (err error) { c, err = net.ListenPacket(network, address); return err }); err != nil {
		n.t.Fatalf("%s: %v", n.name, err)
	}
	n.t.Cleanup(func() { _ = c.Close() })
	return c
}

// Serve has each TCP connection to an address inside handled by itself, and then closed, until the test ends or the listener is closed.
func (n *Namespace) Serve(address string, handle func(net.Conn)) net.Listener {
	n.t.Helper()
	l := n.Listen("tcp", address)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				handle(c)
				_ = c.Close()
			}()
		}
	}()
	return l
}

// ServePacket answers each datagram to a UDP address inside, as Serve does.
func (n *Namespace) ServePacket(address string, answer func(datagram []byte, from net.Addr) []byte) {
	n.t.Helper()
	c := n.ListenPacket("udp", address)
	go func() {
		for buffer := make([]byte, 64<<10); ; {
			size, from, err := c.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(answer(buffer[:size], from), from) // who left hears nothing
		}
	}()
}

// Say is a handler that says a word.
func Say(word string) func(net.Conn) {
	return func(c net.Conn) { _, _ = io.WriteString(c, word) } // who left hears nothing
}

// Dial connects from inside, within a time.
func (n *Namespace) Dial(network, address string, within time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return n.DialContext(ctx, network, address)
}

// DialContext is that of a net.Dialer, from inside.
func (n *Namespace) DialContext(ctx context.Context, network, address string) (c net.Conn, err error) {
	err = n.Do(func() (err error) { c, err = (&net.Dialer{}).DialContext(ctx, network, address); return err })
	return c, err
}
