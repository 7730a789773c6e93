// SPDX-License-Identifier: Apache-2.0

package port

import (
	"net"
	"sync"
)

// backlog is how many connections may wait to be accepted.
const backlog = 1024

// Listener accepts what comes in at one port.
type Listener struct {
	port  string
	ready chan *Conn
	done  chan struct{}
	once  sync.Once
}

// offer hands a connection on, unless too many wait.
func (l *Listener) offer(c *Conn) bool {
	select {
	case <-l.done:
		return false
	default:
	}
	select {
	case l.ready <- c:
		return true
	default:
		return false
	}
}

// AcceptConn gives the next connection.
func (l *Listener) AcceptConn() (*Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) { return l.AcceptConn() }

// Close implements net.Listener: connections that come in from now on are reset.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return Addr(":" + l.port) }
