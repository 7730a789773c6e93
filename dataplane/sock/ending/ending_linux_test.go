// SPDX-License-Identifier: Apache-2.0

package ending

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/internal/netnstest"
)

// dialled is a socket that is connected to a server.
type dialled struct {
	fd int
	sock.Record
}

func dial(t *testing.T, network, to string) dialled {
	t.Helper()
	at := netip.MustParseAddrPort(to)
	kind, protocol := syscall.SOCK_DGRAM, uint8(sock.UDP)
	if network[:3] == "tcp" {
		kind, protocol = syscall.SOCK_STREAM, sock.TCP
	}
	family, name := syscall.AF_INET6, syscall.Sockaddr(&syscall.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()})
	if network[3:] == "4" {
		family, name = syscall.AF_INET, &syscall.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	fd, err := syscall.Socket(family, kind|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err == nil {
		if err = syscall.Connect(fd, name); errors.Is(err, syscall.EINPROGRESS) {
			err = nil
		}
	}
	cookie, err2 := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	return dialled{fd, sock.Record{Socket: cookie, Backend: sock.Place{Address: at.Addr(), Port: at.Port(), Protocol: protocol}}}
}

// aborted is whether the socket was ended.
func (d dialled) aborted(t *testing.T) bool {
	t.Helper()
	e, err := unix.GetsockoptInt(d.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		t.Fatal(err)
	}
	return syscall.Errno(e) == syscall.ECONNABORTED
}

// Balancing §16.3: sockets are ended in every network namespace, of either protocol and family: those that are named, while they are connected
// where that was said, and no others.
// Rule: balancing §16.
func TestSocketsAreEndedInEveryNamespace(t *testing.T) {
	pod := netnstest.New(t, "pod")
	folder := t.TempDir()
	if err := os.Symlink(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), pod.FD()), filepath.Join(folder, "cni-1")); err != nil {
		t.Fatal(err)
	}
	e := Ender{Proc: "/proc", Namespaces: folder}
	for name, in := range map[string]func(func() error) error{"here": func(f func() error) error { return f() }, "pod": pod.Do} {
		var end, stay []dialled
		if err := in(func() error {
			four, err1 := net.Listen("tcp4", "127.0.0.1:0")
			six, err2 := net.Listen("tcp6", "[::1]:0")
			if err := errors.Join(err1, err2); err != nil {
				return err
			}
			t.Cleanup(func() { _, _ = four.Close(), six.Close() })
			for network, to := range map[string]string{
				"udp4": "127.0.0.1:9999", "udp6": "[::1]:9999", "udpm": "127.0.0.1:9999", "tcp4": four.Addr().String(), "tcp6": six.Addr().String(), "tcpm": four.Addr().String(),
			} {
				end, stay = append(end, dial(t, network, to)), append(stay, dial(t, network, to))
			}
			moved := dial(t, "udp4", "127.0.0.1:9999")
			moved.Backend.Port = 9998 // it was there, and connected anew since
			stay, end = append(stay, moved), append(end, moved)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		var gone []sock.Record
		for _, d := range end {
			gone = append(gone, d.Record)
		}
		end = end[:len(end)-1]
		for round, want := range []int{len(end), 0} {
			if n, err := e.End(gone); err != nil || n != want {
				t.Errorf("%s, round %d: %d ended (%v), want %d", name, round, n, err, want)
			}
			if round > 0 {
				break
			}
			for _, d := range end {
				if !d.aborted(t) {
					t.Errorf("%s: a socket to %s goes on", name, d.Backend)
				}
			}
		}
		for _, d := range stay {
			if d.aborted(t) {
				t.Errorf("%s: a socket to %s that was not named is ended", name, d.Backend)
			}
		}
	}
}
