// SPDX-License-Identifier: Apache-2.0

package node

import (
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/api/desired/desiredtest"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/health"
)

// Balancing §14, K50: an agent has endpoints probed of Services that ask for it, and listed addresses of policies where it carries these out.
// Rule: balancing §14.
func TestAgentsProbeForWhatTheyCarryOut(t *testing.T) {
	probe := desired.Probe{Type: desired.ProbeTCP, Interval: time.Second, Timeout: time.Second, Healthy: 1, Unhealthy: 1}
	port := desired.Port{Protocol: 6, Number: 80}
	policy, err := desired.PolicyValue(desired.Policy{
		Number: 1, EveryNode: true, Mode: desired.ToAddresses, Probe: probe,
		Captures: []desired.Capture{{Address: netip.MustParseAddr("169.254.77.1"), Port: port, Target: 80}},
		Backends: []desired.PolicyBackend{{Address: netip.MustParseAddr("198.51.100.1"), Ready: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	items := map[string][]byte{desired.PolicyKey("BalancingPolicy/p"): policy}
	for name, asks := range map[string]desired.Probe{"shop/asks": probe, "shop/not": {}} {
		items[desired.ServiceKey(name)], err = desired.ServiceValue(desired.Service{
			Name: name, Probe: asks, Endpoints: []desired.Endpoint{{Address: netip.MustParseAddr("10.244.0.1"), Ready: true, Ports: []desired.EndpointPort{{Port: port}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		sock *config.Sock
		want []string
	}{
		"with-sock":    {&config.Sock{}, []string{"BalancingPolicy/p 198.51.100.1", "Service/shop/asks 10.244.0.1"}},
		"without-sock": {nil, []string{"Service/shop/asks 10.244.0.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			checker, err := health.New(health.Options{Node: "n1", Random: rand.New(rand.NewPCG(1, 2)), Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			p := ProbingOver(config.Agent{Node: "n1", Sock: c.sock}, checker)
			var m desiredtest.Told
			m.Items(items)
			if _, err := p.Apply(t.Context(), m.State(t, nil)); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range checker.States() {
				got = append(got, s.Policy+" "+s.Address)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("probed for %q, want %q", got, c.want)
			}
		})
	}
}
