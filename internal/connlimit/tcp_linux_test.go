// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hidden puts something around each connection before it gets to the limits, as the Raft port does.
type hidden struct{ net.Listener }

func (h hidden) Accept() (net.Conn, error) {
	c, err := h.Listener.Accept()
	return wrapped{c}, err
}

// The kernel ends a connection whose other end is gone without a word within ten seconds, whether anything is on its way or not.
func TestKernelNoticesThatPeersAreGone(t *testing.T) {
	for name, around := range map[string]func(net.Listener) net.Listener{
		"plain":   func(l net.Listener) net.Listener { return l },
		"wrapped": func(l net.Listener) net.Listener { return hidden{l} },
	} {
		t.Run(name, func(t *testing.T) {
			plain, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer plain.Close()
			client, err := net.Dial("tcp", plain.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			served, err := Limit(around(plain), Options{Limits: few}).Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer served.Close()
			raw, err := tcpBelow(served).SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			if err := raw.Control(func(fd uintptr) {
				get := func(level, option int) time.Duration {
					v, err := unix.GetsockoptInt(int(fd), level, option)
					if err != nil {
						t.Fatal(err)
					}
					return time.Duration(v)
				}
				idle, interval, count := get(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE), get(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL), get(unix.IPPROTO_TCP, unix.TCP_KEEPCNT)
				unacknowledged := get(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) * time.Millisecond
				if on := get(unix.SOL_SOCKET, unix.SO_KEEPALIVE); on != 1 || (idle+interval*count)*time.Second > 10*time.Second {
					t.Errorf("keep-alive is %d: %d s, then %d times %d s", on, idle, count, interval)
				}
				if unacknowledged <= 0 || unacknowledged > 10*time.Second {
					t.Errorf("what is sent may be unacknowledged for %v", unacknowledged)
				}
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}
