// SPDX-License-Identifier: Apache-2.0

// Package hops tells to which neighbour a router sent each TCP connection, by watching the first packets leave.
//
// It looks at the router's interface from inside, so it knows also of connections that nobody ever answered. A connection
// is named by its source; of connections from the same source the newest counts, and of each its first packet, however often TCP
// tries. Start reading at Watch.
package hops

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// MAC is the link address of a neighbour.
type MAC [6]byte

func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// Watcher knows where connections went. It is safe for concurrent use.
type Watcher struct {
	fd int

	mu   sync.Mutex
	sent map[netip.AddrPort]first

	stop, stopped chan struct{}
	err           error // of reading; written before stopped is closed
}

// first is the first packet of a connection.
type first struct {
	to       MAC
	sequence uint32 // the same when TCP tries again
}

// Watch begins to watch connections to a port as they leave through an Ethernet interface. enter takes a thread, which is
// the watcher's until Close, to the router's network namespace. Nothing is missed once Watch has returned.
func Watch(enter func() error, device string, port uint16) (*Watcher, error) {
	w := &Watcher{sent: map[netip.AddrPort]first{}, stop: make(chan struct{}), stopped: make(chan struct{})}
	opened := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		defer close(w.stopped)
		err := enter()
		if err == nil {
			err = w.open(device, port)
		}
		opened <- err
		if err != nil {
			return
		}
		defer unix.Close(w.fd)
		w.err = w.read()
	}()
	if err := <-opened; err != nil {
		return nil, fmt.Errorf("watch packets: %w", err)
	}
	return w, nil
}

// Close ends watching, and tells what went wrong meanwhile.
func (w *Watcher) Close() error {
	close(w.stop)
	<-w.stopped
	return w.err
}

// Hop tells to whom the newest connection from source was sent, and whether it was sent at all.
func (w *Watcher) Hop(source netip.AddrPort) (neighbor MAC, sent bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	packet, sent := w.sent[source]
	return packet.to, sent
}

// glance is how long a read waits, so that Close need not wait longer.
const glance = 100 * time.Millisecond

// receiveBuffer has room for some ten thousand first packets, should we not be scheduled for seconds.
const receiveBuffer = 16 << 20

func (w *Watcher) open(device string, port uint16) error {
	link, err := net.InterfaceByName(device)
	if err != nil {
		return err
	}
	// No protocol yet: nothing is received before the filter is there.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := prepare(fd, link.Index, port); err != nil {
		_ = unix.Close(fd) // it was never used
		return err
	}
	w.fd = fd
	return nil
}

func prepare(fd, link int, port uint16) error {
	filter, err := firstPackets(port)
	if err != nil {
		return err
	}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, filter); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer); err != nil {
		return err
	}
	timeout := unix.NsecToTimeval(glance.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return err
	}
	return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ALL), Ifindex: link})
}

// networkOrder is htons.
func networkOrder(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}

// Offsets in an Ethernet frame with IPv4.
const (
	offEtherType = 12
	offIP        = 14
	offProtocol  = offIP + 9
	offSource    = offIP + 12
)

// firstPackets lets outgoing IPv4 packets pass that open a TCP connection to the port, and of those the headers.
func firstPackets(port uint16) (*unix.SockFprog, error) {
	const tcpFlags, syn, ack = 13, 0x02, 0x10
	program := []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.PACKET_OUTGOING, SkipTrue: 11},
		bpf.LoadAbsolute{Off: offEtherType, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.ETH_P_IP, SkipTrue: 9},
		bpf.LoadAbsolute{Off: offProtocol, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.IPPROTO_TCP, SkipTrue: 7},
		bpf.LoadMemShift{Off: offIP}, // X = length of the IP header
		bpf.LoadIndirect{Off: offIP + 2, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(port), SkipTrue: 4},
		bpf.LoadIndirect{Off: offIP + tcpFlags, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: syn | ack},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: syn, SkipTrue: 1},
		bpf.RetConstant{Val: 128},
		bpf.RetConstant{Val: 0},
	}
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, err
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}, nil
}

// read takes packets in until Close.
func (w *Watcher) read() error {
	frame := make([]byte, 256)
	for !w.ended() {
		n, _, err := unix.Recvfrom(w.fd, frame, 0)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("watch packets: %w", err)
		}
		if source, sequence, ok := parse(frame[:n]); ok {
			w.note(source, first{MAC(frame[:6]), sequence})
		}
	}
	return nil
}

func (w *Watcher) ended() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

func (w *Watcher) note(source netip.AddrPort, packet first) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if before, ok := w.sent[source]; !ok || before.sequence != packet.sequence {
		w.sent[source] = packet
	}
}

// parse reads source and sequence number of a frame that the filter let pass.
func parse(frame []byte) (source netip.AddrPort, sequence uint32, ok bool) {
	if len(frame) < offIP+20 {
		return source, 0, false
	}
	tcp := offIP + int(frame[offIP]&0xf)*4
	if len(frame) < tcp+8 {
		return source, 0, false
	}
	addr := netip.AddrFrom4([4]byte(frame[offSource : offSource+4]))
	return netip.AddrPortFrom(addr, binary.BigEndian.Uint16(frame[tcp:])), binary.BigEndian.Uint32(frame[tcp+4:]), true
}
