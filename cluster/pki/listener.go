// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"time"
)

const (
	// lingerWithin is how long a refused client may take to read why.
	lingerWithin = time.Second
	// lingerBytes is how much of what it still sends is thrown away meanwhile.
	lingerBytes = 64 << 10
)

// Listener accepts connections for a port from plain ones. The handshake happens at the first use, so that a
// slow client holds up nobody else.
func (e *Endpoint) Listener(port Port, plain net.Listener) net.Listener {
	return tls.NewListener(Wrap(plain), e.Server(port))
}

// Wrap makes the connections of a plain listener *Conn, for servers that do TLS themselves.
func Wrap(plain net.Listener) net.Listener { return connListener{plain} }

type connListener struct{ net.Listener }

func (l connListener) Accept() (net.Conn, error) {
	plain, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: plain}, nil
}

// Conn is an accepted connection under TLS. It remembers how the handshake went.
type Conn struct {
	net.Conn
	offer    atomic.Pointer[Membership]
	refused  atomic.Bool
	stranger atomic.Bool
	// kept has this connection among its own, if somebody was admitted.
	kept atomic.Pointer[Clients]
}

// NetConn is the connection below.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// Offer is the membership that the client named in its handshake; the zero value if none.
func (c *Conn) Offer() Membership {
	if m := c.offer.Load(); m != nil {
		return *m
	}
	return Membership{}
}

// Close closes the connection, of a refused client only after a moment. With TLS 1.3 such a client takes the
// handshake for done and is sending its request already; closing at once would answer that with a reset, which
// overtakes the alert that says what is wrong.
func (c *Conn) Close() error {
	if k := c.kept.Load(); k != nil {
		k.remove(c)
	}
	if !c.refused.Load() {
		return c.Conn.Close()
	}
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // if it fails there is nobody to linger for, and reading ends at once
	}
	go func() {
		if c.SetReadDeadline(time.Now().Add(lingerWithin)) == nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(c.Conn, lingerBytes))
		}
		_ = c.Conn.Close()
	}()
	return nil
}
