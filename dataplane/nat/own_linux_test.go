// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// foreignTables are somebody else's, among them one that looks like ours.
const foreignTables = `
table inet fairlead-steer {
	chain prerouting {
		type filter hook prerouting priority -150; policy accept;
		meta mark set meta mark | 0x1000
	}
}
table ip fairlead-nat {
	set addresses4 {
		type ipv4_addr
		elements = { 198.51.100.1 }
	}
}
table inet kube-proxy {
	map services {
		type ipv4_addr . inet_service : verdict
	}
	chain nat {
		type nat hook prerouting priority dstnat; policy accept;
	}
}
`

// K45: nothing but our table is written, and it goes by one command.
// Rule: K45.
func TestForeignTablesAreLeftAlone(t *testing.T) {
	l := newLab(t)
	l.node.Feed(foreignTables, "nft", "-f", "-")
	foreign := func() string {
		return l.node.Run("nft", "-a", "list", "table", "inet", "fairlead-steer") +
			l.node.Run("nft", "-a", "list", "table", "ip", "fairlead-nat") +
			l.node.Run("nft", "-a", "list", "table", "inet", "kube-proxy")
	}
	before := foreign()
	l.apply(web(1, 2, 3))
	l.want("beside others", l.client, "tcp", at(vip4, 80), "served")
	l.apply(web(1))
	for range 2 { // the second time there is nothing left
		if err := Cleanup(context.Background(), l.node.FD(), ""); err != nil {
			t.Fatal(err)
		}
	}
	if after := foreign(); after != before {
		t.Errorf("foreign tables\n%s\nwere\n%s", after, before)
	}
	if left := l.node.Run("nft", "list", "tables"); strings.Contains(left, "inet "+TableName) {
		t.Errorf("left: %s", left)
	}
	l.apply(web(2))
	l.want("after cleanup", l.client, "tcp", at(vip4, 80), "served")
}

// K44: what others do to the table is put right because the kernel tells of it, long before everything is compared; our own changes and
// others' tables are no reason. That it takes less than a second is held in the time of a world (sim/guest/kernel TestDamageIsRepaired).
func TestForeignChangesAreHeardOfAndPutRight(t *testing.T) {
	l := newLab(t)
	s := web(1, 2)
	s.SourceRanges = prefixes("203.0.113.0/24", "2001:db8::/32")
	l.apply(s)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.nat.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	}()
	clean := withoutWays(l.node.Run("nft", "list", "table", "inet", TableName))
	for _, c := range []struct{ name, program string }{
		{"element-removed", "delete element inet fairlead-nat addresses4 { 192.0.2.10 }"},
		{"element-added", "add element inet fairlead-nat local4 { 10.9.9.9 }"},
		{"element-changed", "delete element inet fairlead-nat services4 { 192.0.2.10 . tcp . 80 }; add element inet fairlead-nat services4 { 192.0.2.10 . tcp . 80 : drop }"},
		{"set-emptied", "flush map inet fairlead-nat slots6"},
		{"chain-emptied", "flush chain inet fairlead-nat prerouting"},
		{"rule-inserted", "insert rule inet fairlead-nat prerouting drop"},
		{"chain-added", "add chain inet fairlead-nat foreign"},
		{"table-asleep", "add table inet fairlead-nat { flags dormant; }"},
		{"table-removed", "delete table inet fairlead-nat"},
		{"all-removed", "flush ruleset"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l.node.Run("nft", c.program)
			testkit.Until(t, "the table is as it was", func() bool {
				now, err := l.node.Try("nft", "list", "table", "inet", TableName)
				return err == nil && withoutWays(now) == clean
			})
			l.want("repaired", l.client, "tcp", at(vip4, 80), "served")
		})
	}
	heard := hears(t, l.nat)
	repairs := valueOf(t, l.nat.metrics.repairs)
	l.node.Feed(foreignTables, "nft", "-f", "-")
	for i := range 10 {
		l.apply(web(1 + i%3))
	}
	l.node.Run("nft", "delete element inet fairlead-nat addresses4 { 192.0.2.10 }")
	testkit.Until(t, "one more repair", func() bool { return valueOf(t, l.nat.metrics.repairs) > repairs })
	if now := valueOf(t, l.nat.metrics.repairs); now != repairs+1 {
		t.Errorf("%v repairs, want one", now-repairs)
	}
	testkit.Until(t, "the kernel's word", func() bool { return heard.Load() > 0 })
	if n := heard.Load(); n != 1 { // the kernel tells in order
		t.Errorf("%d changes are heard of, want one", n)
	}
}

// withoutWays is a listing of the table without what packets leave in it.
func withoutWays(listing string) string {
	return regexp.MustCompile(`(set ways \{[^{}]*flags dynamic,timeout)\s+elements = \{[^{}]*\}`).ReplaceAllString(listing, "$1")
}

// hears counts what is heard of from now on until the test ends.
func hears(t *testing.T, n *NAT) *atomic.Int64 {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var heard atomic.Int64
	heard.Store(-1)
	ended := make(chan error, 1)
	go func() { ended <- n.edge.Watch(ctx, func() { heard.Add(1) }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	testkit.Until(t, "somebody to listen", func() bool { return heard.Load() >= 0 })
	return &heard
}

// What is found missing when a change is made is put right by that change.
func TestChangeOfADamagedTableRepairsIt(t *testing.T) {
	l := newLab(t)
	l.apply(web(1, 2))
	for _, program := range []string{"delete table inet fairlead-nat", "flush map inet fairlead-nat slots4"} {
		l.node.Run("nft", program)
		l.apply(web(1))
		l.want("after "+program, l.client, "tcp", at(vip4, 80), "served")
		l.apply(web(1, 2))
	}
}

// Run leaves a table alone as long as nobody said what shall be in it.
func TestRunTouchesNothingBeforeTheFirstState(t *testing.T) {
	l := newLab(t)
	l.apply(web(1))
	fresh := l.newNAT()
	if err := fresh.repair(context.Background()); err != nil {
		t.Fatal(err)
	}
	l.want("untouched", l.client, "tcp", at(vip4, 80), "served")
}

// K8: SCTP is translated where the kernel tracks it, and reported where not.
// Rule: K8.
func TestSCTPIsTranslatedOrReported(t *testing.T) {
	sctp := desired.Frontend{Name: "sig", Port: desired.Port{Protocol: 132, Number: 36412}}
	s := &desired.Service{Name: "a/b", Addresses: []netip.Addr{vip4}, Frontends: []desired.Frontend{tcp80, sctp}, Endpoints: podEndpoints(1)}
	without := planOf(Config{Node: "n1", WithoutSCTP: true}, []*desired.Service{s})
	problems := without.Problems()
	if len(problems) != 1 || problems[0].Address != vip4 || !strings.Contains(problems[0].Why, "192.0.2.10:36412 sctp for a/b: this kernel does not track SCTP") {
		t.Errorf("problems: %v", problems)
	}
	for key := range without.Ruleset().Elements["services4"] {
		if key[4] == 132 {
			t.Error("SCTP is translated by a kernel that cannot")
		}
	}
	l := newLab(t)
	s.Endpoints[0].Ports = append(s.Endpoints[0].Ports, desired.EndpointPort{Name: "sig", Port: desired.Port{Protocol: 132, Number: 9}})
	if l.nat.planner.config.WithoutSCTP {
		t.Skip("this kernel does not track SCTP")
	}
	l.apply(s)
	if rules := l.node.Run("nft", "list", "map", "inet", TableName, "slots4"); !strings.Contains(rules, "192.0.2.10 . sctp . 36412 . 0x00000000 : 10.0.1.2 . 9") {
		t.Errorf("SCTP is not translated: %s", rules)
	}
}

// Without permission there is one line that says what is missing.
func TestWithoutPermissionTheErrorNamesTheRemedy(t *testing.T) {
	ns := netnstest.New(t, "node")
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		result <- func() error {
			if err := unix.Setns(ns.FD(), unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("enter: %w", err)
			}
			header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			var none [2]unix.CapUserData
			if err := unix.Capset(&header, &none[0]); err != nil {
				return fmt.Errorf("drop capabilities: %w", err)
			}
			n, err := New(Options{Node: "n1"})
			if err != nil {
				return err
			}
			_, err = n.apply(context.Background(), "", nil)
			return err
		}()
	}()
	err := <-result
	if !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "table inet fairlead-nat") ||
		!strings.HasSuffix(err.Error(), "(the agent needs CAP_NET_ADMIN)") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error: %v", err)
	}
}

// Two Services that claim one frontend: the first has it, the other is reported.
func TestFrontendOfTwoServicesIsReported(t *testing.T) {
	a, b := web(1), web(2)
	b.Name = "shop/zoo"
	p := planOf(Config{Node: "n1"}, []*desired.Service{b, a})
	problems := p.Problems()
	if len(problems) != 4 || problems[0].Why != "translate 192.0.2.10:53 udp for shop/zoo: it is shop/web's already" {
		t.Errorf("problems: %v", problems)
	}
}

// K43: with 10,000 Services of 10 endpoints, a change of one endpoint touches only what it concerns, and takes a small part of the processor time of
// all of them. How long it takes by the clock `make bench` tells (nat_update_ms).
// Rule: K43.
func TestOneEndpointOf100000CostsWhatItConcerns(t *testing.T) {
	ns := netnstest.New(t, "node")
	n, err := New(Options{Node: "n1", NetNS: ns.FD()})
	if err != nil {
		t.Fatal(err)
	}
	services := manyServices(10000, 10)
	apply := func() time.Duration {
		t.Helper()
		start := processorTime(t)
		if failed, err := n.apply(context.Background(), "", services); err != nil || len(failed) > 0 {
			t.Fatal(err, failed)
		}
		return processorTime(t) - start
	}
	all := apply()
	t.Logf("all anew: %s", all)
	least := all // garbage of before is collected in some
	for i := range 5 {
		changed := *services[i*1999]
		changed.Endpoints = changed.Endpoints[:9-i]
		services[i*1999] = &changed
		added := valueOf(t, n.metrics.elements.WithLabelValues("add"))
		took := apply()
		t.Logf("one endpoint less: %s", took)
		least = min(least, took)
		if touched := valueOf(t, n.metrics.elements.WithLabelValues("add")) - added; touched > 2 {
			t.Errorf("%v elements written", touched)
		}
	}
	if least > all/10 {
		t.Errorf("one endpoint took %s at least, and all of them %s", least, all)
	}
	if n, err = New(Options{Node: "n1", NetNS: ns.FD()}); err != nil {
		t.Fatal(err)
	}
	t.Logf("adopted: %s", apply())
	if written := valueOf(t, n.metrics.elements.WithLabelValues("add")); written > 0 {
		t.Errorf("adopting wrote %v elements", written)
	}
}

// processorTime is what this process has had, in the kernel too, which changes nftables in its name.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// valueOf reads a counter.
func valueOf(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// manyServices have an address and a TCP port each.
func manyServices(n, endpoints int) []*desired.Service {
	var out []*desired.Service
	for i := range n {
		s := &desired.Service{
			Name: fmt.Sprintf("many/s%05d", i), Addresses: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)})},
			Frontends: []desired.Frontend{tcp80},
		}
		for e := range endpoints {
			s.Endpoints = append(s.Endpoints, desired.Endpoint{
				Address: netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), byte(e)}), Node: "n2", Ready: true,
				Ports: []desired.EndpointPort{{Name: tcp80.Name, Port: desired.Port{Protocol: 6, Number: podPort}}},
			})
		}
		out = append(out, s)
	}
	return out
}
