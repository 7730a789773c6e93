// SPDX-License-Identifier: Apache-2.0

package steer_test

import (
	"context"
	"net/netip"
	"os"
	"strings"
	"testing"

	"fairlead.io/fairlead/dataplane/steer"
)

// Rule: kube-loadbalancer-controller §13 row 14.
func TestTheCloudTrialTakesTheDefaultRouteAndGivesItBack(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	// As DHCP and router advertisements leave it.
	l.node.Run("ip", "route", "replace", "default", "via", "10.9.0.1", "dev", "eth1", "proto", "dhcp", "src", "10.9.0.11", "mtu", "1400", "onlink")
	before := picture(l.node)
	w := wanted(vip4, vip6)
	s := l.steer()
	l.apply(s, w)
	steered := picture(l.node)
	w.Config.ReplaceDefault = true
	l.apply(s, w)
	for family, via := range map[string]string{"-4": "192.0.2.254", "-6": "2001:db8:a::254"} {
		target := map[string]string{"-4": "203.0.113.2", "-6": "2001:db8:c::2"}[family]
		if got := l.node.Run("ip", family, "route", "get", target); !strings.Contains(got, "via "+via) {
			t.Errorf("the default does not lead to the switch: %s", got)
		}
	}
	if !strings.Contains(l.log.String(), "the node's default route now leads to the switch") {
		t.Errorf("not said: %s", l.log)
	}
	s.Close()
	s = l.steer() // a restart in between forgets nothing
	l.apply(s, w)
	w.Config.ReplaceDefault = false
	l.apply(s, w)
	if got := picture(l.node); got != steered {
		t.Errorf("before\n%s\nafter\n%s", steered, got)
	}
	w.Config.ReplaceDefault = true
	l.apply(s, w)
	s.Close()
	if err := steer.Cleanup(context.Background(), l.options()); err != nil {
		t.Fatal(err)
	}
	if got := picture(l.node); got != before {
		t.Errorf("before\n%s\nafter\n%s", before, got)
	}
	if left, _ := os.ReadDir(l.folder); len(left) > 0 {
		t.Errorf("left in the folder: %v", left)
	}
}

// Rule: kube-loadbalancer-controller §13 row 14.
func TestTheCloudTrialIsRefusedWhenTheSwitchIsNotOnLink(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	w := wanted(vip4)
	w.Config.Switches = []netip.Addr{netip.MustParseAddr("203.0.113.1")}
	w.Config.ReplaceDefault = true
	before := l.node.Run("ip", "route")
	failed := l.failures(l.steer(), w)
	if len(failed) != 1 || !strings.Contains(failed[0].Why, "SWITCH 203.0.113.1 is on no network of this node") {
		t.Errorf("failed: %v", failed)
	}
	if got := l.node.Run("ip", "route"); got != before {
		t.Errorf("main table:\n%s", got)
	}
	if !strings.Contains(l.log.String(), "DEPLOY_MODEL test: refused") {
		t.Errorf("not said: %s", l.log)
	}
}

func TestCleanupRestoresTheDefaultThoughSomebodyTookOursAway(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	before := picture(l.node)
	w := wanted(vip4, vip6)
	w.Config.ReplaceDefault = true
	s := l.steer()
	l.apply(s, w)
	s.Close()
	l.node.Run("ip", "route", "del", "default", "via", "192.0.2.254")
	if err := steer.Cleanup(context.Background(), l.options()); err != nil {
		t.Fatal(err)
	}
	if got := picture(l.node); got != before {
		t.Errorf("before\n%s\nafter\n%s", before, got)
	}
}

// Rule: kube-loadbalancer-controller §11.
func TestSWITCHIsReplacedInOneStep(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.border.Run("ip", "address", "add", "192.0.2.253/24", "dev", "port2")
	s := l.steer()
	w := wanted(vip4)
	l.apply(s, w)
	w.Config.Switches = []netip.Addr{netip.MustParseAddr("192.0.2.253")}
	l.apply(s, w)
	if got := l.node.Run("ip", "route", "show", "table", "102"); strings.TrimSpace(got) != "default via 192.0.2.253 dev eth0 proto 83" {
		t.Errorf("table 102: %s", got)
	}
	wantWord(t, l.client, vip4, 80, "pod")
	// One that cannot be reached changes nothing.
	w.Config.Switches = []netip.Addr{netip.MustParseAddr("203.0.113.1")}
	l.apply(s, w)
	wantWord(t, l.client, vip4, 80, "pod")
	if !strings.Contains(l.log.String(), "answers go to 192.0.2.253 as before") {
		t.Errorf("not said: %s", l.log)
	}
}

// kube-loadbalancer-controller §7: RULE_PRIORITY_IN, RULE_PRIORITY_OUT and FWMARK of kube-iprule-cfg are carried out, also while requests
// go on, and what cannot be is refused.
func TestPrioritiesAndMarkFollowTheConfiguration(t *testing.T) {
	inBothModes(t, func(t *testing.T, l *lab, s *steer.Steer, w steer.Wanted) {
		requests := l.load(vip4, vip6)
		w.Config.RulePriorityIn, w.Config.RulePriorityOut, w.Config.FwMark = 20001, 31000, 0x40
		l.apply(s, w)
		rules, filter := l.node.Run("ip", "rule", "list"), l.node.Run("nft", "list", "table", "inet", steer.TableName)
		if !strings.Contains(rules, "20001:") || !strings.Contains(rules, "31001:") || strings.Contains(rules, "30101:") {
			t.Errorf("rules:\n%s", rules)
		}
		if !strings.Contains(filter, "0x00000040") || strings.Contains(filter, "0x00002000") {
			t.Errorf("filter:\n%s", filter)
		}
		w.Config.RulePriorityIn, w.Config.RulePriorityOut, w.Config.FwMark = 0, 0, 0
		l.apply(s, w)
		if made, failed := requests(); failed > 0 || made == 0 {
			t.Errorf("%d of %d requests failed", failed, made)
		}
		if rules := l.node.Run("ip", "rule", "list"); strings.Contains(rules, "20001:") || !strings.Contains(rules, "30101:") {
			t.Errorf("rules:\n%s", rules)
		}
		w.Config.RulePriorityIn = 40000
		if err := l.refused(s, w); err == nil || !strings.Contains(err.Error(), "RULE_PRIORITY_IN") {
			t.Errorf("above the main table: %v", err)
		}
	})
}

func TestTablesAreMovedWithoutAGap(t *testing.T) {
	inBothModes(t, func(t *testing.T, l *lab, s *steer.Steer, w steer.Wanted) {
		requests := l.load(vip4, vip6)
		for _, tables := range [][2]uint32{{201, 202}, {1001, 1002}, {101, 102}} {
			w.Config.InTable, w.Config.OutTable = tables[0], tables[1]
			l.apply(s, w)
		}
		if made, failed := requests(); failed > 0 || made == 0 {
			t.Errorf("%d of %d requests failed", failed, made)
		}
		if got := l.node.Run("ip", "route", "show", "table", "all"); strings.Contains(got, "table 201") || strings.Contains(got, "table 1002") {
			t.Errorf("left:\n%s", got)
		}
	})
}
