// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package program

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"fairlead.io/fairlead/internal/socktest"
)

// newClientApart makes a client in a cgroup, and in a network namespace of its own, whose packets go nowhere:
//
//	client ── nowhere ── void (a pair, asked for by nobody; default route of both families)
//
// It can be asked what is on the wire.
func (l *lab) newClientApart(in *socktest.Lab) *client {
	c := startClient(l.t, in, func(c *exec.Cmd) error {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNET
		return c.Start()
	})
	if r := c.do(call{Op: "go apart"}); r.Error != "" {
		l.t.Fatal(r.Error)
	}
	return c
}

// goApart sets up the namespace that this process was started in.
func goApart() error {
	for _, line := range []string{
		"link set lo up", "link add nowhere type veth peer name void", "link set nowhere arp off", "link set nowhere up", "link set void up", "addr add 10.200.0.1/16 dev nowhere", "addr add 2001:db8:200::1/64 dev nowhere nodad",
		"route add default dev nowhere", "-6 route add default dev nowhere",
	} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", line, err, out)
		}
	}
	return nil
}

// wires are what a client keeps to see packets: the socket that sees them, and sockets of datagrams that are not connected.
type wires struct {
	tap     int
	sockets map[string]int
}

// onWire makes a call, and gives where its first packet is about to go.
func (w *wires) onWire(c call) (r result, err error) {
	if w.sockets == nil {
		if w.tap, err = openTap(); err != nil {
			return r, err
		}
		w.sockets = map[string]int{}
	}
	family, kind, to, err := socketOf(c)
	if err != nil {
		return r, err
	}
	connected := c.Slot == 0
	key := fmt.Sprint(c.Net, c.Slot)
	fd, kept := w.sockets[key]
	if connected || !kept {
		if fd, err = syscall.Socket(family, kind|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0); err != nil {
			return r, err
		}
		// Also those that stay have their port before they send, since errors show no packet.
		local := syscall.Sockaddr(&syscall.SockaddrInet4{})
		if family == syscall.AF_INET6 {
			local = &syscall.SockaddrInet6{}
		}
		if err := syscall.Bind(fd, local); err != nil {
			return r, err
		}
	}
	if connected {
		defer syscall.Close(fd)
		if err = syscall.Connect(fd, to); err == nil && kind == syscall.SOCK_DGRAM {
			_, err = syscall.Write(fd, []byte("?"))
		}
	} else {
		w.sockets[key] = fd
		err = syscall.Sendto(fd, []byte("?"), 0, to)
	}
	if err != nil && !errors.Is(err, syscall.EINPROGRESS) {
		return r, err
	}
	port, err := localPort(fd)
	if err != nil {
		return r, err
	}
	r.Peer, err = w.seen(kind, port)
	return r, err
}

func socketOf(c call) (family, kind int, to syscall.Sockaddr, err error) {
	family = syscall.AF_INET6
	if strings.HasSuffix(c.Net, "4") {
		family = syscall.AF_INET
	}
	kind = syscall.SOCK_STREAM
	if strings.HasPrefix(c.Net, "udp") {
		kind = syscall.SOCK_DGRAM
	}
	if family == syscall.AF_INET {
		if !c.To.Addr().Is4() {
			return 0, 0, nil, fmt.Errorf("%s to %s", c.Net, c.To)
		}
		return family, kind, &syscall.SockaddrInet4{Port: int(c.To.Port()), Addr: c.To.Addr().As4()}, nil
	}
	return family, kind, &syscall.SockaddrInet6{Port: int(c.To.Port()), Addr: c.To.Addr().As16()}, nil
}

func localPort(fd int) (uint16, error) {
	name, err := syscall.Getsockname(fd)
	switch a := name.(type) {
	case *syscall.SockaddrInet4:
		return uint16(a.Port), err
	case *syscall.SockaddrInet6:
		return uint16(a.Port), err
	}
	return 0, err
}

// openTap gives a socket that sees the packets of the interface.
func openTap() (int, error) {
	link, err := net.InterfaceByName("nowhere")
	if err != nil {
		return 0, err
	}
	every := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, syscall.ETH_P_ALL))
	fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, int(every))
	if err != nil {
		return 0, err
	}
	wait := syscall.NsecToTimeval(int64(20 * time.Second))
	return fd, errors.Join(syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &wait),
		syscall.Bind(fd, &syscall.SockaddrLinklayer{Protocol: every, Ifindex: link.Index}))
}

// seen gives where the next packet goes that is from a port.
func (w *wires) seen(kind int, from uint16) (netip.AddrPort, error) {
	b := make([]byte, 2048)
	protocol := byte(syscall.IPPROTO_UDP)
	if kind == syscall.SOCK_STREAM {
		protocol = syscall.IPPROTO_TCP
	}
	for {
		n, _, err := syscall.Recvfrom(w.tap, b, 0)
		if err != nil {
			return netip.AddrPort{}, fmt.Errorf("see packets: %w", err)
		}
		to, port, of, ok := parsePacket(b[:n])
		if ok && of == protocol && port == from {
			return to, nil
		}
	}
}

// parsePacket reads a packet of IP without extensions.
func parsePacket(b []byte) (to netip.AddrPort, from uint16, protocol byte, ok bool) {
	var address []byte
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		address, protocol, b = b[16:20], b[9], b[int(b[0]&15)*4:]
	case len(b) >= 40 && b[0]>>4 == 6:
		address, protocol, b = b[24:40], b[6], b[40:]
	}
	a, ok := netip.AddrFromSlice(address)
	if !ok || len(b) < 4 {
		return to, 0, 0, false
	}
	return netip.AddrPortFrom(a, binary.BigEndian.Uint16(b[2:])), binary.BigEndian.Uint16(b), protocol, true
}
