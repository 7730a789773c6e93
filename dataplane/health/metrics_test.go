// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/fsm"
)

// Balancing §14, §20: metrics tell of each probed address whether it is good, by policy and by Service, once also where two captured places lead
// to it; of those that nobody could ask they tell nothing, and of so many at most.
// Rule: balancing §20.
func TestStatesOfProbedAddressesAreToBeSeen(t *testing.T) {
	good, bad, void := netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("198.51.100.2"), netip.MustParseAddr("2001:db8::3")
	found := answers{good: {OK: true}, bad: {}, void: {Void: true}}
	metrics := prometheus.NewRegistry()
	c, err := New(Options{
		Node: "n1", Prober: found, Random: rand.New(rand.NewPCG(1, 2)), Log: slog.New(slog.DiscardHandler), Metrics: metrics,
		Limits: Limits{Targets: 10_000, UnderWay: 10_000},
	})
	if err != nil {
		t.Fatal(err)
	}
	probe := desired.Probe{Type: desired.ProbeTCP, Interval: time.Hour, Timeout: time.Second, Healthy: 1, Unhealthy: 1}
	policy := &desired.Policy{Name: "BalancingPolicy/db", EveryNode: true, Mode: desired.ToAddresses, Probe: probe}
	for _, port := range []uint16{80, 81} {
		policy.Captures = append(policy.Captures, desired.Capture{Address: netip.MustParseAddr("169.254.77.1"), Port: desired.Port{Protocol: tcp, Number: port}, Target: 6432})
	}
	service := &desired.Service{Name: "shop/web", Probe: probe}
	for a := range found {
		policy.Backends = append(policy.Backends, desired.PolicyBackend{Address: a})
		service.Endpoints = append(service.Endpoints, desired.Endpoint{Address: a, Ready: true, Ports: []desired.EndpointPort{{Port: desired.Port{Protocol: tcp, Number: 8080}}}})
	}
	ask := func() {
		for _, target := range c.book.Begin(c.now() + 2*time.Second) { // by when all first probes are due
			c.probe(context.Background(), target)
		}
	}
	shows := func(lines string) {
		t.Helper()
		if lines != "" {
			lines = `
# HELP fairlead_health_address_good Whether an address that is probed is good, by policy or Service; none while nothing is known of it.
# TYPE fairlead_health_address_good gauge
` + lines
		}
		if err := testutil.GatherAndCompare(metrics, strings.NewReader(lines), "fairlead_health_address_good"); err != nil {
			t.Error(err)
		}
	}
	c.Take([]*desired.Policy{policy}, []desired.Source{desired.Held{Is: service}}, fsm.Revision{})
	shows("")
	ask()
	shows(`fairlead_health_address_good{address="198.51.100.1",policy="BalancingPolicy/db",port="6432/tcp"} 1
fairlead_health_address_good{address="198.51.100.1",policy="Service/shop/web",port=""} 1
fairlead_health_address_good{address="198.51.100.2",policy="BalancingPolicy/db",port="6432/tcp"} 0
fairlead_health_address_good{address="198.51.100.2",policy="Service/shop/web",port=""} 0
`)
	many := &desired.Policy{Name: "BalancingPolicy/many", EveryNode: true, Mode: desired.ToAddresses, Probe: probe, Captures: policy.Captures[:1]}
	for i := range maxShown + 10 {
		a := netip.MustParseAddr(fmt.Sprintf("203.0.%d.%d", i>>8, i&255))
		found[a] = Result{OK: true}
		many.Backends = append(many.Backends, desired.PolicyBackend{Address: a})
	}
	c.Take([]*desired.Policy{many, policy}, nil, fsm.Revision{})
	ask()
	if n, err := testutil.GatherAndCount(metrics, "fairlead_health_address_good"); err != nil || n != maxShown {
		t.Errorf("%d addresses are named (%v), want %d", n, err, maxShown)
	}
	c.Take(nil, nil, fsm.Revision{})
	shows("")
}
