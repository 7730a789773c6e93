// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
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
	typeUpdate       = 2
	typeNotification = 3
	typeKeepalive    = 4
	typeRouteRefresh = 5
)

// hostilePeer is a BGP speaker that sends what it is told to, as bytes, well formed or not. It knows nothing of GoBGP.
type hostilePeer struct {
	t        testing.TB
	address  netip.Addr
	listener net.Listener
}

const neighbourAS = 65001

// listen starts a neighbour at an address of its own.
func listen(t testing.TB, address netip.Addr) *hostilePeer {
	t.Helper()
	l, err := net.Listen("tcp4", netip.AddrPortFrom(address, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &hostilePeer{t, address, l}
}

// peer is the neighbour as a speaker knows it.
func (n *hostilePeer) peer() bgp.Peer {
	return bgp.Peer{
		Name: n.address.String(), Address: n.address, Port: n.listener.Addr().(*net.TCPAddr).AddrPort().Port(), RemoteASN: neighbourAS,
		Families: []bgp.Family{bgp.IPv4, bgp.IPv6},
	}
}

// phase is how far a session has come.
type phase int

const (
	openSent    phase = iota // the speaker has sent its OPEN, and waits for ours
	openConfirm              // it waits for our KEEPALIVE
	established
)

func (p phase) String() string { return [...]string{"OpenSent", "OpenConfirm", "Established"}[p] }

// session waits for the speaker to connect, and takes the session that far. It is closed when the test ends.
func (n *hostilePeer) session(until phase) (*conversation, error) {
	conn, err := n.listener.Accept()
	if err != nil {
		return nil, err
	}
	n.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(testkit.Patience)); err != nil {
		return nil, err
	}
	c := &conversation{conn}
	if err := c.await(typeOpen); err != nil || until == openSent {
		return c, err
	}
	if err := errors.Join(c.send(message(typeOpen, openBody())), c.await(typeKeepalive)); err != nil || until == openConfirm {
		return c, err
	}
	return c, c.send(message(typeKeepalive, nil))
}

// conversation is one session as the neighbour has it.
type conversation struct{ net.Conn }

func (c *conversation) send(b []byte) error {
	_, err := c.Write(b)
	return err
}

// receive gives the type of the next message.
func (c *conversation) receive() (byte, error) {
	var head [19]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return 0, err
	}
	_, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint16(head[16:]))-int64(len(head)))
	return head[18], err
}

func (c *conversation) await(kind byte) error {
	got, err := c.receive()
	if err == nil && got != kind {
		err = fmt.Errorf("a message of type %d instead of %d", got, kind)
	}
	return err
}

// end sends what ends a session in any phase, and waits until the speaker has ended it: by then it has read all that came before.
func (c *conversation) end() error {
	broken := message(typeKeepalive, nil)
	binary.BigEndian.PutUint16(broken[16:], 18) // less than a header (RFC 4271 §6.1)
	if err := c.send(broken); err != nil {
		return nil //nolint:nilerr // it ended the session before
	}
	for {
		_, err := c.receive()
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
		65, 4, 0, 0, neighbourAS >> 8, neighbourAS & 0xff,
	}
	body := []byte{4, neighbourAS >> 8, neighbourAS & 0xff, 0, 90, 192, 0, 2, 254, byte(len(caps) + 2), 2, byte(len(caps))}
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
	return message(typeUpdate, append(body, nlri...))
}
