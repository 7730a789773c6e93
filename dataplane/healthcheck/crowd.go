// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"container/list"
	"net"
	"sync"
)

// connectionsMax bounds the connections of all ports together. One takes some 10 KB.
const connectionsMax = 512

// crowd is the connections of all ports. A new one that finds no room ends the oldest: who asks has heard the answer
// within milliseconds, and who only holds on is not let in anybody's way.
type crowd struct {
	max   int
	ended func() // counts those that were ended

	mu      sync.Mutex
	present list.List // of *guest, the oldest first
}

func newCrowd(limit int, ended func()) *crowd { return &crowd{max: limit, ended: ended} }

// guest is a connection of a crowd.
type guest struct {
	net.Conn
	crowd *crowd
	place *list.Element // nil once it left; under the crowd's lock
}

func (c *crowd) enter(conn net.Conn) net.Conn {
	g := &guest{Conn: conn, crowd: c}
	c.mu.Lock()
	g.place = c.present.PushBack(g)
	var oldest *guest
	if c.present.Len() > c.max {
		oldest = c.present.Front().Value.(*guest)
	}
	c.mu.Unlock()
	if oldest != nil {
		c.ended()
		_ = oldest.Close() // it is gone either way
	}
	return g
}

// Close ends the connection and makes room.
func (g *guest) Close() error {
	g.crowd.mu.Lock()
	if g.place != nil {
		g.crowd.present.Remove(g.place)
		g.place = nil
	}
	g.crowd.mu.Unlock()
	return g.Conn.Close()
}

// listener lets in who connects.
func (c *crowd) listener(l net.Listener) net.Listener { return door{l, c} }

type door struct {
	net.Listener
	crowd *crowd
}

// Accept implements net.Listener.
func (d door) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return d.crowd.enter(conn), nil
}
