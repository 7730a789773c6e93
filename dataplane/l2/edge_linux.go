// SPDX-License-Identifier: Apache-2.0

package l2

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path"
	"slices"
	"sync"

	"github.com/mdlayher/packet"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/internal/netns"
)

// LinuxOptions say which interfaces are used, and where.
type LinuxOptions struct {
	// Patterns (as of path.Match) of the interfaces that face clients. Default: Ethernet cards, bonds, teams and VLANs,
	// which are those whose kernel package steer keeps from answering.
	Patterns []string
	// Namespace is a file descriptor of the network namespace to work in; 0 is the process's own.
	Namespace int
}

// Bounds of what is told of a node.
const (
	maxInterfaces = 64
	maxAddresses  = 32 // of one interface
)

// NewLinux gives the machine's edge.
func NewLinux(o LinuxOptions) Edge { return linux{o} }

type linux struct{ o LinuxOptions }

// Interfaces implements Edge. Ports of a bridge or a bond are left out: their master is asked.
func (k linux) Interfaces() (out []Interface, err error) {
	err = netns.Do(k.o.Namespace, func() error {
		links, err := netlink.LinkList()
		if err != nil {
			return fmt.Errorf("list interfaces: %w", err)
		}
		addresses, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
		if err != nil {
			return fmt.Errorf("list addresses: %w", err)
		}
		for _, l := range links {
			if i, ok := k.interfaceOf(l, addresses); ok && len(out) < maxInterfaces {
				out = append(out, i)
			}
		}
		return nil
	})
	return out, err
}

func (k linux) interfaceOf(l netlink.Link, addresses []netlink.Addr) (Interface, bool) {
	a := l.Attrs()
	kind := l.Type()
	if kind == "device" {
		kind = ""
	}
	if a.Flags&net.FlagLoopback != 0 || a.Flags&net.FlagBroadcast == 0 || len(a.HardwareAddr) != 6 || a.MasterIndex != 0 || !k.faces(a.Name, kind) {
		return Interface{}, false
	}
	i := Interface{Name: a.Name, Index: a.Index, MAC: MAC(a.HardwareAddr), Up: a.RawFlags&unix.IFF_UP != 0 && a.RawFlags&unix.IFF_LOWER_UP != 0}
	for _, own := range addresses {
		ip, ok := netip.AddrFromSlice(own.IP)
		if !ok || own.LinkIndex != a.Index || len(i.Addresses) == maxAddresses {
			continue
		}
		bits, _ := own.Mask.Size()
		i.Addresses = append(i.Addresses, netip.PrefixFrom(ip.Unmap(), bits))
	}
	slices.SortFunc(i.Addresses, func(x, y netip.Prefix) int { return x.Addr().Compare(y.Addr()) })
	return i, true
}

func (k linux) faces(name, kind string) bool {
	if len(k.o.Patterns) == 0 {
		return slices.Contains([]string{"", "bond", "team", "vlan"}, kind)
	}
	return slices.ContainsFunc(k.o.Patterns, func(pattern string) bool {
		ok, _ := path.Match(pattern, name) // the configuration was checked
		return ok
	})
}

// Watch implements Edge.
func (k linux) Watch(ctx context.Context, changed func()) error {
	var s *nl.NetlinkSocket
	err := netns.Do(k.o.Namespace, func() (err error) {
		s, err = nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR)
		return err
	})
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	defer s.Close()
	defer context.AfterFunc(ctx, s.Close)()
	changed() // what happened before
	for {
		_, _, err := s.Receive()
		if err != nil && !errors.Is(err, unix.ENOBUFS) {
			return err
		}
		changed()
	}
}

// Open implements Edge. There is a socket for each EtherType: one that takes all would be given frames of VLANs, too,
// without their tags.
func (k linux) Open(i Interface) (Port, error) {
	p := &linuxPort{index: i.Index, groups: memberships{link: i.Index, namespace: k.o.Namespace, by: map[netip.Addr]*member{}}}
	err := netns.Do(k.o.Namespace, func() (err error) {
		if p.arp, err = listen(i, EtherTypeARP, arpFilter()); err != nil {
			return err
		}
		p.nd, err = listen(i, EtherTypeIPv6, ndFilter())
		return err
	})
	if err != nil {
		_ = p.Close() // as far as it was opened
		if errors.Is(err, os.ErrPermission) {
			err = fmt.Errorf("%w; answering ARP and Neighbor Discovery needs CAP_NET_RAW", err)
		}
		return nil, err
	}
	p.frames, p.done = make(chan []byte), make(chan struct{})
	p.reading.Go(func() { p.read(p.arp) })
	p.reading.Go(func() { p.read(p.nd) })
	return p, nil
}

func listen(i Interface, etherType int, filter []bpf.Instruction) (*packet.Conn, error) {
	raw, err := bpf.Assemble(filter)
	if err != nil {
		return nil, err
	}
	// The library takes the interface by index: it need not be visible where this goroutine runs.
	return packet.Listen(&net.Interface{Index: i.Index, Name: i.Name, HardwareAddr: i.MAC[:]}, packet.Raw, etherType, &packet.Config{Filter: raw})
}

// arpFilter takes what can be ARP for IPv4 over Ethernet.
func arpFilter() []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: etherHeader, Size: 4}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0x00010800, SkipFalse: 1},
		bpf.RetConstant{Val: 2048}, bpf.RetConstant{Val: 0},
	}
}

// ndFilter takes neighbor solicitations and advertisements without extension headers.
func ndFilter() []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: etherHeader + 6, Size: 1}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: icmpv6, SkipFalse: 4},
		bpf.LoadAbsolute{Off: etherHeader + ipv6Header, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: neighborAsk, SkipTrue: 1}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: neighborTell, SkipFalse: 1},
		bpf.RetConstant{Val: 2048}, bpf.RetConstant{Val: 0},
	}
}

// linuxPort is two packet sockets, and memberships in groups.
type linuxPort struct {
	index   int
	arp, nd *packet.Conn
	groups  memberships

	frames  chan []byte
	reading sync.WaitGroup
	done    chan struct{} // closed by Close
	closing sync.Once
	failed  sync.Once
	failure error // why reading ended; set before done is closed
}

func (p *linuxPort) read(c *packet.Conn) {
	for {
		b := make([]byte, 2048)
		n, _, err := c.ReadFrom(b)
		if errors.Is(err, unix.ENETDOWN) {
			continue // said once when the interface goes down; it may come up again
		}
		if err != nil {
			p.end(err)
			return
		}
		select {
		case p.frames <- b[:n]:
		case <-p.done:
			return
		}
	}
}

// end ends reading.
func (p *linuxPort) end(err error) {
	p.failed.Do(func() {
		p.failure = err
		close(p.done)
	})
}

// Receive implements Port.
func (p *linuxPort) Receive(b []byte) (int, error) {
	select {
	case frame := <-p.frames:
		return copy(b, frame), nil
	case <-p.done:
		return 0, p.failure
	}
}

// Send implements Port.
func (p *linuxPort) Send(frame []byte) error {
	raw, err := p.arp.SyscallConn()
	if err != nil {
		return err
	}
	to := &unix.SockaddrLinklayer{Ifindex: p.index, Halen: 6}
	copy(to.Addr[:], frame[:6])
	var sent error
	if err := raw.Control(func(fd uintptr) { sent = unix.Sendto(int(fd), frame, unix.MSG_DONTWAIT, to) }); err != nil {
		return err
	}
	return sent
}

// Join implements Port.
func (p *linuxPort) Join(group netip.Addr) error { return p.groups.join(group) }

// Leave implements Port.
func (p *linuxPort) Leave(group netip.Addr) error { return p.groups.leave(group) }

// Close implements Port.
func (p *linuxPort) Close() error {
	var err error
	p.closing.Do(func() {
		if p.done != nil {
			p.end(net.ErrClosed)
		}
		var errs []error
		for _, c := range []*packet.Conn{p.arp, p.nd} {
			if c != nil {
				errs = append(errs, c.Close())
			}
		}
		errs = append(errs, p.groups.close())
		p.reading.Wait()
		err = errors.Join(errs...)
	})
	return err
}
