// SPDX-License-Identifier: Apache-2.0

// Package hostile is a BGP neighbour for tests, which sends bytes that are not as they should be. It knows nothing of GoBGP.
package hostile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/internal/testkit"
)

// Types of messages (RFC 4271 §4.1, RFC 2918).
const (
	typeOpen         = 1
	TypeUpdate       = 2 // UPDATE
	typeNotification = 3
	typeKeepalive    = 4
	typeRouteRefresh = 5
)

// Peer is a neighbour that sends what it is told to, well formed or not.
type Peer struct {
	t        testing.TB
	address  netip.Addr
	listener net.Listener
}

// ASN is the neighbour's AS number.
const ASN = 65001

// holdTime is longer than any test: a neighbour sends a KEEPALIVE where it belongs to the handshake, and none after it.
const holdTime = time.Hour

// Listen starts a neighbour at an address of its own.
func Listen(t testing.TB, address netip.Addr) *Peer {
	t.Helper()
	l, err := net.Listen("tcp4", netip.AddrPortFrom(address, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &Peer{t, address, l}
}

// Peer is the neighbour as a speaker knows it.
func (n *Peer) Peer() bgp.Peer {
	return bgp.Peer{
		Name: n.address.String(), Address: n.address, Port: n.listener.Addr().(*net.TCPAddr).AddrPort().Port(), RemoteASN: ASN,
		HoldTime: holdTime, Families: []bgp.Family{bgp.IPv4, bgp.IPv6},
	}
}

// Phase is how far a session has come.
type Phase int

const (
	OpenSent    Phase = iota // the speaker has sent its OPEN, and waits for ours
	OpenConfirm              // it waits for our KEEPALIVE
	Established
)

func (p Phase) String() string { return [...]string{"OpenSent", "OpenConfirm", "Established"}[p] }

// Session waits for the speaker to connect, and takes the session that far. It is closed when the test ends. A speaker that gave a connection
// up before that, since it had to wait for a processor, dials again.
func (n *Peer) Session(until Phase) (*Conversation, error) {
	for end := time.Now().Add(testkit.Patience); ; {
		conn, err := n.listener.Accept()
		if err != nil {
			return nil, err
		}
		n.t.Cleanup(func() { conn.Close() })
		c, err := converse(conn, until)
		if err == nil || time.Now().After(end) {
			return c, err
		}
		conn.Close()
	}
}

// Dial connects to a speaker from an address, and takes the session that far. The caller closes it. Errors: those of the connection, also where
// the speaker does not know the address.
func Dial(ctx context.Context, from netip.Addr, to netip.AddrPort, until Phase) (*Conversation, error) {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	conn, err := d.DialContext(ctx, "tcp4", to.String())
	if err != nil {
		return nil, err
	}
	c, err := converse(conn, until)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// converse takes a session to a phase. The speaker sends its OPEN without waiting for ours. GoBGP 4.8 forgets a connection where it waits for a
// processor for a second before it sends that, and leaves it open: whoever dialled is told in time to dial again.
func converse(conn net.Conn, until Phase) (*Conversation, error) {
	if err := conn.SetDeadline(time.Now().Add(testkit.Patience / 4)); err != nil {
		return nil, err
	}
	c := &Conversation{conn}
	if err := c.await(typeOpen); err != nil {
		return c, err
	}
	if err := conn.SetDeadline(time.Now().Add(testkit.Patience)); err != nil || until == OpenSent {
		return c, err
	}
	if err := errors.Join(c.Send(message(typeOpen, openBody())), c.await(typeKeepalive)); err != nil || until == OpenConfirm {
		return c, err
	}
	return c, c.Send(message(typeKeepalive, nil))
}

// Conversation is one session as the neighbour has it.
type Conversation struct{ net.Conn }

// Send sends bytes. Errors: those of the connection.
func (c *Conversation) Send(b []byte) error {
	_, err := c.Write(b)
	return err
}

// Receive gives the type of the next message.
func (c *Conversation) Receive() (byte, error) {
	var head [19]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return 0, err
	}
	_, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint16(head[16:]))-int64(len(head)))
	return head[18], err
}

func (c *Conversation) await(kind byte) error {
	got, err := c.Receive()
	if err == nil && got != kind {
		err = fmt.Errorf("a message of type %d instead of %d", got, kind)
	}
	return err
}

// End sends what ends a session in any phase, and waits until the speaker has ended it: by then it has read all that came before.
func (c *Conversation) End() error {
	broken := message(typeKeepalive, nil)
	binary.BigEndian.PutUint16(broken[16:], 18) // less than a header (RFC 4271 §6.1)
	// It may be taken for a part of a message that is longer than what was sent of it; so may what follows, up to its end.
	if err := c.Send(append(broken, make([]byte, 4096)...)); err != nil {
		return nil //nolint:nilerr // it ended the session before
	}
	for {
		_, err := c.Receive()
		var timeout net.Error
		switch {
		case errors.As(err, &timeout) && timeout.Timeout():
			return errors.New("the session goes on after a message of 18 bytes")
		case err != nil:
			return nil
		}
	}
}

func message(kind byte, body []byte) []byte {
	out := make([]byte, 19, 19+len(body))
	for i := range 16 {
		out[i] = 0xff
	}
	binary.BigEndian.PutUint16(out[16:], uint16(19+len(body)))
	out[18] = kind
	return append(out, body...)
}

// openBody is an OPEN with the families of the neighbour's peer, AS numbers of four bytes, route refresh and graceful restart.
func openBody() []byte {
	caps := []byte{
		1, 4, 0, 1, 0, 1, // IPv4 unicast
		1, 4, 0, 2, 0, 1, // IPv6 unicast
		2, 0, // route refresh
		64, 2, 0, 0, // graceful restart, of nothing
		65, 4, 0, 0, ASN >> 8, ASN & 0xff,
	}
	body := binary.BigEndian.AppendUint16([]byte{4, ASN >> 8, ASN & 0xff}, uint16(holdTime/time.Second))
	body = append(body, 192, 0, 2, 254, byte(len(caps)+2), 2, byte(len(caps)))
	return append(body, caps...)
}

// attribute is one path attribute of an UPDATE as it is on the wire (RFC 4271 §4.3).
func attribute(flags, kind byte, value ...byte) []byte {
	if len(value) > 255 {
		return append([]byte{flags | 0x10, kind, byte(len(value) >> 8), byte(len(value))}, value...)
	}
	return append([]byte{flags, kind, byte(len(value))}, value...)
}

// update is an UPDATE.
func update(withdrawn, nlri []byte, attributes ...[]byte) []byte {
	body := binary.BigEndian.AppendUint16(nil, uint16(len(withdrawn)))
	body = append(body, withdrawn...)
	length := 0
	for _, a := range attributes {
		length += len(a)
	}
	body = binary.BigEndian.AppendUint16(body, uint16(length))
	for _, a := range attributes {
		body = append(body, a...)
	}
	return message(TypeUpdate, append(body, nlri...))
}
