// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Types of ICMP messages (RFC 792, RFC 4443).
const (
	echoRequest4, echoReply4 = 8, 0
	echoRequest6, echoReply6 = 128, 129
)

const (
	echoHeader = 8  // type, code, checksum, identifier, sequence number; bytes
	echoToken  = 16 // drawn for each conversation, so that no other one's answer counts; bytes
	echoTimes  = 3  // a lost packet is no silence
)

// echoEvery is the pause between two echoes: all of them fit into the shortest probe.
const echoEvery = 40 * time.Millisecond

// maxErrors is how many errors are read over; each echo may cause a few.
const maxErrors = 32

// lastLook is how long what came in time is still read afterwards: a process that did not get to run must not take
// that for silence.
const lastLook = time.Millisecond

// echoConn carries ICMP messages to and from one address.
type echoConn struct {
	net.Conn
	request, reply byte
}

// dialEcho opens a socket for echoes: one that needs no privilege where the kernel allows it to this group, else a
// raw one.
func dialEcho(to netip.Addr) (*echoConn, error) {
	c := &echoConn{request: echoRequest4, reply: echoReply4}
	network := "ip4:icmp"
	if to.Is6() {
		c.request, c.reply = echoRequest6, echoReply6
		network = "ip6:ipv6-icmp"
	}
	var err error
	if c.Conn, err = dialPing(to); err == nil {
		return c, nil
	}
	if c.Conn, err = net.Dial(network, to.String()); err != nil {
		return nil, fmt.Errorf("open a socket for echoes to %s: %w", to, err)
	}
	return c, nil
}

// dialPing opens a ping socket: the kernel lets nothing but echoes through it.
func dialPing(to netip.Addr) (net.Conn, error) {
	family, protocol := unix.AF_INET, unix.IPPROTO_ICMP
	var address unix.Sockaddr
	if to.Is6() {
		family, protocol = unix.AF_INET6, unix.IPPROTO_ICMPV6
		address = &unix.SockaddrInet6{Addr: to.As16()}
	} else {
		address = &unix.SockaddrInet4{Addr: to.As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM, protocol)
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "ping")
	defer func() { _ = f.Close() }() // net.FileConn works on a copy
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	if err := unix.Connect(fd, address); err != nil {
		return nil, err
	}
	return net.FileConn(f)
}

// echo sends a few echoes and tells whether one came back before ctx ended.
func (c *echoConn) echo(ctx context.Context) bool {
	stop := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Now()) }) // wakes the reader; it can only fail once closed
	defer stop()
	token := make([]byte, echoToken)
	_, _ = rand.Read(token) // it never fails
	answered := make(chan bool, 1)
	go func() { answered <- c.await(ctx, token) }()
	again := time.NewTicker(echoEvery)
	defer again.Stop()
	for n := range uint16(echoTimes) {
		if _, err := c.Write(c.message(n, token)); err != nil && !errors.Is(err, unix.ECONNREFUSED) {
			break // no way there; the reader ends with ctx, or has heard already
		}
		select {
		case yes := <-answered:
			return yes
		case <-again.C:
		}
	}
	return <-answered
}

// await reads until the echo comes or ctx has ended.
func (c *echoConn) await(ctx context.Context, token []byte) bool {
	buffer := make([]byte, 1500)
	late := false
	for errs := 0; errs < maxErrors; {
		n, err := c.read(buffer)
		switch {
		case err == nil:
			if m := buffer[:n]; n == echoHeader+echoToken && m[0] == c.reply && bytes.Equal(m[echoHeader:], token) {
				return true
			}
		case ctx.Err() != nil && late:
			return false
		case ctx.Err() != nil:
			late = true
			if c.SetReadDeadline(time.Now().Add(lastLook)) != nil {
				return false
			}
		case errors.Is(err, net.ErrClosed):
			return false
		default: // what routers, or this machine, had to say about an echo: the next one may get through
			errs++
		}
	}
	<-ctx.Done()
	return false
}

// read gives one ICMP message. A raw IPv4 socket has the IP header in front of it, which ReadFrom takes off.
func (c *echoConn) read(b []byte) (int, error) {
	if raw, ok := c.Conn.(*net.IPConn); ok {
		n, _, err := raw.ReadFrom(b)
		return n, err
	}
	return c.Conn.Read(b)
}

// message is one echo request. The kernel fills in the identifier of a ping socket and the checksum of ICMPv6.
func (c *echoConn) message(sequence uint16, token []byte) []byte {
	m := make([]byte, echoHeader, echoHeader+echoToken)
	m[0] = c.request
	copy(m[4:6], token) // the identifier
	binary.BigEndian.PutUint16(m[6:], sequence)
	m = append(m, token...)
	binary.BigEndian.PutUint16(m[2:], checksum(m))
	return m
}

// checksum is that of RFC 1071.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}
