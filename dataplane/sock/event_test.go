// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"fairlead.io/fairlead/api/desired"
)

// Balancing §19: an event is logged with the fields of the spec, as text and as keys.
// Rule: balancing §19.
func TestEventsHaveTheFieldsOfTheSpec(t *testing.T) {
	var out bytes.Buffer
	origins := map[uint64]Origin{
		7: {Pod: "shop-1", Namespace: "shop", PodUID: "11111111-2222-3333-4444-555555555555", Container: "4f"}, 8: {},
	}
	s, err := Over(Options{
		Config: Config{Node: "n1"}, Room: room, Log: slog.New(slog.NewJSONHandler(&out, nil)),
		Events: Events{Rate: 100, Origin: func(cgroup uint64) (Origin, bool) { o, ok := origins[cgroup]; return o, ok }},
	}, newMemory())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.apply(wanted{services: held(&desired.Service{Name: "shop/web", Addresses: []netip.Addr{vip}, Frontends: []desired.Frontend{web}})}); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 4, 5, 6, 7, 8, time.FixedZone("", 3600))
	resolved := Event{
		Time: at, Cgroup: 7, PID: 42, Rule: s.ids["shop/web"], To: here.To, Backend: netip.MustParseAddrPort("10.0.0.1:8080"), Kind: Service,
		Mode: ServiceClusterIP, IPv4: true,
	}
	refused := Event{
		Time: at, Cgroup: 8, Rule: 9, To: Place{netip.MustParseAddr("fd00::1"), 53, UDP}, Failure: NoBackend, Kind: Balancing, Mode: BalancingAddress, Limited: true,
	}
	unknown, unremembered := resolved, resolved
	unknown.Cgroup, unremembered.Failure = 9, AffinityFailed
	for _, c := range []struct {
		event Event
		want  map[string]any
	}{
		{resolved, map[string]any{
			"NodeName": "n1", "ClientPodName": "shop-1", "ClientNamespace": "shop", "ClientPodUuid": "11111111-2222-3333-4444-555555555555",
			"ClientContainerId": "4f", "ClientPid": 42.0, "IsHostApp": false, "IsIpv4": true, "Protocol": "tcp", "DestIp": "192.0.2.1", "DestPort": 80.0,
			"NatIp": "10.0.0.1", "NatPort": 8080.0, "IsSuccess": true, "Failure": "", "ServiceId": float64(resolved.Rule), "PolicyName": "shop/web",
			"NatType": "service", "NatMode": "ServiceClusterIP", "RedirectHitLimit": false, "TimeStamp": "2026-03-04T04:06:07Z",
		}},
		{refused, map[string]any{
			"ClientPodName": "", "IsHostApp": true, "IsIpv4": false, "Protocol": "udp", "DestIp": "fd00::1", "NatIp": "::", "NatPort": 0.0, "IsSuccess": false,
			"Failure": "AgentNoBackend", "ServiceId": 9.0, "PolicyName": "", "NatType": "balancing", "NatMode": "balancingAddress", "RedirectHitLimit": true,
		}},
		{unknown, map[string]any{"IsHostApp": false, "ClientPodName": ""}},
		{unremembered, map[string]any{"IsSuccess": true, "Failure": "SystemUpdateAffinityFailure"}},
	} {
		out.Reset()
		s.Tell(c.event)
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatalf("%q: %v", out.String(), err)
		}
		if text := line["msg"].(string); !strings.HasPrefix(text, "formatted ebpf event: {NodeName:n1 ") || line["level"] != "INFO" {
			t.Errorf("%v", line)
		}
		for field, want := range c.want {
			if line[field] != want {
				t.Errorf("%s: %v, want %v", field, line[field], want)
			}
		}
		if len(line) != 21+3 { // and time, level, msg
			t.Errorf("%d fields: %v", len(line), line)
		}
	}
}

// Balancing §19: of each rule so many events are logged a second, and the others are counted.
// Rule: balancing §19.
func TestEventsAreLimitedByRule(t *testing.T) {
	var out bytes.Buffer
	s, err := Over(Options{Config: Config{Node: "n1"}, Room: room, Log: slog.New(slog.NewJSONHandler(&out, nil)), Events: Events{Rate: 2}}, newMemory())
	if err != nil {
		t.Fatal(err)
	}
	second := time.Unix(1000, 0)
	for i := range 5 {
		s.Tell(Event{Time: second.Add(time.Duration(i) * time.Millisecond), Rule: 1})
	}
	s.Tell(Event{Time: second.Add(time.Millisecond), Rule: 2})
	s.Tell(Event{Time: second.Add(time.Second), Rule: 1})
	if got := strings.Count(out.String(), "\n"); got != 4 {
		t.Errorf("%d lines of 7 events, want 4", got)
	}
	if logged, skipped := testutil.ToFloat64(s.metrics.events.WithLabelValues("logged")), testutil.ToFloat64(s.metrics.events.WithLabelValues("skipped")); logged != 4 || skipped != 3 {
		t.Errorf("%v logged, %v skipped, want 4 and 3", logged, skipped)
	}
}

// Balancing §20: calls are counted by what decided and what failed, whether or not they are logged.
// Rule: balancing §20.
func TestCallsAreCountedByCause(t *testing.T) {
	metrics := prometheus.NewRegistry()
	s, err := Over(Options{Config: Config{Node: "n1"}, Room: room, Events: Events{Rate: 1}, Metrics: metrics}, newMemory())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []Event{
		{Kind: Service, Mode: ServiceClusterIP, Failure: NoBackend}, {Kind: Service, Mode: ServiceClusterIP, Failure: NoBackend}, {Kind: Service, Mode: ServiceClusterIP},
		{Kind: NodePort, Mode: ServiceNodePort, Failure: BackendNotFound}, {Kind: Balancing, Mode: BalancingAddress, Failure: RecordFailed},
	} {
		s.Tell(e)
	}
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(`
# HELP fairlead_sock_told_calls_total Calls of clients that programs told of, by what decided and what failed, if anything did.
# TYPE fairlead_sock_told_calls_total counter
fairlead_sock_told_calls_total{failure="AgentFindBackendFailure",kind="nodePort",mode="ServiceNodeport"} 1
fairlead_sock_told_calls_total{failure="AgentNoBackend",kind="service",mode="ServiceClusterIP"} 2
fairlead_sock_told_calls_total{failure="",kind="service",mode="ServiceClusterIP"} 1
fairlead_sock_told_calls_total{failure="SystemUpdateNatRecordFailure",kind="balancing",mode="balancingAddress"} 1
`), "fairlead_sock_told_calls_total"); err != nil {
		t.Error(err)
	}
}
