// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// tuple names one TCP connection of this host with another.
type tuple struct {
	localPort uint16
	remote    netip.AddrPort
}

// errNoSocket means that this process has no such connection (any more).
var errNoSocket = errors.New("no such connection")

// shutdownSocket closes the named connection of this process in both directions, beneath whoever reads and writes it.
// What was written before still arrives, followed by the end of the stream. A connection already gone is no error.
//
// GoBGP hands nobody its connections and takes leave with a NOTIFICATION on every way out that it offers, which makes a
// switch drop our paths. A write after this fails, so that no NOTIFICATION can follow.
func shutdownSocket(t tuple) error {
	err := withSocket(t, func(fd int) error {
		if err := unix.Shutdown(fd, unix.SHUT_RDWR); err != nil && !errors.Is(err, unix.ENOTCONN) {
			return fmt.Errorf("shut down: %w", err)
		}
		return nil
	})
	if errors.Is(err, errNoSocket) {
		return nil
	}
	return err
}

// withSocket calls f with a descriptor of the named connection of this process, which f does not keep. Errors:
// errNoSocket; those of f.
func withSocket(t tuple, f func(fd int) error) error {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return fmt.Errorf("list open files: %w", err)
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if err := ifSocket(fd, t, f); !errors.Is(err, errNoSocket) {
			return err
		}
	}
	return errNoSocket
}

// ifSocket looks at a duplicate of fd, which nobody else can close and give to another connection meanwhile.
func ifSocket(fd int, t tuple, f func(fd int) error) error {
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return errNoSocket // closed since it was listed
	}
	defer unix.Close(dup)
	remote, err := unix.Getpeername(dup)
	if err != nil || addrPort(remote) != t.remote {
		return errNoSocket // not a socket, not connected, or somebody else's
	}
	local, err := unix.Getsockname(dup)
	if err != nil || addrPort(local).Port() != t.localPort {
		return errNoSocket
	}
	return f(dup)
}

func addrPort(a unix.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap().WithZone(zoneOf(a.ZoneId)), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// zoneOf names a zone as addresses do: by the interface, or by its number if that is gone.
func zoneOf(id uint32) string {
	if id == 0 {
		return ""
	}
	if i, err := net.InterfaceByIndex(int(id)); err == nil {
		return i.Name
	}
	return strconv.Itoa(int(id))
}
