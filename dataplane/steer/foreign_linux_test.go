// SPDX-License-Identifier: Apache-2.0

package steer_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/dataplane/steer"
)

// clutter is what others have on a node.
const clutter = `
ip rule add to 203.0.113.77 lookup 77 prio 30102
ip rule add from 198.51.100.10 to 203.0.113.5 lookup 77 prio 32001
ip rule add to 198.51.100.99 lookup 101 prio 32002
ip rule add to 198.51.100.10 lookup 77 prio 32003
ip rule add fwmark 0x1 lookup 77 prio 30099
ip -6 rule add to 2001:db8:e1::10 lookup 101 iif eth1
ip route add 203.0.113.77 via 10.9.0.1 table 101
ip route add 203.0.113.77 via 10.9.0.1 table 102
ip route add 203.0.113.78 via 10.9.0.1 proto static
ip -6 route add 2001:db8:77::/64 via 2001:db8:9::1 table 102
nft add table inet fairlead
nft add table ip fairlead-steer
sysctl -q net.ipv4.conf.eth1.arp_ignore=2
sysctl -q net.ipv4.conf.eth0.rp_filter=1
`

func TestS11NothingForeignIsTouchedAndCleanupLeavesNothing(t *testing.T) {
	inBothModes(t, func(t *testing.T, l *lab, s *steer.Steer, w steer.Wanted) {
		o := l.options()
		o.RulesMax = 2
		s.Close()
		if err := steer.Cleanup(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		l.node.Feed(clutter, "sh", "-e")
		before := picture(l.node)
		s = l.steerWith(o)
		w.Config.ReplaceDefault = true
		l.apply(s, w)
		wantWord(t, l.client, vip6, 80, "pod")
		s.Close()
		if err := steer.Cleanup(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		if after := picture(l.node); after != before {
			t.Errorf("before\n%s\nafter\n%s", before, after)
		}
	})
}

func TestForeignRulesAtOurPrioritiesFailTheirAddressesAndStay(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	second := vip4.Next()
	l.node.Run("ip", "rule", "add", "to", vip4.String(), "lookup", "101", "prio", "30101")
	failed := l.failures(l.steer(), wanted(vip4, second))
	if len(failed) != 1 || failed[0].Prefix.Addr() != vip4 ||
		failed[0].Why != "a rule that is not ours has a priority of ours: 30101: to 198.51.100.10/32 lookup 101; delete it, or give ours other priorities" {
		t.Errorf("failed: %v", failed)
	}
	wantWord(t, l.client, second, 80, "pod")
	rules := l.node.Run("ip", "rule")
	if n := strings.Count(rules, "30101:\tfrom all to 198.51.100.10 lookup 101\n"); n != 1 {
		t.Errorf("rules:\n%s", rules)
	}
}

// A rule in front of ours matters as far as its table has a route, and as long.
func TestAForeignRuleInFrontOfOursFailsTheAddressesThatItTakes(t *testing.T) {
	inBothModes(t, func(t *testing.T, l *lab, s *steer.Steer, w steer.Wanted) {
		fails := func(want string) {
			t.Helper()
			got := ""
			for _, f := range l.failures(s, w) {
				got += f.Prefix.String() + ": " + f.Why + "\n"
			}
			if got != want {
				t.Errorf("failed: %swant: %s", got, want)
			}
		}
		const takes = "198.51.100.10/32: a rule that is not ours takes its packets before ours do: 100: to 198.51.100.0/24 lookup 77, " +
			"where there is 198.51.100.10/32 dev eth1 table 77; delete either, or give ours lower priorities\n"
		l.node.Run("ip", "rule", "add", "to", "198.51.100.0/24", "lookup", "77", "prio", "100")
		s.Close()
		s = l.steerWith(steer.Options{Folder: l.folder, Namespace: l.node.FD(), Log: l.options().Log, Interfaces: []string{"eth*"}, RulesMax: 2})
		fails("")
		l.node.Run("ip", "route", "add", vip4.String(), "dev", "eth1", "table", "77")
		fails(takes)
		w.Config.RulePriorityIn = 99
		fails("")
		w.Config.RulePriorityIn = 0
		fails(takes)
		l.node.Run("ip", "route", "add", "198.51.100.0/24", "dev", "eth1", "table", "78") // which no rule leads to
		l.node.Run("ip", "route", "replace", "local", vip4.String(), "dev", "lo", "table", "77")
		fails("")
		wantRefused(t, l.client, vip4, 81)
		l.node.Run("ip", "rule", "del", "prio", "100")
		l.node.Run("ip", "rule", "add", "to", "198.51.100.0/24", "iif", "eth1", "lookup", "78", "prio", "100")
		fails("")
	})
}

func TestForeignDefaultsInOurTablesFailTheFamilyAndStay(t *testing.T) {
	for table, of := range map[string]string{"101": "IN_ROUTING_TABLE", "102": "OUT_ROUTING_TABLE"} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.node.Run("ip", "route", "add", "default", "via", "10.9.0.1", "table", table)
			before := l.node.Run("ip", "rule") + l.node.Run("ip", "route", "show", "table", table)
			s := l.steer()
			failed := l.failures(s, wanted(vip4, vip6))
			if len(failed) != 1 || failed[0].Prefix.Addr() != vip4 || !strings.Contains(failed[0].Why, of) {
				t.Errorf("failed: %v", failed)
			}
			if after := l.node.Run("ip", "rule") + l.node.Run("ip", "route", "show", "table", table); after != before {
				t.Errorf("before\n%s\nafter\n%s", before, after)
			}
			wantWord(t, l.client, vip6, 80, "pod")
			l.node.Run("ip", "route", "del", "default", "table", table)
			s.Close()
			l.apply(l.steer(), wanted(vip4, vip6))
			wantWord(t, l.client, vip4, 80, "pod")
		})
	}
}

// The old daemon's rules and routes, as its documents show them.
// Rule: kube-loadbalancer-controller §9.8, §13 row 15.
func TestTheOldDaemonsRulesAreReplacedWithoutAGap(t *testing.T) {
	for mode, rulesMax := range map[string]int{"rules": 10, "marked": 1} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.node.Run("ip", "route", "replace", "default", "via", "192.0.2.254") // the old system needs it
			second := vip4.Next()
			l.node.Feed(fmt.Sprintf(`
ip route add local default dev lo table 101
ip route add default via 192.0.2.254 table 102
for a in %s %s; do ip rule add to $a lookup 101; ip rule add from $a lookup 102; done
ip rule add to 198.51.100.99 lookup 101
`, vip4, second), "sh", "-e")
			requests := l.load(vip4)
			o := l.options()
			o.RulesMax = rulesMax
			s := l.steerWith(o)
			l.apply(s, wanted(vip4, second))
			if made, failed := requests(); failed > 0 {
				t.Errorf("%d of %d requests failed", failed, made)
			}
			rules := l.node.Run("ip", "rule")
			for _, a := range []netip.Addr{vip4, second} {
				if n, want := strings.Count(rules, "to "+a.String()+" "), map[string]int{"rules": 1}[mode]; n != want {
					t.Errorf("%d rules to %s:\n%s", n, a, rules)
				}
			}
			if !strings.Contains(rules, "to 198.51.100.99 lookup 101\n") {
				t.Errorf("the rule of an address that is not wanted is gone:\n%s", rules)
			}
			if got := l.node.Run("ip", "route", "show", "table", "102"); got != "default via 192.0.2.254 dev eth0 proto 83 \n" {
				t.Errorf("table 102: %s", got)
			}
		})
	}
}

// Who may not change the kernel is told so in one line.
func TestWithoutCAP_NET_ADMINTheErrorNamesTheRemedy(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	done := make(chan error, 1)
	go func() {
		done <- l.node.Do(func() error { // on a thread that ends with this
			var none [2]unix.CapUserData
			if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
				return err
			}
			s, err := steer.New(steer.Options{Folder: l.folder, Log: slog.New(slog.NewTextHandler(l.log, nil))})
			if err != nil {
				return err
			}
			defer s.Close()
			_, err = s.Apply(context.Background(), stateOf(t, wanted(vip4)))
			return err
		})
	}()
	err := <-done
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "give it CAP_NET_ADMIN") {
		t.Errorf("error: %v", err)
	}
}
