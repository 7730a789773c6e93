// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"context"
	"net/netip"

	"fairlead.io/fairlead/dataplane/l2"
	"fairlead.io/fairlead/sim/guest/port"
	"fairlead.io/fairlead/sim/segment/message"
)

// Open gives the edge of the machine that this process runs on.
func Open(p *port.Port, machine string) l2.Edge { return edge{p, machine} }

type edge struct {
	port    *port.Port
	machine string
}

func (e edge) dial(ctx context.Context, hello string) (*port.Conn, error) {
	return e.port.Dial(ctx, e.machine, message.Port, []byte(hello))
}

// Interfaces implements l2.Edge.
func (e edge) Interfaces() (out []l2.Interface, err error) {
	c, err := e.dial(context.Background(), message.List)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }() // it was only read
	b, err := c.ReadPiece()
	if err != nil {
		return nil, err
	}
	all, err := message.Decode(b)
	for _, l := range all {
		out = append(out, l2.Interface{Name: l.Name, Index: l.Index, MAC: l.MAC, Up: l.Up, Addresses: []netip.Prefix{l.Address}})
	}
	return out, err
}

// Watch implements l2.Edge.
func (e edge) Watch(ctx context.Context, changed func()) error {
	c, err := e.dial(ctx, message.Watch)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Reset() })
	defer stop()
	for {
		if _, err := c.ReadPiece(); err != nil {
			return err
		}
		changed()
	}
}

// Open implements l2.Edge.
func (e edge) Open(i l2.Interface) (l2.Port, error) {
	c, err := e.dial(context.Background(), message.Of(i.Name))
	if err != nil {
		return nil, err
	}
	return frames{c}, nil
}

// frames is a link's.
type frames struct{ conn *port.Conn }

// Receive implements l2.Port.
func (f frames) Receive(b []byte) (int, error) {
	frame, err := f.conn.ReadPiece()
	return copy(b, frame), err
}

// Send implements l2.Port.
func (f frames) Send(frame []byte) error {
	_, err := f.conn.Write(frame)
	return err
}

// Join implements l2.Port.
func (frames) Join(netip.Addr) error { return nil }

// Leave implements l2.Port.
func (frames) Leave(netip.Addr) error { return nil }

// Close implements l2.Port.
func (f frames) Close() error { return f.conn.Reset() }
