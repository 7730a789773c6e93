// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is an accepted connection, which holds a place until it is closed.
type Conn struct {
	net.Conn
	limiter *Limiter
	source  string

	// Under the limiter's lock.
	place *place // nil: it left
	stage Stage
	ended bool // it may take no place any more
	limit *time.Timer

	spoken    atomic.Bool // it has sent something
	midway    atomic.Bool // it has sent something since the last write
	late      atomic.Bool // a message did not go on in time
	deadlines sync.Mutex
	writeBy   time.Time // as the server has it
}

// NetConn is the connection below.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// Of finds the Conn below what was put around it, such as TLS; nil if there is none.
func Of(c net.Conn) *Conn {
	for {
		switch inner := c.(type) {
		case *Conn:
			return inner
		case interface{ NetConn() net.Conn }:
			c = inner.NetConn()
		default:
			return nil
		}
	}
}

// Vouch lifts the connection to a Stage: to Guest, or to Known by the name of who proved to be there. It is called after the
// handshake was finished, not while a certificate is looked at, whose key the other end may not have. It may be called again;
// a Stage that is not higher changes nothing. It tells whether the connection may go on; if not it is closed.
func (c *Conn) Vouch(s Stage, name string) bool {
	l := c.limiter
	key := name
	if s != Known {
		key = c.source
	}
	l.mu.Lock()
	if c.ended || s <= c.stage {
		defer l.mu.Unlock()
		return !c.ended
	}
	if s == Known {
		l.acquired.note(c.source, time.Now())
	}
	out, reason := l.moveLocked(c, s, key)
	if s == Guest || s == Known {
		c.limitLocked()
	}
	l.mu.Unlock()
	l.end(out, reason)
	return out != c
}

// Stage is how far the connection has come.
func (c *Conn) Stage() Stage {
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	return c.stage
}

// limitLocked has the connection end after the time that its Stage has.
func (c *Conn) limitLocked() {
	if c.limit != nil {
		c.limit.Stop()
	}
	if within := c.limiter.o.Limits.within(c.stage); within > 0 {
		at := c.stage
		c.limit = time.AfterFunc(within, func() { c.expire(at) })
	}
}

// expire ends the connection if it has not come further.
func (c *Conn) expire(at Stage) {
	l := c.limiter
	l.mu.Lock()
	over := !c.ended && (c.stage == at || c.stage < Guest && at < Guest)
	if over {
		l.leaveLocked(c)
		c.ended = true
	}
	l.mu.Unlock()
	if over {
		l.end(c, reasonSlow)
	}
}

// Read implements net.Conn. Once a message did not go on in time nothing is read any more: who reads the rest to be done with it, as Raft's library
// does with a snapshot, would wait as long again.
func (c *Conn) Read(p []byte) (int, error) {
	if c.late.Load() {
		return 0, os.ErrDeadlineExceeded
	}
	if within := c.limiter.o.Limits.MessageWithin; within > 0 {
		by := time.Time{}
		if c.midway.Load() {
			by = time.Now().Add(within)
		}
		if err := c.Conn.SetReadDeadline(by); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Read(p)
	if c.limiter.o.Limits.MessageWithin > 0 && c.midway.Load() && errors.Is(err, os.ErrDeadlineExceeded) {
		c.late.Store(true)
	}
	if n > 0 {
		c.midway.Store(true)
		if !c.spoken.Swap(true) {
			c.Vouch(Unproven, "")
		}
	}
	return n, err
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	if within := c.limiter.o.Limits.WriteWithin; within > 0 {
		by := time.Now().Add(within)
		c.deadlines.Lock()
		if !c.writeBy.IsZero() && c.writeBy.Before(by) {
			by = c.writeBy
		}
		err := c.Conn.SetWriteDeadline(by)
		c.deadlines.Unlock()
		if err != nil {
			return 0, err
		}
	}
	c.midway.Store(false)
	return c.Conn.Write(p)
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.deadlines.Lock()
	defer c.deadlines.Unlock()
	c.writeBy = t
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.Conn.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// CloseWrite ends what is sent, where the connection can do that.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close gives the place to another connection.
func (c *Conn) Close() error {
	l := c.limiter
	l.mu.Lock()
	if c.stage == Known && !c.ended {
		l.acquired.note(c.source, time.Now())
	}
	l.leaveLocked(c)
	c.ended = true
	if c.limit != nil {
		c.limit.Stop()
	}
	l.mu.Unlock()
	return c.Conn.Close()
}

// abort closes at once, and drops what the other end did not take: the kernel would keep that for minutes.
func (c *Conn) abort() {
	if tcp := tcpBelow(c.Conn); tcp != nil {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close() // it is gone either way
}

// tcpBelow finds the TCP connection below what a listener put around it; nil if there is none.
func tcpBelow(c net.Conn) *net.TCPConn {
	for {
		switch inner := c.(type) {
		case *net.TCPConn:
			return inner
		case interface{ NetConn() net.Conn }:
			c = inner.NetConn()
		default:
			return nil
		}
	}
}
