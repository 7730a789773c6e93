// SPDX-License-Identifier: Apache-2.0

package port

import (
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// ErrReset is the error of a connection that broke, ErrRefused that of one to a port that nobody serves.
var (
	ErrReset   = fmt.Errorf("connection reset: %w", syscall.ECONNRESET)
	ErrRefused = fmt.Errorf("connection refused: %w", syscall.ECONNREFUSED)
)

// Conn is one connection. Reads and writes may go on in different goroutines.
type Conn struct {
	port  *Port
	id    uint32
	peer  string
	at    string
	hello []byte

	mu       sync.Mutex
	news     sync.Cond // on mu: something below changed
	data     [][]byte
	over     bool  // the peer said its last word
	err      error // broken, or closed here
	said     bool  // this end said its last word
	deaf     bool  // what arrives is thrown away
	deadline time.Time
	alarm    *time.Timer
	onEnd    func() // called once when the peer has gone or the connection broke
}

func newConn(p *Port, id uint32, peer, at string, hello []byte) *Conn {
	c := &Conn{port: p, id: id, peer: peer, at: at, hello: hello}
	c.news.L = &c.mu
	return c
}

// Peer is the host at the other end: the world vouches for it.
func (c *Conn) Peer() string { return c.peer }

// Below finds the Conn below what a listener put around it; nil if there is none.
func Below(c net.Conn) *Conn {
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

// Hello is what the dialling end said with its dial.
func (c *Conn) Hello() []byte { return c.hello }

func (c *Conn) arrived(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && !c.deaf {
		c.data = append(c.data, b)
		c.news.Broadcast()
	}
}

func (c *Conn) heardEnd() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.news.Broadcast()
	c.settle()
}

func (c *Conn) broke(why string) {
	err := ErrReset
	if why == "refused" {
		err = ErrRefused
	}
	c.mu.Lock()
	gone := c.fail(err)
	c.mu.Unlock()
	c.port.forget(c.id)
	if gone != nil {
		gone()
	}
}

// fail is called with the lock held; it returns who wants to know.
func (c *Conn) fail(err error) func() {
	if c.err != nil {
		return nil
	}
	c.err = err
	c.news.Broadcast()
	gone := c.onEnd
	c.onEnd = nil
	return gone
}

// settle forgets a connection of which both ends said their last word. It is called with the lock held.
func (c *Conn) settle() {
	if c.over && c.said {
		c.port.forget(c.id)
	}
}

// OnBreak has f called once when the connection breaks, at once if it is broken already.
func (c *Conn) OnBreak(f func()) {
	c.mu.Lock()
	broken := c.err != nil
	if !broken {
		c.onEnd = f
	}
	c.mu.Unlock()
	if broken {
		f()
	}
}

// ReadPiece gives what arrived together: one Send of the other end. io.EOF follows its last word.
func (c *Conn) ReadPiece() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.wait(); err != nil {
		return nil, err
	}
	b := c.data[0]
	c.data = c.data[1:]
	return b, nil
}

// wait returns once there is data. It is called with the lock held.
func (c *Conn) wait() error {
	for len(c.data) == 0 {
		switch {
		case c.err != nil:
			return c.err
		case c.deaf:
			return net.ErrClosed
		case c.over:
			return io.EOF
		case !c.deadline.IsZero() && !time.Now().Before(c.deadline):
			return os.ErrDeadlineExceeded
		}
		c.news.Wait()
	}
	return nil
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.wait(); err != nil {
		return 0, err
	}
	n := copy(b, c.data[0])
	if c.data[0] = c.data[0][n:]; len(c.data[0]) == 0 {
		c.data = c.data[1:]
	}
	return n, nil
}

// Write implements net.Conn. It never waits.
func (c *Conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	if c.said {
		return 0, net.ErrClosed
	}
	c.port.system.Send(c.id, b)
	return len(b), nil
}

// CloseWrite says that nothing more follows from this end.
func (c *Conn) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.said || c.err != nil {
		return nil
	}
	c.said = true
	c.port.system.Close(c.id, false)
	c.settle()
	return nil
}

// CloseRead says that nothing more is read at this end.
func (c *Conn) CloseRead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deaf, c.data = true, nil
	c.news.Broadcast()
}

// Close implements net.Conn: what was written arrives, and nothing more is read.
func (c *Conn) Close() error {
	if err := c.CloseWrite(); err != nil {
		return err
	}
	c.mu.Lock()
	over := c.over
	c.mu.Unlock()
	if !over {
		return c.Reset()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail(net.ErrClosed)
	return nil
}

// Reset breaks the connection.
func (c *Conn) Reset() error {
	c.mu.Lock()
	if c.err == nil {
		c.port.system.Close(c.id, true)
	}
	c.fail(net.ErrClosed)
	c.mu.Unlock()
	c.port.forget(c.id)
	return nil
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return Addr("local:" + c.at) }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return Addr(c.peer + ":" + c.at) }

// SetDeadline implements net.Conn. Writes never wait, so that it is about reading.
func (c *Conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	c.deadline = t
	if c.alarm != nil {
		c.alarm.Stop()
		c.alarm = nil
	}
	if !t.IsZero() {
		c.alarm = time.AfterFunc(time.Until(t), func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.news.Broadcast()
		})
	}
	c.news.Broadcast()
	return nil
}

var (
	_ net.Conn     = (*Conn)(nil)
	_ net.Listener = (*Listener)(nil)
)
