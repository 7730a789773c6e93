// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// begin starts a TCP connection from source to target in the network namespace of the calling thread, and does not wait
// for it: writing to the file waits. The kernel's SYN is on its way when begin returns.
func begin(source, target netip.AddrPort) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return nil, fmt.Errorf("open socket: %w", err)
	}
	if err := connect(fd, source, target); err != nil {
		_ = unix.Close(fd) // it was never used
		return nil, fmt.Errorf("connect %s to %s: %w", source, target, err)
	}
	return os.NewFile(uintptr(fd), "connection to "+target.String()), nil
}

func connect(fd int, source, target netip.AddrPort) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return err
	}
	if err := unix.Bind(fd, sockaddr(source)); err != nil {
		return err
	}
	if err := unix.Connect(fd, sockaddr(target)); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return err
	}
	return nil
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
}

// Ports that clients draw from, one after the other: the range is used up in ten minutes at one connection per 10 ms, so
// that no port is used twice in a step.
const (
	firstPort = 1100
	lastPort  = 65500
)

// ports hands out source ports in a circle.
type ports struct{ next uint16 }

// portsOf gives each client another place to begin at, so that two runs meet other hashes as well.
func portsOf(client int, seed uint16) *ports {
	const stride = 7919 // prime, so that clients are spread over the circle
	return &ports{next: firstPort + uint16((int(seed)+client*stride)%(lastPort-firstPort))}
}

func (p *ports) draw() uint16 {
	port := p.next
	if p.next++; p.next > lastPort {
		p.next = firstPort
	}
	return port
}
