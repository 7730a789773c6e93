// SPDX-License-Identifier: Apache-2.0

package records_test

import (
	"net/http"
	"net/netip"
	"testing"
	"time"

	"connectrpc.com/connect"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/records"
	"fairlead.io/fairlead/fsm"
)

// serve puts a service behind a real API server and gives a client for each role.
func serve(t testing.TB, o records.Options) func(role pki.Role) *admin.Client {
	t.Helper()
	w := grouptest.NewWorld(t)
	api := w.Serve(t, "m1", func(opts ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewRecordServiceHandler(records.New(o), opts...)
	})
	return func(role pki.Role) *admin.Client { return w.Client(t, role, "m2", api.Address) }
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// furnish puts something of every kind into a record.
func furnish(t testing.TB, g *grouptest.Group) {
	t.Helper()
	tcp := func(n uint16) fsm.Port { return fsm.Port{Protocol: fsm.TCP, Number: n} }
	web := fsm.Service{
		ID: "shop/web", UID: "u-web", Version: 41, Rare: &fsm.Rare{External: []netip.Addr{addr("192.0.2.10")}, SharingKey: "edge"},
		Frontends: []fsm.Frontend{{Name: "http", Port: tcp(80), NodePort: 30080}, {Name: "https", Port: tcp(443)}},
		Endpoints: []fsm.Endpoint{
			{Address: addr("10.0.1.5"), Node: "n1", Ready: true, Serving: true, Offer: &fsm.Offer{Ports: []fsm.EndpointPort{{Name: "http", Port: tcp(8080)}}}},
			{Address: addr("10.0.2.5"), Node: "n2", Serving: true, Terminating: true},
		},
	}
	late := fsm.Service{ID: "shop/late", UID: "u-late", Rare: &fsm.Rare{Requested: []netip.Addr{addr("2001:db8::10")}}, Local: true, AllNodes: true}
	late.Pending = fsm.Pending{Code: "no-pool", Text: "no pool holds 2001:db8::10; add it to one"}
	g.Apply(t,
		&fsm.PutPool{Pool: fsm.Pool{Name: "edge", AutoAssign: true, Version: 7, Ranges: []fsm.Range{{From: addr("192.0.2.0"), To: addr("192.0.2.127")}}}},
		&fsm.PutPool{Pool: fsm.Pool{Name: "six", Ranges: []fsm.Range{{From: addr("2001:db8:1::"), To: addr("2001:db8:1:0:ffff:ffff:ffff:ffff")}}}},
		&fsm.PutNode{ID: "n1", UID: "u-n1", Version: 5, Addresses: []netip.Addr{addr("198.51.100.1"), addr("2001:db8:f::1")}, Eligible: true},
		&fsm.PutNode{ID: "n2", UID: "u-n2", Addresses: []netip.Addr{addr("198.51.100.2")}, Why: "cordoned"},
		&fsm.RegisterBoot{Node: "n1", Boot: "boot-1"},
		&fsm.PutService{Service: web}, &fsm.PutService{Service: late},
		&fsm.Allocate{Address: addr("192.0.2.10"), Service: "shop/web", Pool: "edge", Ports: []fsm.Port{tcp(80), tcp(443)}, SharingKey: "edge"},
		&fsm.SetRoute{Prefix: netip.MustParsePrefix("192.0.2.10/32"), Hops: []fsm.HopSpec{{Node: "n1", Address: addr("198.51.100.1")}, {Node: "n2", Address: addr("198.51.100.2")}}},
	)
	now := g.Read().Revision()
	g.Apply(t,
		&fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: "n1", Boot: "boot-1", Upto: now}}},
		&fsm.ReportMember{Server: "m1-a1b2", Name: "m1", Raft: "192.0.2.201:7444", API: "192.0.2.201:7443", Format: fsm.NewestFormat, Version: "v0.1.0", Run: "r1"},
	)
	now = g.Read().Revision()
	g.Apply(t,
		&fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{{Server: "m1-a1b2", Run: "r1", Upto: now}}},
		&fsm.PutPeer{Peer: fsm.Peer{Name: "tor", Address: addr("198.51.100.254"), ASN: 65001, LocalASN: 65000, IPv4: true, IPv6: true, HoldTime: 30 * time.Second, PasswordFrom: "env:TOR_MD5"}},
		&fsm.PutAdvertisement{Advertisement: fsm.Advertisement{Name: "default", Pools: []fsm.PoolName{"edge"}, Communities: []uint32{65000<<16 | 100}}},
		&fsm.PutNodeConfig{Config: fsm.NodeConfig{Switches: []netip.Addr{addr("198.51.100.254")}}},
		&fsm.PutDriver{Driver: fsm.Driver{
			Name: "shop/hw", UID: "u-hw", URL: "http://192.0.2.80:8080", Timeouts: []fsm.WebhookTimeout{{Webhook: "ensureBackend", Timeout: 5 * time.Second}},
			AcceptsDryRun: true, Secret: "hw-token",
		}},
		&fsm.PutLoadBalancer{
			ID: "LoadBalancer/shop/edge/u-lb", Driver: "shop/hw", Info: []fsm.KV{{Key: "id", Value: "lb-1"}}, Spec: []fsm.KV{{Key: "pool", Value: "dmz"}},
			Attributes: []fsm.KV{{Key: "algo", Value: "rr"}}, UID: "u-lb", Synced: true, Ensure: fsm.EnsurePolicy{Policy: "Always", Period: 30 * time.Second},
		},
		&fsm.PutBinding{
			ID: "shop/b1", Balancer: "LoadBalancer/shop/edge/u-lb", Owner: "BackendGroup/shop/web/u1", Address: "10.0.1.5:8080", Parameters: []fsm.KV{{Key: "weight", Value: "10"}},
			Backend: fsm.Backend{Kind: "Pod", Name: "web-0", UID: "u-pod", Port: 8080, Protocol: "TCP", Target: "10.0.1.5"}, Attributes: []fsm.KV{{Key: "algo", Value: "rr"}},
		},
		&fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: "shop/b1", Deadline: 10 * time.Second},
		&fsm.GrantLease{VIP: addr("192.0.2.10"), Holder: "n1", Term: 3 * time.Second},
		&fsm.PutRegister{ID: "shop/pin", UID: "u-pin", Version: 2, Spec: []byte("v1\n")},
		&fsm.PutHold{ID: "h1", Of: "services", Subjects: []string{"a/b", "a/c"}, Why: "12 of 12 services are missing in a list"},
		&fsm.ObserveView{Source: "cluster", Cluster: "c-uid", Versions: []fsm.KindVersion{{Kind: "Service", Version: 99}}},
		&fsm.BeginMove{Service: "shop/late", Node: "n1"},
		&fsm.PutPolicy{Policy: fsm.Policy{
			ID: "BalancingPolicy/legacy-db", UID: "u-db", Version: 8, Number: 31007, Created: 1_789_000_000, EveryNode: true, Outside: true, Mode: "address", SpareOwn: true,
			Captures: []fsm.Capture{{Address: addr("169.254.77.1"), Port: tcp(5432), Target: 6432}},
			Backends: []fsm.PolicyBackend{{Address: addr("10.20.0.11"), Ready: true}, {Address: addr("10.20.0.12"), Ready: true}},
			Probe:    fsm.Probe{Type: "HTTP", Path: "/ok", Statuses: []uint32{200, 204}, Interval: 10 * time.Second, Timeout: 2 * time.Second, Healthy: 1, Unhealthy: 3},
		}},
		&fsm.SetPolicyHealth{ID: "BalancingPolicy/legacy-db", UID: "u-db", Verdicts: []fsm.ProbeVerdict{
			{Address: addr("10.20.0.11"), Port: tcp(6432), Say: 2, Of: 3}, {Address: addr("10.20.0.12"), Port: tcp(6432), Say: 3, Of: 4},
		}},
		&fsm.PutPolicy{Policy: fsm.Policy{
			ID: "LocalRedirectPolicy/dns", UID: "u-dns", Nodes: []fsm.NodeID{"n1"}, Service: "kube-system/kube-dns", Mode: "local", FallThrough: true,
			Backends: []fsm.PolicyBackend{{Address: addr("10.0.1.9"), Node: "n1", Pod: "kube-system/dns-0", UID: "u-pod"}},
			Pending:  fsm.Pending{Code: "no-service", Text: "there is no Service kube-system/kube-dns"},
		}},
		&fsm.PutService{Service: fsm.Service{
			ID: "shop/probed", UID: "u-probed", Version: 9, Frontends: []fsm.Frontend{{Name: "http", Port: tcp(80)}}, Pending: fsm.Pending{Code: "no-pool", Text: "there is no pool"},
			Rare:      &fsm.Rare{Probe: fsm.Probe{Type: "TCP", Interval: 10 * time.Second, Timeout: 2 * time.Second, Healthy: 1, Unhealthy: 3}},
			Endpoints: []fsm.Endpoint{{Address: addr("10.0.1.21"), Node: "n1", Serving: true, Failing: true}, {Address: addr("10.0.1.22"), Node: "n2", Ready: true, Serving: true}},
		}},
		&fsm.JudgeService{ID: "shop/probed", UID: "u-probed", Verdicts: []fsm.ProbeVerdict{{Address: addr("10.0.1.21"), Say: 2, Of: 3}}},
		&fsm.RegisterHost{ID: "edge-1", Boot: "b7", Addresses: []netip.Addr{addr("198.51.100.77"), addr("2001:db8::77")}, Admit: true},
		&fsm.RegisterHost{ID: "edge-2", Admit: true},
		&fsm.SetTunnels{Settings: fsm.TunnelSettings{
			Range4: netip.MustParsePrefix("10.250.0.0/16"), Range6: netip.MustParsePrefix("fd00:250::/64"), Port: 7446, VNI: 7446,
		}},
		&fsm.PutTunnel{Host: "n1", Underlay: addr("198.51.100.1")}, &fsm.PutTunnel{Host: fsm.HostTunnel("edge-1"), Underlay: addr("198.51.100.77")}, &fsm.PutTunnel{Host: "n2", Underlay: addr("198.51.100.2")},
		&fsm.ReleaseTunnel{Host: "n2"},
		&fsm.Revoke{Of: "agent", Name: "n2", Before: 1_789_000_000}, &fsm.Revoke{Of: fsm.RevokedSerial, Name: "4f1a"},
	)
	g.Apply(t, &fsm.PutL2Advertisement{Advertisement: fsm.L2Advertisement{Name: "lan", Pools: []fsm.PoolName{"lab"}, Kept: []fsm.PoolName{"lab"}, Nodes: []fsm.NodeID{"n1"}}})
}
