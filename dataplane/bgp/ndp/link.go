// SPDX-License-Identifier: Apache-2.0

package ndp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/ipv6"
)

const (
	// eager is how often we solicit and advertise while nobody was heard, or the interface is not there.
	eager = time.Second
	// steady is how often we do once somebody was.
	steady = 10 * time.Second
)

// Groups of a link.
var (
	allNodes   = &net.IPAddr{IP: net.ParseIP("ff02::1")}
	allRouters = &net.IPAddr{IP: net.ParseIP("ff02::2")}
)

// Link is an interface with one router at its other end.
type Link struct {
	name    string
	changed func()

	mu    sync.Mutex
	heard heard
	err   error // why it does not work now
}

// New is the link behind an interface. changed is called, on Run's goroutines, when Neighbour gives something else than before.
func New(name string, changed func()) *Link { return &Link{name: name, changed: changed} }

// Neighbour is the link-local address of the router, with the interface as its zone.
//
// Errors: ErrNobody; ErrSeveral while none of them was there alone; why the interface cannot be used.
func (l *Link) Neighbour() (netip.Addr, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, err := l.heard.neighbour()
	switch {
	case err != nil && l.err != nil:
		return netip.Addr{}, l.err
	case err != nil:
		return netip.Addr{}, fmt.Errorf("interface %s: %w", l.name, err)
	}
	return a.WithZone(l.name), nil
}

// Run advertises and listens until ctx ends. An interface that is gone, or not there yet, is tried again.
func (l *Link) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := l.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		l.fail(fmt.Errorf("interface %s: %w", l.name, err))
		select {
		case <-ctx.Done():
		case <-time.After(eager):
		}
	}
}

func (l *Link) fail(err error) {
	l.mu.Lock()
	changed := err != nil && (l.err == nil || l.err.Error() != err.Error()) && !l.heard.now.IsValid()
	l.err = err
	l.mu.Unlock()
	if changed {
		l.changed()
	}
}

// serve runs the link while its interface is there.
func (l *Link) serve(ctx context.Context) error {
	at, err := net.InterfaceByName(l.name)
	if err != nil {
		return err
	}
	c, err := listen(at)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { c.Close() })
	asked := make(chan struct{}, 1)
	failed := make(chan error, 1)
	go func() { failed <- l.listen(c, at, asked) }()
	for {
		if err := send(c, at); err != nil {
			return err
		}
		l.fail(nil)
		select {
		case err := <-failed:
			return err
		case <-asked: // by many at once, perhaps: they share an answer
			time.Sleep(eager / 10)
		case <-time.After(l.pause()):
		}
	}
}

func (l *Link) pause() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.heard.at) == 0 {
		return eager
	}
	return steady
}

// listen opens a socket for messages between routers of a link.
func listen(at *net.Interface) (*ipv6.PacketConn, error) {
	raw, err := net.ListenPacket("ip6:ipv6-icmp", "::")
	if err != nil {
		return nil, fmt.Errorf("open ICMPv6 socket: %w (needs CAP_NET_RAW)", err)
	}
	c := ipv6.NewPacketConn(raw)
	var only ipv6.ICMPFilter
	only.SetAll(true)
	only.Accept(ipv6.ICMPTypeRouterSolicitation)
	only.Accept(ipv6.ICMPTypeRouterAdvertisement)
	for _, err := range []error{
		c.SetICMPFilter(&only), c.SetControlMessage(ipv6.FlagHopLimit|ipv6.FlagInterface, true),
		c.SetMulticastLoopback(false), c.JoinGroup(at, allRouters),
	} {
		if err != nil {
			_ = c.Close()
			return nil, fmt.Errorf("set up ICMPv6 socket: %w", err)
		}
	}
	return c, nil
}

// send solicits, and advertises.
func send(c *ipv6.PacketConn, at *net.Interface) error {
	over := &ipv6.ControlMessage{HopLimit: 255, IfIndex: at.Index}
	if _, err := c.WriteTo(advertisement(at.HardwareAddr), over, allNodes); err != nil {
		return fmt.Errorf("advertise: %w", err)
	}
	if _, err := c.WriteTo(solicitation(at.HardwareAddr), over, allRouters); err != nil {
		return fmt.Errorf("solicit: %w", err)
	}
	return nil
}

// listen takes in what comes over the link.
func (l *Link) listen(c *ipv6.PacketConn, at *net.Interface, asked chan<- struct{}) error {
	b := make([]byte, 1500)
	for {
		n, over, from, err := c.ReadFrom(b)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		if over == nil || over.IfIndex != at.Index {
			continue
		}
		switch read(b[:n], over.HopLimit) {
		case typeSolicitation:
			select {
			case asked <- struct{}{}:
			default:
			}
		case typeAdvertisement:
			if a, ok := netip.AddrFromSlice(from.(*net.IPAddr).IP); ok && a.IsLinkLocalUnicast() {
				l.hear(a)
			}
		}
	}
}

func (l *Link) hear(from netip.Addr) {
	l.mu.Lock()
	changed := l.heard.hear(from, time.Now())
	l.mu.Unlock()
	if changed {
		l.changed()
	}
}
