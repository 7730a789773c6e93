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
		source := dial(t, netip.AddrPortFrom(netip.MustParseAddr(c.to), uint16(c.port)), c.refused)
		got, sent := watcher.Hop(source)
		for deadline := time.Now().Add(5 * time.Second); c.want != "" && !sent && time.Now().Before(deadline); got, sent = watcher.Hop(source) {
			time.Sleep(time.Millisecond)
		}
		if name := net.HardwareAddr(got[:]).String(); sent != (c.want != "") || sent && name != c.want {
			t.Errorf("%s port %d went to %s (%t), want %q", c.to, c.port, name, sent, c.want)
		}
	}
}

// ports are of the test's connections.
var ports = 20000

// dial opens a connection that is refused, or that nobody answers, and gives its source.
func dial(t *testing.T, to netip.AddrPort, refused bool) netip.AddrPort {
	t.Helper()
	ports++
	source := netip.MustParseAddrPort(fmt.Sprintf("198.51.100.2:%d", ports))
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(source), Timeout: 500 * time.Millisecond}
	conn, err := d.Dial("tcp4", to.String())
	if err == nil {
		conn.Close()
		t.Fatalf("%s answered", to)
	}
	if e, ok := err.(net.Error); refused == (ok && e.Timeout()) {
		t.Fatalf("connect to %s: %v", to, err)
	}
	return source
}
