// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// flight is one request on its way out, over one connection or, where a kept one turns out to be closed, several. It
// knows whether any byte of it was written, and sees to it that none is written any more once that has been asked.
type flight struct {
	late func() bool

	mu      sync.Mutex
	writing int  // writes that have not returned
	written bool // a byte at least
	landed  bool // there is an answer: the connection was of use
	sealed  bool
}

// begin tells whether bytes may be written now. If so, end follows.
func (f *flight) begin() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.landed: // what TLS has to say at the end
	case f.sealed:
		return errors.New("the call is over")
	case f.late():
		return errLate
	}
	f.writing++
	return nil
}

// end notes how many bytes were written.
func (f *flight) end(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writing--
	f.written = f.written || n > 0
}

// land notes that there is an answer.
func (f *flight) land() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.landed = true
}

// seal ends the flight, and tells whether anything of it was written.
func (f *flight) seal() (written bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sealed = true
	return f.written || f.writing > 0
}

// astray tells whether something was written that nobody answered.
func (f *flight) astray() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return (f.written || f.writing > 0) && !f.landed
}

// conn is a connection to a driver.
type conn struct {
	net.Conn
	flight atomic.Pointer[flight] // the newest request on it
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	f := c.flight.Load()
	if f == nil {
		return c.Conn.Write(p)
	}
	if err := f.begin(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	f.end(n)
	return n, err
}

// Close implements net.Conn. What waits to be sent of a request that nobody answered is thrown away: the kernel would go on
// trying for minutes, and the driver might hear of it long after the call was over for us.
func (c *conn) Close() error {
	if f := c.flight.Load(); f != nil && f.astray() {
		if tcp, ok := c.Conn.(interface{ SetLinger(sec int) error }); ok {
			_ = tcp.SetLinger(0) // it fails on connections that are closed already
		}
	}
	return c.Conn.Close()
}

// under finds the connection below TLS.
func under(c net.Conn) (*conn, bool) {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = t.NetConn()
	}
	out, ok := c.(*conn)
	return out, ok
}
