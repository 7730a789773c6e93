// SPDX-License-Identifier: Apache-2.0

package lab

import (
	wire "encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/internal/netnstest"
)

// network is the order of bytes on the wire.
var network = wire.BigEndian

// Claim is a frame that says at which card an address is: an ARP packet that it is the sender of (RFC 826), or a
// neighbor advertisement (RFC 4861).
type Claim struct {
	At      time.Time // when the kernel had it, however late it is read
	Address netip.Addr
	MAC     string
}

// Wire is everything that is claimed about some addresses on a segment, read from the ports of its bridge in the order
// in which the frames came.
type Wire struct {
	of []netip.Addr

	mu     sync.Mutex
	claims []Claim
	err    error
}

// tap begins to read all frames that enter a bridge.
func tap(t testing.TB, bridge *netnstest.Namespace, of []netip.Addr) *Wire {
	t.Helper()
	w := &Wire{of: of}
	const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8
	fd := -1
	if err := bridge.Do(func() (err error) {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
		return err
	}); err != nil {
		t.Fatalf("read the segment: %v", err)
	}
	if err := errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000}),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
	); err != nil {
		t.Fatal(err)
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		w.read(fd, end)
	}()
	t.Cleanup(func() {
		close(end)
		<-ended
		_ = unix.Close(fd)
	})
	return w
}

func (w *Wire) read(fd int, end chan struct{}) {
	b, more := make([]byte, 2048), make([]byte, 256)
	for {
		select {
		case <-end:
			return
		default:
		}
		n, told, _, from, err := unix.Recvmsg(fd, b, more, 0)
		link, ok := from.(*unix.SockaddrLinklayer)
		switch {
		case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		case err != nil:
			w.mu.Lock()
			w.err = err
			w.mu.Unlock()
			return
		case ok && link.Pkttype != unix.PACKET_OUTGOING: // each frame once: where it enters
			if a, mac, ok := claimOf(b[:n]); ok && slices.Contains(w.of, a) {
				w.mu.Lock()
				w.claims = append(w.claims, Claim{stampOf(more[:told]), a, mac})
				w.mu.Unlock()
			}
		}
	}
}

// stampOf is the kernel's time stamp among what it tells of a frame; of the wall clock, so that it may be compared with time.Now.
func stampOf(told []byte) time.Time {
	messages, err := unix.ParseSocketControlMessage(told)
	if err != nil {
		return time.Now()
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= 16 {
			return time.Unix(int64(wire.NativeEndian.Uint64(m.Data)), int64(wire.NativeEndian.Uint64(m.Data[8:])))
		}
	}
	return time.Now()
}

// claimOf reads what a frame claims.
func claimOf(f []byte) (a netip.Addr, mac string, ok bool) {
	switch {
	case len(f) >= 42 && network.Uint16(f[12:]) == unix.ETH_P_ARP:
		return netip.AddrFrom4([4]byte(f[28:32])), net.HardwareAddr(f[22:28]).String(), true
	case len(f) >= 78 && network.Uint16(f[12:]) == unix.ETH_P_IPV6 && f[20] == unix.IPPROTO_ICMPV6 && f[54] == 136:
		return netip.AddrFrom16([16]byte(f[62:78])), net.HardwareAddr(f[6:12]).String(), true
	}
	return netip.Addr{}, "", false
}

// Claims are those about an address since a time, in the order of the wire.
func (w *Wire) Claims(a netip.Addr, since time.Time) (out []Claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	const astray = time.Second // by how much frames that two processors took in are out of order, at most
	for i := len(w.claims) - 1; i >= 0 && since.Sub(w.claims[i].At) < astray; i-- {
		if c := w.claims[i]; c.Address == a && !c.At.Before(since) {
			out = append(out, c)
		}
	}
	slices.Reverse(out)
	return out
}

// First is when a node first claimed an address since a time; the zero Time for never.
func (w *Wire) First(a netip.Addr, n *Node, since time.Time) time.Time {
	for _, c := range w.Claims(a, since) {
		if c.MAC == n.MAC {
			return c.At
		}
	}
	return time.Time{}
}

// Silence is the longest time in which nobody claimed an address, since a time and until now.
func (w *Wire) Silence(a netip.Addr, since time.Time) (longest time.Duration) {
	last := since
	for _, c := range w.Claims(a, since) {
		longest, last = max(longest, c.At.Sub(last)), c.At
	}
	return max(longest, time.Since(last))
}

// Turns are the cards that claimed an address since a time, each once for every time that it took over: more turns than
// owners are two owners at once.
func (w *Wire) Turns(a netip.Addr, since time.Time) []string { return turns(w.Claims(a, since)) }

func turns(claims []Claim) (out []string) {
	for _, c := range claims {
		if len(out) == 0 || out[len(out)-1] != c.MAC {
			out = append(out, c.MAC)
		}
	}
	return out
}

// Err is why nothing is read any more; nil while all is.
func (w *Wire) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// ask puts questions for addresses on the wire until end is closed, as a kernel that looks for them.
func (n *Neighbour) ask(addresses []netip.Addr, every time.Duration, end chan struct{}) error {
	card, err := net.InterfaceByName("data")
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		for _, a := range addresses {
			if err := unix.Sendto(fd, n.question(card.HardwareAddr, a), 0, &unix.SockaddrLinklayer{Ifindex: card.Index}); err != nil {
				return err
			}
		}
		select {
		case <-ticks.C:
		case <-end:
			return nil
		}
	}
}

// question is the frame that asks for an address.
func (n *Neighbour) question(mac net.HardwareAddr, a netip.Addr) []byte {
	if a.Is4() {
		f := slices.Concat([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, mac, []byte{8, 6, 0, 1, 8, 0, 6, 4, 0, 1}, mac, n.Four.AsSlice(), make([]byte, 6))
		return append(f, a.AsSlice()...)
	}
	t := a.As16()
	group := [16]byte{0xff, 2, 11: 1, 12: 0xff, 13: t[13], 14: t[14], 15: t[15]}
	m := slices.Concat([]byte{135, 0, 0, 0, 0, 0, 0, 0}, t[:], []byte{1, 1}, mac)
	var sum uint32
	for b := slices.Concat(n.Six.AsSlice(), group[:], []byte{0, 0, 0, byte(len(m)), 0, 0, 0, 58}, m); len(b) > 0; b = b[2:] {
		sum += uint32(network.Uint16(b))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	network.PutUint16(m[2:], ^uint16(sum))
	head := []byte{0x86, 0xdd, 0x60, 0, 0, 0, 0, byte(len(m)), 58, 255}
	return slices.Concat([]byte{0x33, 0x33, 0xff, t[13], t[14], t[15]}, mac, head, n.Six.AsSlice(), group[:], m)
}

// String tells a claim in a message.
func (c Claim) String() string {
	return fmt.Sprintf("%s %s is at %s", c.At.Format("05.000"), c.Address, c.MAC)
}
