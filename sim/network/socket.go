// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/binary"
	"slices"
)

// Kinds of frames, as a process reads them.
const (
	FrameData    byte = 1 // payload: data
	FrameEnd     byte = 2
	FrameReset   byte = 3 // payload: the reason, if there is one
	FrameInbound byte = 4 // a connection came in. Payload: peer, port and hello, a zero byte between them
)

// frameHead is the length of what stands before the payload: connection (4 bytes), kind (1), length (4).
const frameHead = 9

// Socket is a process's way to the network: it turns system calls into connections, and what arrives into frames.
// The process dials under numbers from 1 up that are even; connections that came in have odd ones.
type Socket struct {
	n       *Network
	machine string
	deliver func(frame []byte)
	conns   map[uint32]*Conn
	order   []uint32 // of conns, as they were made
	ports   []string
	dialled uint32
	inbound uint32
	gone    bool
}

// Attach joins a process on a machine. Frames go to deliver, which owns them.
func (n *Network) Attach(machine string, deliver func(frame []byte)) *Socket {
	return &Socket{n: n, machine: machine, deliver: deliver, conns: map[uint32]*Conn{}}
}

// Dial connects to a port and returns the number of the connection.
func (s *Socket) Dial(host, port string, hello []byte) uint32 {
	s.dialled += 2
	s.add(s.dialled, s.n.Dial(s.machine, host, port, slices.Clone(hello)))
	return s.dialled
}

// Listen serves a port of the machine.
func (s *Socket) Listen(port string) {
	s.ports = append(s.ports, port)
	s.n.Listen(s.machine, port, func(c *Conn) {
		id := s.inbound*2 + 1
		s.inbound++
		payload := make([]byte, 0, len(c.Peer())+len(c.Port())+len(c.Hello())+2)
		payload = append(append(payload, c.Peer()...), 0)
		payload = append(append(payload, c.Port()...), 0)
		s.frame(id, FrameInbound, append(payload, c.Hello()...))
		s.add(id, c)
	})
}

// Send sends data, which stays the caller's.
func (s *Socket) Send(id uint32, b []byte) {
	if c := s.conns[id]; c != nil {
		c.Send(slices.Clone(b))
	}
}

// Close says the last word on a connection, or breaks it.
func (s *Socket) Close(id uint32, broken bool) {
	c := s.conns[id]
	switch {
	case c == nil:
	case broken:
		c.Reset()
	default:
		c.End()
	}
}

// Detach is what the kernel does when the process has ended: connections are reset, ports free.
func (s *Socket) Detach() {
	s.gone = true
	for _, port := range s.ports {
		s.n.Close(s.machine, port)
	}
	s.ports = nil
	for _, id := range s.order {
		if c := s.conns[id]; c != nil {
			c.Reset()
		}
	}
	s.conns, s.order = map[uint32]*Conn{}, nil
}

func (s *Socket) add(id uint32, c *Conn) {
	if len(s.order) > 64 && len(s.order) > 2*len(s.conns) {
		s.order = slices.DeleteFunc(s.order, func(id uint32) bool { return s.conns[id] == nil })
	}
	s.conns[id], s.order = c, append(s.order, id)
	c.give = func() { delete(s.conns, id) }
	c.Handle(
		func(b []byte) { s.frame(id, FrameData, b) },
		func(broken bool) {
			if broken {
				s.frame(id, FrameReset, []byte(c.Why()))
				return
			}
			s.frame(id, FrameEnd, nil)
		})
}

func (s *Socket) frame(id uint32, kind byte, payload []byte) {
	if s.gone {
		return
	}
	f := make([]byte, 0, frameHead+len(payload))
	f = binary.LittleEndian.AppendUint32(f, id)
	f = append(f, kind)
	f = binary.LittleEndian.AppendUint32(f, uint32(len(payload)))
	s.deliver(append(f, payload...))
}
