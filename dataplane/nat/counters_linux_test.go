// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/nftally"
)

// counts reads the metric of packets that were turned away.
func (l *lab) turnedAway(registry *prometheus.Registry) map[string]int {
	l.t.Helper()
	families, err := registry.Gather()
	if err != nil {
		l.t.Fatal(err)
	}
	out := map[string]int{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "fairlead_nat_turned_away_total" {
				out[m.GetLabel()[0].GetValue()] = int(m.GetCounter().GetValue())
			}
		}
	}
	return out
}

// measured is the node's agent with metrics.
func (l *lab) measured() *prometheus.Registry {
	l.t.Helper()
	registry := prometheus.NewPedanticRegistry()
	n, err := New(Options{Node: "n1", ClusterCIDRs: prefixes("10.0.0.0/16", "fd00::/16"), NetNS: l.node.FD(), Metrics: registry})
	if err != nil {
		l.t.Fatal(err)
	}
	l.nat = n
	return registry
}

// K52: packets that are turned away are counted by why; those that are served are not. A comparison finds nothing to put
// right in what counts, and what was counted is not forgotten when rules are made anew.
// Rule: K52.
func TestTurnedAwayPacketsAreCountedByReason(t *testing.T) {
	l := newLab(t)
	registry := l.measured()
	ranged, empty, elsewhere := *web(1), *web(), *web(3)
	ranged.Name, ranged.Addresses, ranged.SourceRanges = "shop/ranged", addrs("192.0.2.11", "2001:db8::11"), prefixes("198.51.100.0/24", "2001:db8:f::/64")
	empty.Name, empty.Addresses = "shop/empty", addrs("192.0.2.12", "2001:db8::12")
	elsewhere.Name, elsewhere.Addresses, elsewhere.Local = "shop/elsewhere", addrs("192.0.2.13", "2001:db8::13"), true
	services := []*desired.Service{web(1), &ranged, &empty, &elsewhere}
	l.apply(services...)
	for _, c := range []struct {
		reason, outcome, network string
		to                       []netip.Addr
		port                     uint16
	}{
		{"", "served", "tcp", addrs("192.0.2.10", "2001:db8::10"), 80},
		{"no-port", "refused", "tcp", addrs("192.0.2.10", "2001:db8::10"), 81},
		{"no-endpoint", "refused", "udp", addrs("192.0.2.12", "2001:db8::12"), 53},
		{"no-local-endpoint", "silence", "udp", addrs("192.0.2.13", "2001:db8::13"), 53},
		{"source-range", "silence", "udp", addrs("192.0.2.11", "2001:db8::11"), 53},
	} {
		for _, a := range c.to {
			before := l.turnedAway(registry)
			l.want("counted", l.client, c.network, at(a, c.port), c.outcome)
			after := l.turnedAway(registry)
			for _, reason := range reasons {
				more := after[reason] - before[reason]
				if reason == c.reason && more < 1 || reason != c.reason && more != 0 {
					t.Errorf("%s to %s, port %d: %d more of %q, before %v, after %v", c.network, a, c.port, more, reason, before, after)
				}
			}
		}
	}
	was := l.turnedAway(registry)
	if change, err := l.nat.compare(t.Context()); err != nil || !change.Empty() {
		t.Errorf("counters are taken for a difference: %+v, %v", change, err)
	}
	if err := Cleanup(t.Context(), l.node.FD(), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := l.nat.compare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := l.turnedAway(registry); fmt.Sprint(now) != fmt.Sprint(was) {
		t.Errorf("the table was made anew: counted %v, before %v", now, was)
	}
	l.want("counted", l.client, "tcp", at(vip4, 81), "refused")
	if now := l.turnedAway(registry); now["no-port"] <= was["no-port"] {
		t.Errorf("a table that was made anew counts on from %v: %v", was, now)
	}
}

// K52: the size of the tables of affinity is known, whether the kernel counts it or its elements have to be listed.
// Rule: K52.
func TestSizeOfAffinityTables(t *testing.T) {
	l := newLab(t)
	registry := l.measured()
	s := web(1, 2)
	s.Affinity = time.Hour
	l.apply(s)
	for _, from := range []*netnstest.Namespace{l.client, l.pods[2]} {
		l.must(from, "tcp", at(vip4, 80))
		l.must(from, "tcp", at(vip6, 80))
		l.must(from, "udp", at(vip4, 53))
	}
	l.nat.countClients(t.Context())
	n, err := testutil.GatherAndCount(registry, "fairlead_nat_affinity_clients")
	if got := testutil.ToFloat64(l.nat.metrics.clients.all); err != nil || n != 1 || got != 6 {
		t.Errorf("%v clients are remembered, want 6 (%d metrics, %v)", got, n, err)
	}
	listed := 0
	for name, set := range l.nat.sets {
		if !set.Dynamic || name == setWays {
			continue
		}
		n, err := nftally.Listed(l.node.FD(), TableName, name)
		if err != nil {
			t.Fatal(err)
		}
		if counted, err := nftally.Elements(l.node.FD(), TableName, []string{name}, 1); err != nil || counted[name] != n {
			t.Errorf("%s: %v counted, %d listed, %v", name, counted, n, err)
		}
		listed += n
	}
	if listed != 6 {
		t.Errorf("%d clients listed, want 6", listed)
	}
	l.apply(web(1, 2))
	l.nat.countClients(t.Context())
	if got := testutil.ToFloat64(l.nat.metrics.clients.all); got != 0 {
		t.Errorf("%v clients are remembered without affinity", got)
	}
}
