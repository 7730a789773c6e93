// SPDX-License-Identifier: Apache-2.0

package steer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/api/desired/desiredtest"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/steer"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// lab is
//
//	client ---- switch ---- eth0 node cni0 ---- pod
//	                        eth1  |
//	                            other
//
// The node's default route leads to other, which answers nothing: what reaches the client left through the switch.
// The node translates port 80 of each service address to the pod's 8080, as kube-proxy does; port 81 is a Service port
// that nobody translates.
type lab struct {
	t                                *testing.T
	client, border, node, other, pod *netnstest.Namespace
	folder                           string
	log                              *testkit.Log
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{
		t: t, folder: t.TempDir(), log: &testkit.Log{},
		client: netnstest.New(t, "client"), border: netnstest.New(t, "switch"), node: netnstest.New(t, "node"),
		other: netnstest.New(t, "other"), pod: netnstest.New(t, "pod"),
	}
	join := func(a *netnstest.Namespace, aName, a4, a6 string, b *netnstest.Namespace, bName, b4, b6 string) {
		netnstest.Join(
			netnstest.Link{In: a, Name: aName, Addresses: []string{a4, a6}},
			netnstest.Link{In: b, Name: bName, Addresses: []string{b4, b6}},
		)
	}
	join(l.client, "eth0", "203.0.113.2/24", "2001:db8:c::2/64", l.border, "port1", "203.0.113.1/24", "2001:db8:c::1/64")
	join(l.node, "eth0", "192.0.2.11/24", "2001:db8:a::11/64", l.border, "port2", "192.0.2.254/24", "2001:db8:a::254/64")
	join(l.node, "eth1", "10.9.0.11/24", "2001:db8:9::11/64", l.other, "eth0", "10.9.0.1/24", "2001:db8:9::1/64")
	join(l.node, "cni0", "10.244.0.1/24", "2001:db8:f::1/64", l.pod, "eth0", "10.244.0.2/24", "2001:db8:f::2/64")
	for _, n := range []*netnstest.Namespace{l.border, l.node} {
		n.SetSysctl("ipv4/ip_forward", "1")
		n.SetSysctl("ipv6/conf/all/forwarding", "1")
	}
	route := func(n *netnstest.Namespace, to, via string) { n.Run("ip", "route", "add", to, "via", via) }
	route(l.client, "default", "203.0.113.1")
	route(l.client, "default", "2001:db8:c::1")
	route(l.pod, "default", "10.244.0.1")
	route(l.pod, "default", "2001:db8:f::1")
	route(l.node, "default", "10.9.0.1")
	route(l.node, "default", "2001:db8:9::1")
	route(l.border, "198.51.100.0/24", "192.0.2.11")
	route(l.border, "2001:db8:e1::/64", "2001:db8:a::11")
	l.node.Feed(`table inet proxy {
		chain prerouting {
			type nat hook prerouting priority dstnat
			ip daddr 198.51.100.0/24 tcp dport 80 dnat ip to 10.244.0.2:8080
			ip6 daddr 2001:db8:e1::/64 tcp dport 80 dnat ip6 to [2001:db8:f::2]:8080
		}
	}`, "nft", "-f", "-")
	l.answer(l.pod, ":8080", "pod")
	for _, n := range []*netnstest.Namespace{l.client, l.border, l.node, l.other, l.pod} {
		testkit.Until(t, "cables are noticed", func() bool {
			return !strings.Contains(n.Run("sh", "-c", "ip link; ip route show table all; ip -6 route show table all"), "linkdown") &&
				!strings.Contains(n.Run("ip", "link"), "state DOWN") && !strings.Contains(n.Run("ip", "link"), "LOWERLAYERDOWN")
		})
	}
	return l
}

// options are those of an agent on the node.
func (l *lab) options() steer.Options {
	return steer.Options{
		Folder: l.folder, Namespace: l.node.FD(), Log: slog.New(slog.NewTextHandler(l.log, nil)), Interfaces: []string{"eth*"},
	}
}

// steer starts an agent's part on the node, without repairs.
func (l *lab) steer() *steer.Steer { return l.steerWith(l.options()) }

func (l *lab) steerWith(o steer.Options) *steer.Steer {
	l.t.Helper()
	s, err := steer.New(o)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(s.Close)
	return s
}

// apply has a state carried out, and fails if an address fails.
func (l *lab) apply(s *steer.Steer, w steer.Wanted) {
	l.t.Helper()
	failed, err := s.Apply(context.Background(), stateOf(l.t, w))
	if err != nil || len(failed) > 0 {
		l.t.Fatalf("apply: %v, %v", failed, err)
	}
}

// refused is why a state was not carried out at all.
func (l *lab) refused(s *steer.Steer, w steer.Wanted) error {
	l.t.Helper()
	_, err := s.Apply(context.Background(), stateOf(l.t, w))
	return err
}

// stateOf makes the state that says so.
func stateOf(t testing.TB, w steer.Wanted) desired.State { return serviceState(t, w) }

// serviceState makes a state that says how Services are translated, too.
func serviceState(t testing.TB, w steer.Wanted, services ...desired.Service) desired.State {
	t.Helper()
	var m desiredtest.Told
	for _, a := range w.Addresses {
		m.Address(a.Prefix.Addr(), a.Ports...)
	}
	m.Services(services...)
	return m.State(t, desired.NodeMessage("g", &w.Config, nil))
}

// answer has every connection to an address of a namespace told a word, until the test ends.
func (l *lab) answer(n *netnstest.Namespace, address, word string) {
	l.t.Helper()
	n.Serve(address, netnstest.Say(word))
}

// hasty is how long those wait who may get no answer.
const hasty = 2 * time.Second

// dial connects from a namespace and gives what is told there.
func dial(from *netnstest.Namespace, to netip.Addr, port uint16, patience time.Duration) (word string, err error) {
	c, err := from.Dial("tcp", netip.AddrPortFrom(to, port).String(), patience)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	data, err := io.ReadAll(c)
	return string(data), err
}

// wantWord fails unless a client is told a word.
func wantWord(t *testing.T, from *netnstest.Namespace, to netip.Addr, port uint16, word string) {
	t.Helper()
	if got, err := dial(from, to, port, testkit.Patience); err != nil || got != word {
		t.Errorf("%s port %d: %q, %v; want %q", to, port, got, err, word)
	}
}

// wantRefused fails unless a client is refused at once: the first time that it asks.
func wantRefused(t *testing.T, from *netnstest.Namespace, to netip.Addr, port uint16) {
	t.Helper()
	before := from.Repeated()
	got, err := dial(from, to, port, testkit.Patience)
	if again := from.Repeated() - before; !errors.Is(err, syscall.ECONNREFUSED) || again > 0 {
		t.Errorf("%s port %d: %q, %v, asked %d times more; want it refused at once", to, port, got, err, again)
	}
}

// failures are those of one application.
func (l *lab) failures(s *steer.Steer, w steer.Wanted) []agent.Failure {
	l.t.Helper()
	failed, err := s.Apply(context.Background(), stateOf(l.t, w))
	if err != nil {
		l.t.Fatal(err)
	}
	return failed
}

// picture is everything in the kernel that steering may touch.
func picture(n *netnstest.Namespace) string {
	var b strings.Builder
	for _, args := range [][]string{
		{"ip", "rule"}, {"ip", "-6", "rule"}, {"ip", "route", "show", "table", "all"}, {"ip", "-6", "route", "show", "table", "all"},
		{"nft", "list", "ruleset"},
	} {
		fmt.Fprintf(&b, "# %s\n%s", strings.Join(args, " "), n.Run(args[0], args[1:]...))
	}
	b.WriteString(n.Run("sh", "-c", "cd /proc/sys/net && grep -r . ipv4/conf ipv6/conf 2>/dev/null | grep -v -e stable_secret | sort"))
	return b.String()
}
