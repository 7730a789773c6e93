// SPDX-License-Identifier: Apache-2.0

package port

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
)

// System is what the process asks of its kernel.
type System interface {
	Dial(host, port string, hello []byte) uint32
	Listen(port string)
	Send(conn uint32, data []byte)
	Close(conn uint32, broken bool)
}

// Kinds of frames, as sim/network writes them.
const (
	frameData    = 1
	frameEnd     = 2
	frameReset   = 3
	frameInbound = 4
	frameHead    = 9
)

// readSize is how much is read at once.
const readSize = 64 << 10

// Port is the network of one process.
type Port struct {
	system System

	mu        sync.Mutex
	conns     map[uint32]*Conn
	listeners map[string]*Listener
}

// Open begins to read frames from wire; Run must follow.
func Open(system System) *Port {
	return &Port{system: system, conns: map[uint32]*Conn{}, listeners: map[string]*Listener{}}
}

// Run hands frames to their connections until wire ends.
func (p *Port) Run(wire io.Reader) error {
	buffer := make([]byte, 0, readSize)
	for {
		if len(buffer) == cap(buffer) {
			buffer = append(buffer, make([]byte, len(buffer))...)[:len(buffer)]
		}
		n, err := wire.Read(buffer[len(buffer):cap(buffer)])
		if err != nil {
			return fmt.Errorf("read frames: %w", err)
		}
		buffer = buffer[:len(buffer)+n]
		buffer = buffer[:copy(buffer, p.frames(buffer))]
	}
}

// frames takes whole frames off the front and returns the rest.
func (p *Port) frames(b []byte) []byte {
	for len(b) >= frameHead {
		size := int(binary.LittleEndian.Uint32(b[5:]))
		if len(b) < frameHead+size {
			break
		}
		p.frame(binary.LittleEndian.Uint32(b), b[4], b[frameHead:frameHead+size])
		b = b[frameHead+size:]
	}
	return b
}

func (p *Port) frame(id uint32, kind byte, payload []byte) {
	if kind == frameInbound {
		p.inbound(id, payload)
		return
	}
	p.mu.Lock()
	c := p.conns[id]
	p.mu.Unlock()
	if c == nil {
		return
	}
	switch kind {
	case frameData:
		c.arrived(bytes.Clone(payload))
	case frameEnd:
		c.heardEnd()
	case frameReset:
		c.broke(string(payload))
	}
}

func (p *Port) inbound(id uint32, payload []byte) {
	peer, rest, _ := bytes.Cut(payload, []byte{0})
	port, hello, _ := bytes.Cut(rest, []byte{0})
	p.mu.Lock()
	l := p.listeners[string(port)]
	c := p.add(id, string(peer), string(port), bytes.Clone(hello))
	p.mu.Unlock()
	if l == nil || !l.offer(c) {
		_ = c.Reset()
	}
}

// add is called with the lock held.
func (p *Port) add(id uint32, peer, port string, hello []byte) *Conn {
	c := newConn(p, id, peer, port, hello)
	p.conns[id] = c
	return c
}

func (p *Port) forget(id uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, id)
}

// Dial connects to a port of a host. It does not wait for the other end: that nobody is there shows when reading.
func (p *Port) Dial(ctx context.Context, host, port string, hello []byte) (*Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.add(p.system.Dial(host, port, hello), host, port, hello), nil
}

// Listen serves a port of this machine.
func (p *Port) Listen(port string) *Listener {
	l := &Listener{port: port, ready: make(chan *Conn, backlog), done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listeners[port] = l
	p.system.Listen(port)
	return l
}

// Addr is a host or host:port by name.
type Addr string

// Network implements net.Addr.
func (Addr) Network() string { return "tcp" }

// String implements net.Addr.
func (a Addr) String() string { return string(a) }

var _ net.Addr = Addr("")
