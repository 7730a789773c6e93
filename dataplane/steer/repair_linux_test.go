// SPDX-License-Identifier: Apache-2.0

package steer_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/dataplane/steer"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// run lets repairs happen until the test ends, and gives their number.
func (l *lab) run(o steer.Options) (s *steer.Steer, repairs func() float64) {
	l.t.Helper()
	registry := prometheus.NewRegistry()
	o.Metrics = registry
	s, err := steer.New(o)
	if err != nil {
		l.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	l.t.Cleanup(func() {
		cancel()
		if err := <-done; err != context.Canceled {
			l.t.Errorf("run: %v", err)
		}
		s.Close()
	})
	return s, func() float64 {
		families, err := registry.Gather()
		if err != nil {
			l.t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "fairlead_steer_repairs_total" {
				return f.GetMetric()[0].GetCounter().GetValue()
			}
		}
		return -1
	}
}

// rulesOf is what steering has in the kernel, whatever the order in which it was made.
func rulesOf(n *netnstest.Namespace) string {
	return n.Run("sh", "-c", `(ip rule; ip -6 rule) | sort
		for t in 101 102; do ip route show table $t; ip -6 route show table $t; done | sed 's/ linkdown//' | sort
		nft list table inet fairlead-steer`)
}

// What somebody takes away is put right because the kernel tells of it, and not because everything is read anew now and then. That it is
// back within a second is held in the time of a world (sim/guest/kernel TestDamageIsRepaired).
// Rule: kube-loadbalancer-controller §9.10.
func TestWhatSomebodyTakesAwayIsBack(t *testing.T) {
	for mode, rulesMax := range map[string]int{"rules": 10, "marked": 1} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.node.SetSysctl("ipv6/conf/eth0/keep_addr_on_down", "1")
			o := l.options()
			o.RulesMax, o.Reread = rulesMax, time.Hour
			s, repairs := l.run(o)
			l.apply(s, wanted(append(many(vip4, 3), many(vip6, 3)...)...))
			want := rulesOf(l.node)
			for _, damage := range []string{
				"ip rule del prio 30101", "ip rule del prio 30103", "ip -6 rule del prio 30101", "ip route flush table 101",
				"ip route del default table 102", "ip -6 route flush table 102", "nft delete table inet fairlead-steer",
				"nft delete element inet fairlead-steer addresses4 { 198.51.100.10 }",
				"nft flush chain inet fairlead-steer arriving", "nft add element inet fairlead-steer ports6 { 2001:db8:e1::10 . tcp . 22 }",
				"ip link set eth0 down; ip link set eth0 up", "ip route replace default via 192.0.2.99 table 102 proto 83",
				"ip rule add to 198.51.100.77 lookup 101 prio 30101 proto 83",
				"ip address del 192.0.2.11/24 dev eth0; ip address add 192.0.2.11/24 dev eth0",
			} {
				before := repairs()
				l.node.Run("sh", "-c", damage)
				testkit.Until(t, damage, func() bool { return repairs() > before && rulesOf(l.node) == want })
			}
		})
	}
}

// Rule: kube-loadbalancer-controller §9.10.
func TestNewInterfacesDoNotAnswerForServiceAddresses(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	o := l.options()
	o.Reread = time.Hour
	s, repairs := l.run(o)
	l.apply(s, wanted(vip4))
	l.node.Run("ip", "rule", "del", "prio", "30101")
	testkit.Until(t, "what was before anybody listened has been looked at", func() bool { return repairs() > 0 })
	netnstest.Join(
		netnstest.Link{In: l.node, Name: "eth7", Addresses: []string{"10.8.0.1/24"}},
		netnstest.Link{In: l.other, Name: "eth7", Addresses: []string{"10.8.0.2/24"}},
	)
	testkit.Until(t, "arp_ignore of the new interface", func() bool {
		return l.node.Sysctl("ipv4/conf/eth7/arp_ignore") == "1" && strings.Contains(rulesOf(l.node), `"eth7"`)
	})
}

// What the agent does itself leads to no repair, and neither does what concerns nobody here.
func TestOwnAndForeignChangesAreNotRepaired(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s, repairs := l.run(l.options())
	for n := range 5 {
		l.apply(s, wanted(many(vip4, n+1)...))
	}
	l.apply(s, wanted(vip6))
	l.node.Run("ip", "rule", "add", "to", "203.0.113.77", "lookup", "77")
	l.node.Run("ip", "route", "add", "203.0.113.77", "via", "10.9.0.1")
	l.node.Run("nft", "add", "table", "inet", "foreign")
	// What is damaged after that, where rules and where sets are heard of, is repaired after that.
	for _, damage := range []string{
		"ip -6 rule del prio 30101",
		"nft delete element inet fairlead-steer addresses6 '{ " + vip6.String() + " }'",
	} {
		before := repairs()
		l.node.Run("sh", "-c", damage)
		testkit.Until(t, damage, func() bool { return repairs() > before })
	}
	if got := repairs(); got != 2 {
		t.Errorf("%v repairs, want those of the damage alone:\n%s", got, l.log)
	}
}

// A program that goes on undoing what we do does not keep us busy.
func TestAFightIsFoughtSlowly(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s, repairs := l.run(l.options())
	l.apply(s, wanted(vip4))
	attempts := 0
	for end, last := time.Now().Add(2*time.Second), time.Now().Add(testkit.Patience); time.Now().Before(end) || attempts < 3 && time.Now().Before(last); {
		if _, err := l.node.Try("ip", "rule", "del", "prio", "30101"); err == nil {
			attempts++
		}
	}
	if got := repairs(); attempts < 3 || got > 40 {
		t.Errorf("undone %d times, repaired %v times", attempts, got)
	}
}
