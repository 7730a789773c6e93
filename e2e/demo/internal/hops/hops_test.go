// SPDX-License-Identifier: Apache-2.0

package hops_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"fairlead.io/fairlead/e2e/demo/internal/hops"
	"fairlead.io/fairlead/e2e/demo/internal/sandbox"
	"fairlead.io/fairlead/internal/testkit"
)

var noSandbox error

func TestMain(m *testing.M) {
	code, ran, err := sandbox.Enter()
	if ran && err == nil {
		os.Exit(code)
	}
	noSandbox = err
	os.Exit(m.Run())
}

// A router sends one address to a machine that is there, and another to one that is not:
//
//	us 198.51.100.2 ── router ── lan ── 192.0.2.11  (203.0.113.1)
//	                               ╳    192.0.2.12  (203.0.113.2), whose link address is known and leads nowhere
func TestFirstPacketsNameTheirNextHopAnsweredOrNot(t *testing.T) {
	if noSandbox != nil {
		if os.Getenv("FAIRLEAD_REQUIRE_ROOT") == "1" {
			t.Fatal(noSandbox)
		}
		t.Skip(noSandbox)
	}
	const us, router, node = sandbox.Namespace(""), sandbox.Namespace("router"), sandbox.Namespace("node")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(router.Make())
	check(node.Make())
	check(us.IP("link add eth0 type veth peer name outside netns router", "address add 198.51.100.2/24 dev eth0", "link set eth0 up",
		"route add default via 198.51.100.1"))
	check(router.IP("address add 198.51.100.1/24 dev outside", "link set outside up",
		"link add lan type veth peer name eth0 netns node", "address add 192.0.2.1/24 dev lan", "link set lan up",
		"route add 203.0.113.1 via 192.0.2.11", "route add 203.0.113.2 via 192.0.2.12",
		"neigh add 192.0.2.12 lladdr 02:00:00:00:00:0c dev lan"))
	check(node.IP("link set eth0 address 02:00:00:00:00:0b", "link set eth0 up", "address add 192.0.2.11/24 dev eth0",
		"address add 203.0.113.1/32 dev eth0", "route add default via 192.0.2.1"))
	check(router.Sysctl("net.ipv4.ip_forward=1"))
	check(router.IP("link set outside up"))

	watcher, err := hops.Watch(router.Enter, "lan", 80)
	check(err)
	defer func() { check(watcher.Close()) }()
	for _, c := range []struct {
		to      string
		port    int
		refused bool
		want    string // empty: not watched
	}{
		{"203.0.113.1", 80, true, "02:00:00:00:00:0b"},
		{"203.0.113.2", 80, false, "02:00:00:00:00:0c"},
		{"203.0.113.1", 81, true, ""},
	} {
		source := newSource()
		dial(t, source, netip.AddrPortFrom(netip.MustParseAddr(c.to), uint16(c.port)), c.refused)
		if c.want != "" {
			testkit.Until(t, "packet", func() bool { _, sent := watcher.Hop(source); return sent })
		}
		if name, sent := hop(watcher, source); sent != (c.want != "") || sent && name != c.want {
			t.Errorf("%s port %d went to %s (%t), want %q", c.to, c.port, name, sent, c.want)
		}
	}

	// The machine that is not there loses its address to the other one, to which TCP gets when it tries again.
	lost, to := newSource(), netip.MustParseAddrPort("203.0.113.2:80")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		dial(t, lost, to, true)
	}()
	testkit.Until(t, "packet", func() bool { _, sent := watcher.Hop(lost); return sent })
	check(node.IP("address add 203.0.113.2/32 dev eth0"))
	check(router.IP("route replace 203.0.113.2 via 192.0.2.11"))
	<-ended
	after := newSource()
	dial(t, after, to, true)
	testkit.Until(t, "packet behind the second try", func() bool { _, sent := watcher.Hop(after); return sent })
	if name, _ := hop(watcher, lost); name != "02:00:00:00:00:0c" {
		t.Errorf("after the second try the first packet went to %s", name)
	}
	dial(t, lost, to, true) // another connection
	testkit.Eventually(t, "next hop of the newest connection", func() error {
		if name, _ := hop(watcher, lost); name != "02:00:00:00:00:0b" {
			return fmt.Errorf("it went to %s", name)
		}
		return nil
	})
}

func hop(w *hops.Watcher, source netip.AddrPort) (name string, sent bool) {
	mac, sent := w.Hop(source)
	return mac.String(), sent
}

// ports are of the test's connections.
var ports = 20000

func newSource() netip.AddrPort {
	ports++
	return netip.MustParseAddrPort(fmt.Sprintf("198.51.100.2:%d", ports))
}

// dial opens a connection that is refused, or that nobody answers.
func dial(t *testing.T, source, to netip.AddrPort, refused bool) {
	t.Helper()
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(source), Timeout: testkit.Patience}
	if !refused {
		d.Timeout = 500 * time.Millisecond
	}
	conn, err := d.Dial("tcp4", to.String())
	if err == nil {
		conn.Close()
		t.Errorf("%s answered", to)
		return
	}
	if e, ok := err.(net.Error); refused == (ok && e.Timeout()) {
		t.Errorf("connect to %s: %v", to, err)
	}
}
