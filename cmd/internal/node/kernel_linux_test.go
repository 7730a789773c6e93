// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/machine"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// labNode is a node's network: its card eth0, and a switch at the other end.
//
//	node eth0 198.51.100.1/24 ---- 198.51.100.254 switch
type labNode struct{ *netnstest.Namespace }

func newMachine(t *testing.T) labNode {
	t.Helper()
	n, s := netnstest.New(t, "node"), netnstest.New(t, "switch")
	netnstest.Join(netnstest.Link{In: n, Name: "eth0", Addresses: []string{"198.51.100.1/24"}}, netnstest.Link{In: s, Name: "eth0", Addresses: []string{"198.51.100.254/24"}})
	return labNode{n}
}

// state is all that an agent may change.
func (m labNode) state() string {
	out := ""
	for _, c := range []string{"ip -4 rule", "ip -6 rule", "ip -4 route show table all", "ip -6 route show table all", "nft list ruleset"} {
		words := strings.Fields(c)
		out += c + "\n" + m.Run(words[0], words[1:]...)
	}
	for _, s := range []string{"ipv4/conf/all/arp_ignore", "ipv4/conf/eth0/arp_ignore", "ipv4/conf/all/rp_filter", "ipv4/conf/eth0/rp_filter", "ipv4/ip_forward"} {
		out += s + " " + m.Sysctl(s) + "\n"
	}
	return out
}

func (m labNode) steers(address string) bool {
	return strings.Contains(m.Run("ip", "-4", "rule"), "to "+address)
}

func (w *world) steering(t *testing.T, m labNode) config.Agent {
	t.Helper()
	w.group.Apply(t, &fsm.PutNodeConfig{Config: fsm.NodeConfig{Switches: []netip.Addr{netip.MustParseAddr("198.51.100.254")}}})
	c := w.config(t)
	c.Steer, c.NAT, c.DrainDelay, c.Namespace = true, config.NATNftables, 200*time.Millisecond, m.FD()
	return c
}

// The kernel is prepared before the node acknowledges, stays when the agent ends or dies, is taken over by the next
// one, and is as it was after the cleanup.
func TestKernelStaysWithoutItsAgentAndIsCleanAfterCleanup(t *testing.T) {
	t.Parallel()
	m, w := newMachine(t), newWorld(t)
	before := m.state()
	c := w.steering(t, m)
	w.route(t, "192.0.2.1")
	p := start(t, c)
	testkit.Until(t, "the node acknowledges", func() bool {
		s := p.Status()
		return !s.Acknowledged.IsZero() && s.Acknowledged == s.Told
	})
	if s := p.Status(); !m.steers("192.0.2.1") || len(s.Failed) > 0 {
		t.Fatalf("failed %v\n%s", s.Failed, m.state())
	}
	if nft := m.Run("nft", "list", "tables"); !strings.Contains(nft, "inet fairlead-steer") || !strings.Contains(nft, "inet fairlead-nat") {
		t.Errorf("tables: %s", nft)
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if !m.steers("192.0.2.1") {
		t.Fatal("the rules went with the agent")
	}
	w.api.Stop() // nobody answers: what was told last is carried out all the same
	again := start(t, c)
	testkit.Until(t, "the next agent took over", func() bool { return !again.Status().Applied.IsZero() })
	if code, _ := ask(t, c, "/readyz"); code != http.StatusServiceUnavailable || !m.steers("192.0.2.1") {
		t.Errorf("without a member: ready says %d, steered %v", code, m.steers("192.0.2.1"))
	}
	if err := again.stop(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		forked()
		if err := node.Cleanup(t.Context(), c, machine.Agent(), quiet); err != nil {
			t.Fatal(err)
		}
		if after := m.state(); after != before {
			t.Fatalf("before:\n%s\nafter the cleanup:\n%s", before, after)
		}
	}
	if _, err := os.Stat(c.StateDir); !os.IsNotExist(err) {
		t.Errorf("state folder: %v", err)
	}
}

// An address that left while no agent ran, and whose kept state was lost, is found in the kernel, stays there for the drain delay, and goes
// after it.
func TestAddressThatLeftWhileNoAgentRanDrainsAndGoes(t *testing.T) {
	t.Parallel()
	m, w := newMachine(t), newWorld(t)
	c := w.steering(t, m)
	w.route(t, "192.0.2.1")
	w.route(t, "192.0.2.2")
	p := start(t, c)
	testkit.Until(t, "both are steered", func() bool { return m.steers("192.0.2.1") && m.steers("192.0.2.2") })
	end := func() {
		t.Helper()
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		for _, kept := range []string{"desired.state", "draining.state"} {
			if err := os.Remove(filepath.Join(c.StateDir, kept)); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
	}
	again := func(delay time.Duration) {
		t.Helper()
		c.DrainDelay = delay
		p = start(t, c)
		testkit.Until(t, "the new state is acknowledged", func() bool {
			s := p.Status()
			return !s.Acknowledged.IsZero() && s.Acknowledged == s.Told
		})
	}
	end()
	w.unroute(t, "192.0.2.2")
	again(time.Hour)
	if !m.steers("192.0.2.2") {
		t.Error("the rules went at once")
	}
	end()
	again(200 * time.Millisecond)
	testkit.Until(t, "they go", func() bool { return !m.steers("192.0.2.2") })
	if !m.steers("192.0.2.1") {
		t.Error("the other address is not steered")
	}
}

// kube-loadbalancer-controller §13 row 5: each address has exactly one rule to it and one from it, in tables with one default each, however
// often the agent was restarted.
func TestRulesAreThereOnceAfterTenRestarts(t *testing.T) {
	t.Parallel()
	m, w := newMachine(t), newWorld(t)
	c := w.steering(t, m)
	c.Health = ""
	w.route(t, "192.0.2.1")
	w.route(t, "192.0.2.2")
	for i := range 11 {
		p := start(t, c)
		testkit.Until(t, "it did as it was told", func() bool {
			s := p.Status()
			return s.Member != "" && !s.Acknowledged.IsZero() && s.Acknowledged == s.Told
		})
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		rules := m.Run("ip", "-4", "rule")
		for _, rule := range []string{"to 192.0.2.1 ", "from 192.0.2.1 ", "to 192.0.2.2 ", "from 192.0.2.2 "} {
			if n := strings.Count(rules, rule); n != 1 {
				t.Fatalf("after %d restarts %d rules %s:\n%s", i, n, rule, rules)
			}
		}
		for table, route := range map[string]string{"101": "local default dev lo", "102": "default via 198.51.100.254 dev eth0"} {
			if got := m.Run("ip", "-4", "route", "show", "table", table); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, route) {
				t.Fatalf("after %d restarts, table %s:\n%s", i, table, got)
			}
		}
	}
}

// kube-loadbalancer-controller §11 "node added", §13 row 9: the agent of a new node prepares every address that exists, although no Service
// has anything on it, and without a restart when another one comes.
func TestNewNodePreparesEveryAddress(t *testing.T) {
	t.Parallel()
	m, w := newMachine(t), newWorld(t)
	for _, a := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"} {
		w.route(t, a) // by way of n1
	}
	c := w.steering(t, m)
	files := w.ca.Issue(t, pki.Request{Role: pki.Agent, Name: "n2"})
	c.Node, c.TLS = "n2", config.TLS(files)
	p := start(t, c)
	all := func(addresses ...string) func() bool {
		return func() bool {
			for _, a := range addresses {
				if !m.steers(a) {
					return false
				}
			}
			return true
		}
	}
	testkit.Until(t, "all are steered", all("192.0.2.1", "192.0.2.2", "192.0.2.3"))
	w.group.Apply(t, &fsm.PutNode{ID: "n2"}) // the cluster knows it later than its agent is there
	w.route(t, "192.0.2.4")
	testkit.Until(t, "the next one, too", all("192.0.2.4"))
	testkit.Until(t, "the node acknowledges", func() bool { s := p.Status(); return s.Acknowledged == s.Told })
	r, _ := fsm.Get[*fsm.Route](w.group.Read(), fsm.TableRoutes, "192.0.2.4/32")
	if len(r.NextHops) != 1 || r.NextHops[0].Node() != "n1" {
		t.Errorf("next hops: %+v", r.NextHops)
	}
}
