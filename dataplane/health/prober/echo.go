// SPDX-License-Identifier: Apache-2.0

//go:build linux

package prober

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

	"fairlead.io/fairlead/dataplane/health"
)

// Types of ICMP messages (RFC 792, RFC 4443).
const (
	echoRequest4, echoReply4 = 8, 0
	echoRequest6, echoReply6 = 128, 129
)

const (
	echoHeader = 8  // type, code, checksum, identifier, sequence number; bytes
	echoToken  = 16 // drawn for each probe, so that no other one's answer counts; bytes
	mostRead   = 1000
)

// echo probes by an ICMP echo, over a socket that needs no privilege where the kernel allows it to this group, else over a raw one.
func (p Prober) echo(ctx context.Context, t health.Target) error {
	to := t.At.Addr()
	request, reply := byte(echoRequest4), byte(echoReply4)
	if to.Is6() {
		request, reply = echoRequest6, echoReply6
	}
	var c net.Conn
	if err := p.inside(func() (err error) {
		c, err = dialEcho(ctx, to)
		return err
	}); err != nil {
		return err
	}
	defer c.Close()
	token := make([]byte, echoToken)
	_, _ = rand.Read(token) // it never fails
	if _, err := c.Write(message(request, token)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Now()) }) // wakes the reader; it can only fail once closed
	defer stop()
	buffer := make([]byte, 1500)
	for range mostRead { // a raw socket hears answers to others as well
		n, err := read(c, buffer)
		if err != nil {
			return err
		}
		if m := buffer[:n]; n == echoHeader+echoToken && m[0] == reply && bytes.Equal(m[echoHeader:], token) {
			return nil
		}
	}
	return fmt.Errorf("%w: %d answers came that were for others", errHost, mostRead)
}

// read gives one ICMP message. A raw IPv4 socket has the IP header in front of it, which ReadFrom takes off.
func read(c net.Conn, b []byte) (int, error) {
	if raw, ok := c.(*net.IPConn); ok {
		n, _, err := raw.ReadFrom(b)
		return n, err
	}
	return c.Read(b)
}

// dialEcho opens a socket for echoes.
func dialEcho(ctx context.Context, to netip.Addr) (net.Conn, error) {
	c, ping := dialPing(to)
	if ping == nil {
		return c, nil
	}
	if !errors.Is(ping, unix.EACCES) && !errors.Is(ping, unix.EPERM) {
		return nil, ping
	}
	network := "ip4:icmp"
	if to.Is6() {
		network = "ip6:ipv6-icmp"
	}
	c, raw := (&net.Dialer{}).DialContext(ctx, network, to.String())
	if errors.Is(raw, unix.EPERM) {
		return nil, fmt.Errorf("%w: ICMP needs CAP_NET_RAW, or the agent's group in net.ipv4.ping_group_range: %w", errHost, raw)
	}
	return c, raw
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
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), "ping")
	defer func() { _ = f.Close() }() // net.FileConn works on a copy
	if err := unix.Connect(fd, address); err != nil {
		return nil, os.NewSyscallError("connect", err)
	}
	return net.FileConn(f)
}

// message is an echo request. Ping sockets fill identifier and, like IPv6, the checksum in.
func message(kind byte, token []byte) []byte {
	m := make([]byte, echoHeader, echoHeader+echoToken)
	m[0] = kind
	copy(m[4:], token[:4])
	m = append(m, token...)
	binary.BigEndian.PutUint16(m[2:], checksum(m))
	return m
}

// checksum is RFC 1071's.
func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	sum = sum>>16 + sum&0xffff
	sum += sum >> 16
	return ^uint16(sum)
}
