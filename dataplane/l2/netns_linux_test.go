// SPDX-License-Identifier: Apache-2.0

package l2_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/dataplane/l2"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// segment is two nodes and a client on one bridge:
//
//	client 192.0.2.9 ---+--- bridge ---+--- n1 192.0.2.1
//	       2001:db8::9                 +--- n2 192.0.2.2
//
// Links are called data at the nodes' ends, and have the nodes' names at the bridge's.
type segment struct {
	t              *testing.T
	bridge, client *netnstest.Namespace
	nodes          []*node
}

// node is one that answers by leases that its test grants.
type node struct {
	t  *testing.T
	in *netnstest.Namespace
	l2 *l2.L2
}

// bootTime is CLOCK_BOOTTIME.
type bootTime struct{}

func (bootTime) Now() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano())
}

func (bootTime) After(d time.Duration) <-chan time.Time { return time.After(d) }

func newSegment(t *testing.T) *segment {
	t.Helper()
	s := &segment{t: t, bridge: netnstest.New(t, "bridge"), client: netnstest.New(t, "client")}
	s.bridge.Run("ip", "link", "add", "br0", "type", "bridge")
	s.bridge.Run("ip", "link", "set", "br0", "up")
	s.plug(s.client, "client", "192.0.2.9/24", "2001:db8::9/64")
	for i := 1; i <= 2; i++ {
		n := &node{t: t, in: netnstest.New(t, fmt.Sprintf("n%d", i))}
		n.in.SetSysctl("ipv4/conf/all/arp_ignore", "1") // as steer has it
		s.plug(n.in, fmt.Sprintf("n%d", i), fmt.Sprintf("192.0.2.%d/24", i), fmt.Sprintf("2001:db8::%d/64", i))
		n.run()
		s.nodes = append(s.nodes, n)
	}
	return s
}

func (s *segment) plug(n *netnstest.Namespace, name string, addresses ...string) {
	netnstest.Join(netnstest.Link{In: n, Name: "data", Addresses: addresses}, netnstest.Link{In: s.bridge, Name: name})
	s.bridge.Run("ip", "link", "set", name, "master", "br0")
}

func (n *node) run() {
	n.t.Helper()
	var err error
	n.l2, err = l2.New(l2.Options{
		Edge:  l2.NewLinux(l2.LinuxOptions{Patterns: []string{"data"}, Namespace: n.in.FD()}),
		Clock: bootTime{}, Log: slog.New(slog.NewTextHandler(n.t.Output(), nil)),
	})
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = n.l2.Run(ctx) })
	n.t.Cleanup(func() { cancel(); running.Wait() })
	testkit.Until(n.t, "its link is seen", func() bool {
		links := n.l2.Renew().Links
		return len(links) == 1 && links[0].Up
	})
}

// grant gives a node leases of addresses for a term from now on.
func (n *node) grant(term time.Duration, addresses ...netip.Addr) {
	var leases []l2.Lease
	for i, a := range addresses {
		l := lease(a, uint64(i+1))
		l.Term = term
		leases = append(leases, l)
	}
	n.l2.Grant(n.l2.Renew().Sent, leases)
}

func (n *node) mac() string {
	fields := strings.Fields(n.in.Run("ip", "-o", "link", "show", "dev", "data"))
	for i, f := range fields {
		if f == "link/ether" {
			return fields[i+1]
		}
	}
	n.t.Fatal("no link/ether")
	return ""
}

// neighbour is the card at which a client has an address, empty for none.
func (s *segment) neighbour(a netip.Addr) string {
	fields := strings.Fields(s.client.Run("ip", "neigh", "show", a.String(), "dev", "data"))
	for i, f := range fields {
		if f == "lladdr" {
			return fields[i+1]
		}
	}
	return ""
}

// ask has the client look for an address anew. It tells at which card it is, empty if nobody answers within a second.
func (s *segment) ask(a netip.Addr) (at string) {
	s.t.Helper()
	_, _ = s.client.Try("ip", "neigh", "del", a.String(), "dev", "data") // it may not be there
	for deadline := time.Now().Add(time.Second); at == "" && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		// A datagram to nobody's port: all that matters is the question that comes first.
		_ = s.client.Do(func() error { return datagram(a) })
		at = s.neighbour(a)
	}
	return at
}

// find is ask where somebody does answer, however late.
func (s *segment) find(a netip.Addr) (at string) {
	s.t.Helper()
	testkit.Until(s.t, "an answer about "+a.String(), func() bool {
		at = s.ask(a)
		return at != ""
	})
	return at
}

func datagram(to netip.Addr) error {
	family, sockaddr := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: 9, Addr: to.As16()})
	if to.Is4() {
		family, sockaddr = unix.AF_INET, &unix.SockaddrInet4{Port: 9, Addr: to.As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, nil, 0, sockaddr)
}

func TestKernelsFindTheHolder(t *testing.T) {
	t.Parallel()
	s := newSegment(t)
	for _, a := range []netip.Addr{vip4, vip6} {
		if at := s.ask(a); at != "" {
			t.Fatalf("%s: %s answers without a lease", a, at)
		}
		s.nodes[0].grant(time.Minute, a)
		if at := s.find(a); at != s.nodes[0].mac() {
			t.Errorf("%s is at %q, not at n1 %s", a, at, s.nodes[0].mac())
		}
		// The announcements of a new owner reach those who remember the former one, unasked.
		s.nodes[0].grant(time.Minute)
		s.nodes[1].grant(time.Minute, a)
		testkit.Until(t, a.String()+" is known at n2", func() bool { return s.neighbour(a) == s.nodes[1].mac() })
		s.nodes[1].grant(time.Minute)
	}
}

func TestAHolderThatIsNotRenewedFallsSilent(t *testing.T) {
	t.Parallel()
	s := newSegment(t)
	testkit.Until(t, "an answer under a lease", func() bool { // which on a busy machine may end before anybody asks
		s.nodes[0].grant(500*time.Millisecond, vip4, vip6)
		return s.ask(vip4) != ""
	})
	testkit.Until(t, "the lease ended", func() bool { return len(s.nodes[0].l2.Answering()) == 0 })
	for _, a := range []netip.Addr{vip4, vip6} {
		if at := s.ask(a); at != "" {
			t.Errorf("%s: %s answers after its lease", a, at)
		}
	}
}

func TestLinksAreWatched(t *testing.T) {
	t.Parallel()
	s := newSegment(t)
	n := s.nodes[0]
	up := func() bool { links := n.l2.Renew().Links; return len(links) == 1 && links[0].Up }
	n.grant(time.Minute, vip4, vip6)
	s.bridge.Run("ip", "link", "set", "n1", "down") // the far end: a cable that was pulled
	testkit.Until(t, "the carrier is lost", func() bool { return !up() })
	n.grant(time.Minute, vip4, vip6)
	s.client.Run("ip", "neigh", "replace", vip4.String(), "lladdr", "02:00:00:00:00:77", "dev", "data", "nud", "stale")
	s.bridge.Run("ip", "link", "set", "n1", "up")
	testkit.Until(t, "the address is announced with the carrier", func() bool { return s.neighbour(vip4) == n.mac() })
	// A card that is replaced by another one of its name is opened anew.
	n.in.Run("ip", "link", "del", "data")
	testkit.Until(t, "the card is gone", func() bool { return len(n.l2.Renew().Links) == 0 })
	s.plug(n.in, "n1b", "192.0.2.1/24", "2001:db8::1/64")
	testkit.Until(t, "the card is there", up)
	n.grant(time.Minute, vip4, vip6)
	for _, a := range []netip.Addr{vip4, vip6} {
		if at := s.find(a); at != n.mac() {
			t.Errorf("%s is at %q, not at the new card %s", a, at, n.mac())
		}
	}
}

// groups counts the solicited-node groups that a node is in, of those that begin with ff02::1:ff and then this byte.
func (n *node) groups(begin byte) (count int) {
	n.t.Helper()
	var text []byte
	if err := n.in.Do(func() (err error) {
		text, err = os.ReadFile("/proc/thread-self/net/igmp6")
		return err
	}); err != nil {
		n.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); f[1] == "data" && strings.HasPrefix(f[2], fmt.Sprintf("ff0200000000000000000001ff%02x", begin)) {
			count++
		}
	}
	return count
}

// The kernel bounds what one socket may join: 2,340 groups by its default of today, 365 by its earlier one. A kernel that
// has the bound for each namespace is given the earlier one.
func TestMoreGroupsAreJoinedThanASocketHolds(t *testing.T) {
	t.Parallel()
	const many = 3000
	n := newSegment(t).nodes[0]
	_, _ = n.in.Try("sh", "-c", "echo 20480 > /proc/sys/net/core/optmem_max")
	begin := byte(0x0a)
	for n.groups(begin) > 0 { // the node has an address of its own there, which the kernel draws
		begin++
	}
	var all []netip.Addr
	for a := netip.MustParseAddr(fmt.Sprintf("2001:db8::%x:0", begin)); len(all) < many; a = a.Next() {
		all = append(all, a)
	}
	joined := func(when string, want int) {
		t.Helper()
		if got := n.groups(begin); got != want {
			t.Fatalf("%s: in %d groups, not %d", when, got, want)
		}
	}
	joined("no lease", 0)
	n.grant(time.Minute, all...)
	joined("all", many)
	n.grant(time.Minute, all[many/4:many/2]...)
	joined("a quarter", many/4)
	n.grant(time.Minute, all...)
	joined("all again", many)
	n.grant(time.Minute)
	joined("none", 0)
}
