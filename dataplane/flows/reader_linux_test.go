// SPDX-License-Identifier: Apache-2.0

package flows

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// Connections from a client are counted, and those of the node itself are not. One of which no packet came for a while is
// open and not busy, and one that was closed is not there.
//
//	client 203.0.113.2 --- 203.0.113.1 node, which has 192.0.2.10 and 2001:db8::10
func TestReaderCountsConnections(t *testing.T) {
	from, node := netnstest.New(t, "client"), netnstest.New(t, "node")
	netnstest.Join(
		netnstest.Link{In: from, Name: "wan", Addresses: []string{"203.0.113.2/24"}},
		netnstest.Link{In: node, Name: "ext", Addresses: []string{"203.0.113.1/24", "192.0.2.10/32"}})
	from.Run("ip", "route", "add", "default", "via", "203.0.113.1")
	node.Feed("table inet t {\n chain c {\n type filter hook prerouting priority 0\n ct state new accept\n }\n}\n", "nft", "-f", "-")
	serve(node)
	reader := Reader{NetNS: node.FD()}
	expect := func(what string, want Count) {
		t.Helper()
		var got Count
		testkit.Until(t, what+fmt.Sprintf(": %+v", want), func() bool {
			var err error
			if got, err = reader.Count(t.Context(), []netip.Addr{vip, vip6}); err != nil {
				t.Fatal(err)
			}
			return got == want
		})
	}
	expect("at first", Count{})
	dial(t, from)
	second := dial(t, from)
	dial(t, node)
	expect("two of the client's", Count{2, 2})
	_ = second.Close()
	expect("one was closed", Count{1, 1})
	timeout := "netfilter/nf_conntrack_tcp_timeout_established"
	seconds, err := strconv.Atoi(strings.TrimSpace(node.Sysctl(timeout)))
	if err != nil {
		t.Fatal(err)
	}
	node.SetSysctl(timeout, strconv.Itoa(seconds+60)) // as if the last packet had come a minute ago
	expect("quiet", Count{1, 0})
	ctx, end := context.WithCancel(t.Context())
	end()
	if _, err := reader.Count(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
	reader.SysNet = t.TempDir()
	if _, err := reader.Count(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "connection tracking is not there") {
		t.Errorf("without: %v", err)
	}
}

func serve(in *netnstest.Namespace) {
	in.Serve(":80", func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }) // until the other end closes
}

func dial(t *testing.T, in *netnstest.Namespace) net.Conn {
	t.Helper()
	c, err := in.Dial("tcp", "192.0.2.10:80", 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
