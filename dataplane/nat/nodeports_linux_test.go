// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

var (
	node4 = netip.MustParseAddr("203.0.113.1")
	node6 = netip.MustParseAddr("2001:db8:c::1")
)

// newNodePortLab is a lab whose node serves node ports at the addresses that face the client.
func newNodePortLab(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	l.nodePorts = prefixes("203.0.113.0/24", "2001:db8:c::/64")
	l.nat = l.newNAT()
	return l
}

// published is web with node ports, TCP 30080 and UDP 30053.
func published(pods ...int) *desired.Service {
	s := web(pods...)
	s.Frontends = []desired.Frontend{tcp80, udp53}
	s.Frontends[0].NodePort, s.Frontends[1].NodePort = 30080, 30053
	return s
}

// wantSources compares what pods saw.
func wantSources(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for pod, source := range want {
		if got[pod] != source {
			t.Errorf("%s: %s saw %s, want %s", what, pod, got[pod], source)
		}
	}
}

// K2, K11, K22, K35, K42: the node's address and a node port lead to every endpoint, from outside, from the node itself and
// from pods, one that reaches itself too; sources are kept where answers come back by this node whatever the client's.
// Rule: K2.
func TestNodePortsLeadToEveryEndpoint(t *testing.T) {
	l := newNodePortLab(t)
	l.apply(published(1, 2, 3))
	all := []string{"pod1", "pod2", "pod3"}
	for _, c := range []struct {
		from, network string
		to            netip.AddrPort
		want          map[string]string
	}{
		{"client", "tcp", at(node4, 30080), map[string]string{"pod1": "203.0.113.2", "pod2": "203.0.113.2", "pod3": "10.0.3.1"}},
		{"client", "udp", at(node4, 30053), map[string]string{"pod1": "203.0.113.2", "pod3": "10.0.3.1"}},
		{"client", "tcp", at(node6, 30080), map[string]string{"pod1": "2001:db8:c::2", "pod3": "fd00:0:0:3::1"}},
		{"client", "udp", at(node6, 30053), map[string]string{"pod2": "2001:db8:c::2", "pod3": "fd00:0:0:3::1"}},
		{"node", "tcp", at(node4, 30080), map[string]string{"pod1": "10.0.1.1", "pod3": "10.0.3.1"}},
		{"node", "udp", at(node6, 30053), map[string]string{"pod2": "fd00:0:0:2::1"}},
		{"pod1", "tcp", at(node4, 30080), map[string]string{"pod1": "10.0.1.1", "pod2": "10.0.1.2", "pod3": "10.0.3.1"}},
		{"pod1", "udp", at(node6, 30053), map[string]string{"pod1": "fd00:0:0:1::1", "pod2": "fd00:0:0:1::2", "pod3": "fd00:0:0:3::1"}},
		// Beside them, service addresses do what they did.
		{"pod1", "tcp", at(vip4, 80), map[string]string{"pod1": "10.0.1.1", "pod2": "10.0.1.2", "pod3": "10.0.1.2"}},
		{"client", "tcp", at(vip6, 80), map[string]string{"pod1": "2001:db8:c::2", "pod3": "fd00:0:0:3::1"}},
	} {
		wantSources(t, fmt.Sprintf("%s, %s to %s", c.from, c.network, c.to), l.sources(c.from, c.network, c.to, all...), c.want)
	}
	l.apply(published(3))
	if pod, _ := l.must(l.client, "tcp", at(node4, 30080)); pod != "pod3" {
		t.Errorf("a node without an endpoint has %s answer, want pod3", pod)
	}
}

// K2: a Service that has no address of ours is served by its node ports all the same, in the families that it says, and leaves
// nothing behind.
// Rule: K2.
func TestNodePortsOfServicesWithoutAnAddress(t *testing.T) {
	l := newNodePortLab(t)
	s := published(1, 3)
	s.Addresses, s.NodePortsIPv4 = nil, true
	l.apply(s)
	for _, c := range []struct {
		from    string
		network string
		want    map[string]string
	}{
		{"client", "tcp", map[string]string{"pod1": "203.0.113.2", "pod3": "10.0.3.1"}},
		{"node", "tcp", map[string]string{"pod1": "10.0.1.1", "pod3": "10.0.3.1"}},
		{"pod1", "tcp", map[string]string{"pod1": "10.0.1.1", "pod3": "10.0.3.1"}},
		{"client", "udp", map[string]string{"pod1": "203.0.113.2", "pod3": "10.0.3.1"}},
	} {
		port := map[string]uint16{"tcp": 30080, "udp": 30053}[c.network]
		wantSources(t, c.from+", "+c.network, l.sources(c.from, c.network, at(node4, port), "pod1", "pod3"), c.want)
	}
	l.want("a family that the Service is not of", l.client, "tcp", at(node6, 30080), "refused")
	l.apply()
	l.want("a Service that is gone", l.client, "tcp", at(node4, 30080), "refused")
}

// K2, K19, K22, K23, K29, K37: a node port does what the Service's policy says; its source ranges are for service addresses.
// Rule: K2.
func TestNodePortsHeedThePolicy(t *testing.T) {
	l := newNodePortLab(t)
	local := published(2, 3)
	local.Local = true
	l.apply(local)
	for _, to := range []netip.AddrPort{at(node4, 30080), at(node6, 30080)} {
		for range 20 {
			source := map[netip.Addr]string{node4: "203.0.113.2", node6: "2001:db8:c::2"}[to.Addr()]
			if pod, saw := l.must(l.client, "tcp", to); pod != "pod2" || saw != source {
				t.Fatalf("Local: %s answered and saw %s", pod, saw)
			}
		}
	}
	l.sources("node", "tcp", at(node4, 30080), "pod2", "pod3")
	wantSources(t, "Local, pod", l.sources("pod1", "tcp", at(node4, 30080), "pod2", "pod3"), map[string]string{"pod2": "10.0.1.2", "pod3": "10.0.3.1"})

	elsewhere := published(3)
	elsewhere.Local = true
	l.apply(elsewhere)
	l.want("Local without an endpoint here", l.client, "tcp", at(node4, 30080), "silence")
	l.want("Local without an endpoint here", l.client, "udp", at(node6, 30053), "silence")
	l.want("Local without an endpoint here, pod", l.pods[0], "tcp", at(node4, 30080), "served")
	l.apply(published())
	l.want("no endpoint", l.client, "tcp", at(node4, 30080), "refused")
	l.want("no endpoint", l.client, "udp", at(node6, 30053), "refused")
	l.want("no endpoint", l.node, "tcp", at(node4, 30080), "refused")

	ranged := published(1, 2, 3)
	ranged.SourceRanges, ranged.Affinity = prefixes("198.51.100.0/24"), time.Hour
	l.apply(ranged)
	l.want("source ranges at the address", l.client, "tcp", at(vip4, 80), "silence")
	first, _ := l.must(l.client, "tcp", at(node4, 30080))
	ranged = published(1, 2, 3)
	ranged.Affinity = time.Hour
	l.apply(ranged)
	for range 10 {
		for _, to := range []netip.AddrPort{at(node4, 30080), at(vip4, 80)} {
			if pod, _ := l.must(l.client, "tcp", to); pod != first {
				t.Fatalf("affinity: %s at %s, was with %s", pod, to, first)
			}
		}
	}
}

// K2, K39: whatever chooses among endpoints does so for node ports.
// Rule: K2.
func TestNodePortsHeedTheScheduler(t *testing.T) {
	l := newNodePortLab(t)
	for _, c := range []struct {
		scheduler string
		fits      func(got map[string]int) bool
	}{
		{"rr", func(got map[string]int) bool { return got["pod1"] == 20 && got["pod2"] == 20 && got["pod3"] == 20 }},
		{"sh", func(got map[string]int) bool { return len(got) == 1 }},
		{"mh", func(got map[string]int) bool { return len(got) == 3 }},
	} {
		s := published(1, 2, 3)
		s.Scheduler = c.scheduler
		l.apply(s)
		got := map[string]int{}
		for range 60 {
			pod, _ := l.must(l.client, "tcp", at(node4, 30080))
			got[pod]++
		}
		if !c.fits(got) {
			t.Errorf("%s: %v", c.scheduler, got)
		}
	}
}

// answer has a program of a namespace answer at an address.
func (l *lab) answer(in *netnstest.Namespace, address string) {
	l.t.Helper()
	in.Serve(address, answering("program"))
}

// K2, K45: ports that are no Service's are left to the node's programs, and so are loopback and addresses that are not
// listed, or are another machine's.
// Rule: K2.
func TestNodePortsLeaveOthersAlone(t *testing.T) {
	l := newNodePortLab(t)
	l.apply(published(1, 2, 3))
	l.answer(l.node, ":30099")
	l.answer(l.node, "127.0.0.1:30080")
	l.answer(l.node, "[::1]:30080")
	l.answer(l.node, "10.0.1.1:30080")
	l.answer(l.client, "203.0.113.2:30080")
	for _, c := range []struct {
		what string
		from *netnstest.Namespace
		to   string
	}{
		{"a program's port, outside", l.client, "203.0.113.1:30099"}, {"a program's port, outside", l.client, "[2001:db8:c::1]:30099"},
		{"a program's port, node", l.node, "203.0.113.1:30099"}, {"a program's port, pod", l.pods[0], "203.0.113.1:30099"},
		{"loopback", l.node, "127.0.0.1:30080"}, {"loopback", l.node, "[::1]:30080"},
		{"not listed, pod", l.pods[0], "10.0.1.1:30080"}, {"not listed, outside", l.client, "10.0.1.1:30080"},
		{"another machine's, pod", l.pods[0], "203.0.113.2:30080"}, {"another machine's, node", l.node, "203.0.113.2:30080"},
	} {
		if who, _ := l.must(c.from, "tcp", netip.MustParseAddrPort(c.to)); who != "program" {
			t.Errorf("%s, %s: %s answered", c.what, c.to, who)
		}
	}
	l.want("nobody's port", l.client, "tcp", at(node4, 30081), "refused")
	l.want("another protocol's", l.client, "udp", at(node4, 30080), "refused")
}

// K2: addresses that the node gets later are served at once, and those that it loses no more, without a word to the agent.
// Rule: K2.
func TestNodePortsFollowTheNodesAddresses(t *testing.T) {
	l := newNodePortLab(t)
	l.apply(published(1))
	for _, a := range []struct{ address, mask, link string }{{"203.0.113.77", "/24", "-4"}, {"2001:db8:c::77", "/64", "-6"}} {
		to := at(netip.MustParseAddr(a.address), 30080)
		l.node.Run("ip", a.link, "address", "add", a.address+a.mask, "dev", "ext")
		l.want("from outside", l.client, "tcp", to, "served")
		l.want("from the node", l.node, "tcp", to, "served")
		l.node.Run("ip", a.link, "address", "delete", a.address+a.mask, "dev", "ext")
		if _, _, err := l.once(l.node, "tcp", to, silence); err == nil {
			t.Errorf("%s is served after it left", to)
		}
	}
}

// K2, K12, K18: UDP flows by a node port move when their endpoint leaves, and end with the Service; a program's go on.
// Rule: K2.
func TestFlowsByNodePortsMove(t *testing.T) {
	l := newNodePortLab(t)
	for _, address := range []netip.Addr{node4, node6} {
		l.apply(published(1))
		flow, err := l.dial(l.client, "udp", at(address, 30053), patience)
		if err != nil {
			t.Fatal(err)
		}
		defer flow.Close()
		for _, pod := range []int{1, 2, 3} {
			l.apply(published(pod))
			if now, _, err := flow.ask(); err != nil || now != fmt.Sprintf("pod%d", pod) {
				t.Errorf("%s: flow is with %s, want pod%d: %v", address, now, pod, err)
			}
		}
		l.apply()
		if _, _, err := flow.ask(); outcome(err) != "refused" {
			t.Errorf("%s: flow of a Service that is gone: %v", address, err)
		}
	}
}

// K2: beside a kube-proxy that serves node ports, the one who is told of the Service first has it; without the setting
// kube-proxy does, and with it all others.
// Rule: K2.
func TestNodePortsBesideKubeProxy(t *testing.T) {
	l := newLab(t)
	l.node.Feed(`table ip kube-proxy {
		chain prerouting {
			type nat hook prerouting priority dstnat; policy accept;
			fib daddr type local tcp dport { 30080, 30090 } dnat to 10.0.2.2:8080
		}
	}`, "nft", "-f", "-")
	who := func(when string, port uint16, want string) {
		t.Helper()
		if pod, _ := l.must(l.client, "tcp", at(node4, port)); pod != want {
			t.Errorf("%s: %d is answered by %s, want %s", when, port, pod, want)
		}
	}
	l.apply(published(1))
	who("off", 30080, "pod2")
	l.nodePorts = prefixes("203.0.113.0/24")
	l.nat = l.newNAT()
	l.apply(published(1))
	who("on", 30080, "pod1")
	who("on, a Service that we do not know", 30090, "pod2")
	l.nodePorts = nil
	l.nat = l.newNAT()
	l.apply(published(1))
	who("off again", 30080, "pod2")
}

// K2, K44: what others do to what serves node ports is put right, and who comes anew adopts it.
// Rule: K2.
func TestNodePortsArePutRight(t *testing.T) {
	l := newNodePortLab(t)
	l.apply(published(1, 2))
	clean := l.node.Run("nft", "list", "table", "inet", TableName)
	l.nat = l.newNAT()
	l.apply(published(1, 2))
	if written := valueOf(t, l.nat.metrics.elements.WithLabelValues("add")); written > 0 {
		t.Errorf("adopting wrote %v elements", written)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.nat.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	}()
	for _, program := range []string{
		"flush set inet fairlead-nat nodes4", "flush chain inet fairlead-nat node-ports4", "insert rule inet fairlead-nat node-ports-inside6 drop",
		"delete element inet fairlead-nat node-services4 { tcp . 30080 }", "flush chain inet fairlead-nat leave6",
	} {
		l.node.Run("nft", program)
		testkit.Until(t, "the table is as it was after "+program, func() bool {
			now, err := l.node.Try("nft", "list", "table", "inet", TableName)
			return err == nil && now == clean
		})
		l.want("repaired", l.client, "tcp", at(node4, 30080), "served")
	}
}
