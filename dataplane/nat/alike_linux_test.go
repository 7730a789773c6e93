// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// pair is a lab with a second node, which has no pods of its own and reaches client and pods by links of its own. The client sends to the one or the
// other, as a switch does that spreads its flows anew. Both choose consistently.
//
//	client 203.0.114.2 --- 203.0.114.1 second 10.1.N.1 --- 10.1.N.2 pod N
//	       2001:db8:d::2         2001:db8:d::1  fd00:0:1:N::1    fd00:0:1:N::2
type pair struct {
	*lab
	second      *netnstest.Namespace
	first, next *NAT
}

func newPair(t *testing.T, clusterCIDRs []netip.Prefix) *pair {
	t.Helper()
	l := newLab(t)
	p := &pair{lab: l, second: netnstest.New(t, "second")}
	l.client.SetSysctl("ipv4/conf/all/rp_filter", "0")
	p.second.SetSysctl("ipv4/conf/all/rp_filter", "0")
	p.second.SetSysctl("ipv4/ip_forward", "1")
	p.second.SetSysctl("ipv6/conf/all/forwarding", "1")
	netnstest.Join(
		netnstest.Link{In: l.client, Name: "wan2", Addresses: []string{"203.0.114.2/24", "2001:db8:d::2/64"}},
		netnstest.Link{In: p.second, Name: "ext", Addresses: []string{"203.0.114.1/24", "2001:db8:d::1/64"}})
	p.second.Run("ip", "route", "add", "203.0.113.0/24", "via", "203.0.114.2")
	p.second.Run("ip", "-6", "route", "add", "2001:db8:c::/64", "via", "2001:db8:d::2")
	for i := 1; i <= 3; i++ {
		name := fmt.Sprintf("pod%d", i)
		netnstest.Join(
			netnstest.Link{In: l.pods[i-1], Name: "eth1", Addresses: []string{fmt.Sprintf("10.1.%d.2/24", i), fmt.Sprintf("fd00:0:1:%d::2/64", i)}},
			netnstest.Link{In: p.second, Name: name, Addresses: []string{fmt.Sprintf("10.1.%d.1/24", i), fmt.Sprintf("fd00:0:1:%d::1/64", i)}})
		p.second.Run("ip", "route", "add", fmt.Sprintf("10.0.%d.2", i), "via", fmt.Sprintf("10.1.%d.2", i))
		p.second.Run("ip", "-6", "route", "add", fmt.Sprintf("fd00:0:0:%d::2", i), "via", fmt.Sprintf("fd00:0:1:%d::2", i))
		// Answers of UDP have the address that was asked, not that of the link.
		l.pods[i-1].Run("ip", "route", "replace", fmt.Sprintf("10.1.%d.0/24", i), "dev", "eth1", "src", fmt.Sprintf("10.0.%d.2", i))
		l.pods[i-1].Run("ip", "-6", "route", "add", fmt.Sprintf("fd00:0:1:%d::1", i), "dev", "eth1", "src", fmt.Sprintf("fd00:0:0:%d::2", i))
		l.pods[i-1].SetSysctl("ipv4/conf/all/rp_filter", "0")
		testkit.Until(t, "pods answer the second node", func() bool {
			for _, e := range podEndpoints(i) {
				if _, _, err := l.once(p.second, "udp", at(e.Address, podPort), silence); err != nil {
					return false
				}
			}
			return true
		})
	}
	make := func(node string, in *netnstest.Namespace) *NAT {
		n, err := New(Options{Node: node, ClusterCIDRs: clusterCIDRs, Consistent: []string{"shop/*"}, NetNS: in.FD()})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	p.first, p.next = make("n1", l.node), make("n3", p.second)
	return p
}

// apply has both nodes carry Services out, which may differ in the order of their endpoints.
func (p *pair) apply(s *desired.Service) {
	p.t.Helper()
	for _, n := range []*NAT{p.first, p.next} {
		if failed, err := n.apply(context.Background(), "", []*desired.Service{s}); err != nil || len(failed) > 0 {
			p.t.Fatalf("apply: %v, failed %v", err, failed)
		}
	}
}

// spreadAnew has the client send packets to a service address to the first node or the second.
func (p *pair) spreadAnew(second bool) {
	p.t.Helper()
	to4, to6 := "203.0.113.1", "2001:db8:c::1"
	if second {
		to4, to6 = "203.0.114.1", "2001:db8:d::1"
	}
	p.client.Run("ip", "route", "replace", "192.0.2.0/24", "via", to4)
	p.client.Run("ip", "-6", "route", "replace", "2001:db8::/64", "via", to6)
}

// askFrom sends a datagram from a port of the client, and gives who answered.
func (p *pair) askFrom(source, to netip.AddrPort) string {
	p.t.Helper()
	var c net.Conn
	err := p.client.Do(func() (err error) {
		c, err = net.DialUDP("udp", net.UDPAddrFromAddrPort(source), net.UDPAddrFromAddrPort(to))
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	defer c.Close()
	pod, _, err := (&conn{c, patience}).ask()
	if err != nil {
		p.t.Fatalf("%s to %s: %v", source, to, err)
	}
	return pod
}

// All nodes choose the same endpoint for a flow, in the kernel's own arithmetic, also when the Service has affinity and
// the client never met the other node.
func TestNodesChooseTheSameEndpoint(t *testing.T) {
	p := newPair(t, prefixes("10.0.0.0/8", "fd00::/16"))
	client6 := netip.MustParseAddr("2001:db8:c::2")
	for _, affinity := range []time.Duration{0, time.Hour} {
		s := web(1, 2, 3)
		s.Affinity = affinity
		p.apply(s)
		var flows [][2]netip.AddrPort
		for port := uint16(20001); port < 20021; port++ {
			port += uint16(affinity / time.Hour * 1000)
			flows = append(flows, [2]netip.AddrPort{at(client4, port), at(vip4, 53)}, [2]netip.AddrPort{at(client6, port), at(vip6, 53)})
		}
		p.spreadAnew(false)
		before, pods := make([]string, len(flows)), map[string]bool{}
		for i, f := range flows {
			before[i] = p.askFrom(f[0], f[1])
			pods[before[i]] = true
		}
		if affinity == 0 && len(pods) < 3 {
			t.Errorf("only %v were chosen for %d flows", pods, len(flows))
		}
		p.spreadAnew(true)
		for i, f := range flows {
			if now := p.askFrom(f[0], f[1]); now != before[i] {
				t.Errorf("affinity %s, %s to %s: %s by way of the second node, was %s", affinity, f[0], f[1], now, before[i])
			}
		}
	}
}

// An established connection that comes in by another node from now on goes on, where its source is not rewritten: here
// because the client counts as inside, and the pods' answers take the same way.
func TestConnectionGoesOnThroughAnotherNode(t *testing.T) {
	p := newPair(t, prefixes("10.0.0.0/8", "203.0.113.0/24"))
	p.apply(web(1, 2, 3))
	p.spreadAnew(false)
	var open []*conn
	var before []string
	for range 8 {
		c, err := p.dial(p.client, "tcp", at(vip4, 80), patience)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		pod, source, err := c.ask()
		if err != nil || source != client4.String() {
			t.Fatalf("%s saw %s: %v", pod, source, err)
		}
		open, before = append(open, c), append(before, pod)
	}
	for i, pod := range p.pods {
		pod.Run("ip", "route", "replace", "default", "via", fmt.Sprintf("10.1.%d.1", i+1))
	}
	p.spreadAnew(true)
	for i, c := range open {
		if pod, _, err := c.ask(); err != nil || pod != before[i] {
			t.Errorf("connection %d: %q, was %s: %v", i, pod, before[i], err)
		}
	}
}

// An agent that starts with another list changes the table that it finds into the one that it wants, without a gap.
func TestAgentWithAnotherListAdoptsTheTable(t *testing.T) {
	l := newLab(t)
	sticky := web(1, 2, 3)
	sticky.Name, sticky.Affinity, sticky.Addresses = "shop/sticky", time.Hour, addrs("192.0.2.11", "2001:db8::11")
	plain := web(1, 2)
	plain.Frontends = plain.Frontends[:1] // without UDP, whose flows would be looked for each time
	l.apply(plain, sticky)
	stop := l.load()
	for i := range 8 {
		var list []string
		if i%2 == 0 {
			list = []string{"shop/*"}
		}
		n, err := New(Options{Node: "n1", ClusterCIDRs: prefixes("10.0.0.0/16", "fd00::/16"), Consistent: list, NetNS: l.node.FD()})
		if err != nil {
			t.Fatal(err)
		}
		l.nat = n
		l.apply(plain, sticky)
		want := n.planner.Ruleset()
		have, _, err := n.edge.Read(context.Background(), want)
		if err != nil || !Compatible(have, want) || !Diff(have, want).Empty() {
			t.Fatalf("list %q: table is not as planned: %+v, %v", list, Diff(have, want), err)
		}
		table := l.node.Run("nft", "list", "table", "inet", TableName)
		for _, name := range []string{"map buckets4-", "set first6-", "chain hash6-"} {
			if strings.Contains(table, name) != (list != nil) {
				t.Errorf("list %q: %s is there: %v", list, name, list == nil)
			}
		}
		if failures := valueOf(t, n.metrics.failures); failures > 0 {
			t.Errorf("list %q: the kernel refused %v times", list, failures)
		}
	}
	if n, failed := stop(); len(failed) > 0 {
		t.Errorf("%d of %d failed: %v", len(failed), n, failed[:1])
	}
}

// tableBeforeChoices is the digest of the table of TestConsistentChoiceIsOnlyForWhoAsks without choices. Whoever changes the layout
// notes it here.
const tableBeforeChoices = "59622c7c35ff96f0"

func digestOf(r Ruleset) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(r.Sets)) {
		fmt.Fprintf(sum, "%+v %q;", r.Sets[name], slices.Sorted(maps.Keys(r.Elements[name])))
		for _, key := range slices.Sorted(maps.Keys(r.Elements[name])) {
			fmt.Fprintf(sum, "%q;", r.Elements[name][key])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Chains)) {
		c := r.Chains[name]
		fmt.Fprintf(sum, "%s %d %d %q;", c.Name, c.Hook, c.Priority, c.Tags)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// Who asks for nothing has the table that is there without choices, to the byte.
func TestConsistentChoiceIsOnlyForWhoAsks(t *testing.T) {
	services := []*desired.Service{web(1, 2, 3)}
	sticky := web(1, 2)
	sticky.Name, sticky.Affinity, sticky.Addresses = "shop/sticky", 1e9, addrs("192.0.2.11", "2001:db8::11")
	services = append(services, sticky)
	without := planOf(Config{Node: "n1"}, services).Ruleset()
	if digest := digestOf(without); digest != tableBeforeChoices {
		t.Errorf("the table has changed: %s, was %s", digest, tableBeforeChoices)
	}
	other := planOf(Config{Node: "n1", Consistent: []string{"other/*", "shop"}}, services).Ruleset()
	if c := Diff(without, other); !c.Empty() {
		t.Errorf("a list without them changes %+v", c)
	}
	one := Diff(without, planOf(Config{Node: "n1", Consistent: []string{"shop/web"}}, services).Ruleset())
	for _, e := range append(one.Add, one.Remove...) {
		if strings.HasPrefix(e.Set, "services") && !strings.Contains(e.Key, string(vip4.AsSlice())) && !strings.Contains(e.Key, string(vip6.AsSlice())) {
			t.Errorf("of another Service: %+v", e)
		}
	}
	if len(one.AddSets) != 4 || len(one.AddChains) != 4 || len(one.Refill) > 0 { // two ports of two families
		t.Errorf("adds %d sets and %d chains, refills %v", len(one.AddSets), len(one.AddChains), one.Refill)
	}
}
