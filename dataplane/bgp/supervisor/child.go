// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"net"
	"time"
)

// Child is a process that speaks. Its methods may be called from several goroutines.
type Child interface {
	// Conn is our end of a connection at whose other end the child Serves.
	Conn() net.Conn
	// Gone is closed when it has ended.
	Gone() <-chan struct{}
	// Kill ends it at once, as a crash would, if it has not ended.
	Kill()
	// Memory is how many bytes it has of its own, in memory or swapped out; 0 if that is not known.
	Memory() uint64
	// Reason tells how it ended, and LastWords what it wrote last beside its log, once it is gone.
	Reason() string
	LastWords() string
}

// child is one that a Speaker started.
type child struct {
	Child
	*channel
	generation int // how many there were before
}

// ask asks something, and ends the child if it does not answer within a time. Errors: those of the connection, after which it is not to be
// asked again.
func (c *child) ask(r request, within time.Duration) (a answer, err error) {
	if err = c.conn.SetDeadline(time.Now().Add(within)); err == nil {
		err = c.send(&r)
	}
	if err == nil {
		err = c.receive(&a)
	}
	if err != nil {
		c.Kill()
	}
	return a, err
}

// release gives up a child that has ended, or is about to.
func (c *child) release() {
	<-c.Gone()
	_ = c.conn.Close() // nobody is at the other end
}
