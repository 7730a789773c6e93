// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/nat"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// Section 13, and 24 row 8: a proxy port at a host's tunnel address is answered by a pod of that host, over TCP and UDP, IPv4 and IPv6,
// to programs of another host, to its pods, to the host itself and to the pod that answers; also in packets as large as they come. The
// family between hosts does not matter.
// Rule: balancing §13.
func TestProxyPortsLeadToPodsOfTheHost(t *testing.T) {
	for _, over6 := range []bool{false, true} {
		t.Run(fmt.Sprintf("over6=%t", over6), func(t *testing.T) {
			l := newLab(t, over6)
			a, b := l.hosts[0], l.hosts[1]
			s := l.state(l.hosts, l.hosts[1:])
			for _, h := range l.hosts {
				if failed := h.apply(s); len(failed) > 0 {
					t.Fatalf("%s: %v", h.name, failed)
				}
			}
			wantMTU := "mtu 1450"
			if over6 {
				wantMTU = "mtu 1430"
			}
			if link := a.in.Run("ip", "link", "show", Interface); !strings.Contains(link, wantMTU) {
				t.Errorf("not %s: %s", wantMTU, link)
			}
			if _, err := a.in.Try("ip", "route", "get", b.podAddress(false).String()); err == nil {
				t.Fatal("the pod is reached without a tunnel")
			}
			for name, from := range map[string]*netnstest.Namespace{"a host": a.in, "a pod": a.pod, "the host itself": b.in, "the pod itself": b.pod} {
				for _, six := range []bool{false, true} {
					to := netip.AddrPortFrom(b.address(six), 10080)
					for network, size := range map[string]int{"tcp": 1 << 20, "udp": 512} {
						if who, err := ask(from, network, to, size, patience); err != nil || who != "n2" {
							t.Errorf("%s to %s over %s: %q, %v", name, to, network, who, err)
						}
					}
					// Of IPv6 nobody on the way cuts a datagram up: both ends have to be told first what fits.
					testkit.Until(t, fmt.Sprintf("large datagrams from %s to %s", name, to), func() bool {
						who, err := ask(from, "udp", to, 4096, time.Second)
						return err == nil && who == "n2"
					})
				}
			}
			if who, err := ask(a.in, "tcp", netip.AddrPortFrom(l.hosts[2].address(false), 10080), 8, patience); err != nil || who != "n3" {
				t.Errorf("the third host: %q, %v", who, err)
			}
		})
	}
}

// A restart of the agent is noticed by nobody, and what is there is adopted: nothing is written when nothing differs.
// Rule: balancing §13.
func TestRestartKeepsConnections(t *testing.T) {
	l := newLab(t, false)
	a, b := l.hosts[0], l.hosts[1]
	s := l.state(l.hosts, l.hosts[1:])
	for _, h := range l.hosts {
		h.apply(s)
	}
	c, err := dial(a.pod, "tcp", netip.AddrPortFrom(b.address(false), 10080), patience)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	echo := func(when, text string) {
		t.Helper()
		buf := make([]byte, 64)
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if n, err := io.ReadFull(c, buf[:len(text)]); err != nil || string(buf[:n]) != text {
			t.Fatalf("%s: %q, %v", when, buf[:n], err)
		}
	}
	if _, err := io.ReadFull(c, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	echo("before", "first")
	index := a.in.Run("cat", "/sys/class/net/lo/ifindex") + a.in.Run("ip", "-d", "link", "show", Interface) + a.in.Run("nft", "-a", "list", "table", "inet", TableName)
	for _, h := range []*host{a, b} {
		h.tunnel.Close()
		h.start()
		h.apply(l.state(l.hosts, l.hosts[1:]))
		if changes, err := h.tunnel.bringAll(); err != nil || changes > 0 {
			t.Errorf("%s: %d changes though nothing differs, %v", h.name, changes, err)
		}
	}
	if after := a.in.Run("cat", "/sys/class/net/lo/ifindex") + a.in.Run("ip", "-d", "link", "show", Interface) + a.in.Run("nft", "-a", "list", "table", "inet", TableName); after != index {
		t.Errorf("a restart made something anew:\n%s\n%s", index, after)
	}
	echo("after a restart", "second")
	// Another host leaves, and one that is still there is not disturbed.
	s = l.state(l.hosts[:2], l.hosts[1:2])
	a.apply(s)
	b.apply(s)
	echo("after another host left", "third")
	if out := a.in.Run("bridge", "fdb", "show", "dev", Interface); strings.Contains(out, "198.51.100.3") || !strings.Contains(out, "198.51.100.2") {
		t.Errorf("entries of hosts: %s", out)
	}
	if out := a.in.Run("ip", "neighbour", "show", "dev", Interface, "nud", "permanent"); strings.Contains(out, "10.250.0.3 ") || !strings.Contains(out, "10.250.0.2 ") {
		t.Errorf("neighbours: %s", out)
	}
}

// S11: what bears our name and is somebody else's stays, and is told; what we made goes without a rest.
// Rule: balancing §13.
func TestCleanupLeavesWhatIsOthers(t *testing.T) {
	l := newLab(t, false)
	a, b := l.hosts[0], l.hosts[1]
	s := l.state(l.hosts, l.hosts[1:])
	before := a.in.Run("ip", "link") + a.in.Run("nft", "list", "ruleset") + a.in.Run("ip", "route")
	a.apply(s)
	if err := Cleanup(a.in.FD()); err != nil {
		t.Fatal(err)
	}
	if err := nat.Cleanup(t.Context(), a.in.FD(), "fairlead-proxy"); err != nil {
		t.Fatal(err)
	}
	if after := a.in.Run("ip", "link") + a.in.Run("nft", "list", "ruleset") + a.in.Run("ip", "route"); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	b.in.Run("ip", "link", "add", Interface, "type", "bridge")
	failed := b.apply(s)
	if len(failed) != 2 || !strings.Contains(failed[0].Why, "somebody else's") || failed[0].Prefix.Addr() != b.address(false) {
		t.Errorf("told %v", failed)
	}
	if err := Cleanup(b.in.FD()); err != nil {
		t.Fatal(err)
	}
	if out := b.in.Run("ip", "-d", "link", "show", Interface); !strings.Contains(out, "bridge") {
		t.Errorf("not ours, and gone: %s", out)
	}
	b.in.Run("ip", "link", "delete", Interface)
	if failed := b.apply(s); len(failed) > 0 {
		t.Errorf("still told %v", failed)
	}
}

// Packets of somebody who is none of the hosts do not come in, nor does what is for anything but proxy ports go on to pods.
// Rule: balancing §13.
func TestTunnelsAreForHostsOnly(t *testing.T) {
	l := newLab(t, false)
	a, b, stranger := l.hosts[0], l.hosts[1], l.hosts[2]
	two := l.state(l.hosts[:2], l.hosts[1:2])
	a.apply(two)
	b.apply(two)
	stranger.apply(l.state(l.hosts, nil)) // it knows of the others, which do not know of it
	serve(b.in, "n2", 9999)               // other ports of the address are the host's
	own := netip.AddrPortFrom(b.address(false), 9999)
	if who, err := ask(a.in, "udp", own, 8, patience); err != nil || who != "n2" {
		t.Errorf("a port of the host itself: %q, %v", who, err)
	}
	if who, err := ask(stranger.in, "udp", own, 8, shortly); err == nil {
		t.Errorf("a stranger got to %q", who)
	}
	a.in.Run("ip", "route", "add", b.podAddress(false).String(), "via", b.address(false).String(), "dev", Interface, "onlink")
	if who, err := ask(a.in, "udp", netip.AddrPortFrom(b.podAddress(false), 8080), 8, shortly); err == nil {
		t.Errorf("a host got to pod %q beside the proxy ports", who)
	}
	if who, err := ask(a.in, "tcp", netip.AddrPortFrom(b.address(false), 10080), 8, patience); err != nil || who != "n2" {
		t.Errorf("and to the proxy port: %q, %v", who, err)
	}
}

// What others do to the interface and the table is put right, at once.
// Rule: balancing §13.
func TestTunnelsArePutRight(t *testing.T) {
	l := newLab(t, false)
	a, b := l.hosts[0], l.hosts[1]
	s := l.state(l.hosts, l.hosts[1:])
	a.apply(s)
	b.apply(s)
	a.tunnel.audit = 50 * time.Millisecond
	running, ended := make(chan struct{}), make(chan error, 1)
	go func() { close(running); ended <- a.tunnel.Run(t.Context()) }()
	<-running
	t.Cleanup(func() { <-ended })
	for what, spoil := range map[string][]string{
		"interface":  {"ip", "link", "delete", Interface},
		"down":       {"ip", "link", "set", Interface, "down"},
		"address":    {"ip", "address", "flush", "dev", Interface},
		"neighbours": {"ip", "neighbour", "flush", "dev", Interface, "nud", "permanent"},
		"table":      {"nft", "delete", "table", "inet", TableName},
		"rules":      {"nft", "flush", "chain", "inet", TableName, "forward"},
		"peers":      {"nft", "flush", "set", "inet", TableName, "peers"},
	} {
		a.in.Run(spoil[0], spoil[1:]...)
		testkit.Until(t, what+" put right", func() bool {
			a.tunnel.mu.Lock()
			defer a.tunnel.mu.Unlock()
			have, err := a.tunnel.edge.Read()
			if err != nil || have == nil || len(Plan(a.tunnel.fitting(), have)) > 0 {
				return false
			}
			changed, err := a.tunnel.edge.Guard(&a.tunnel.want.Rules)
			return err == nil && !changed
		})
		if who, err := ask(a.in, "tcp", netip.AddrPortFrom(b.address(false), 10080), 8, patience); err != nil || who != "n2" {
			t.Errorf("%s: %q, %v", what, who, err)
		}
	}
}
