// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
)

// story is what a small group did, so that every table has rows as they come about, not as a test imagines
// them. Each command is an entry of its own, at the index of its place.
func story() []fsm.Command {
	vip, next := netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("198.51.100.1")
	backend := []fsm.KV{{Key: "weight", Value: "10"}}
	return []fsm.Command{
		1: &fsm.InitGroup{Group: "group-1", Format: fsm.NewestFormat, Settings: fsm.Settings{HistoryLimit: 4}},
		2: &fsm.ReportMember{
			Server: "m1-a1", Name: "m1", Raft: "203.0.113.1:7444", API: "203.0.113.1:7443", Format: fsm.NewestFormat, Version: "0.1.0", Run: "r1",
		},
		3: &fsm.PutPool{Pool: fsm.Pool{Name: "main", AutoAssign: true, Ranges: []fsm.Range{
			{From: vip, To: netip.MustParseAddr("192.0.2.20")},
			{From: netip.MustParseAddr("2001:db8::1"), To: netip.MustParseAddr("2001:db8::ff")},
		}}},
		4: &fsm.PutNode{ID: "node-1", UID: "u1", Version: 5, Addresses: []netip.Addr{next}, Eligible: true},
		5: &fsm.RegisterBoot{Node: "node-1", Boot: "boot-1"},
		6: &fsm.PutService{Service: fsm.Service{
			ID: "shop/checkout", UID: "u2", Version: 7, Rare: &fsm.Rare{SharingKey: "edge", Affinity: 3 * time.Hour, SourceRanges: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}},
			Frontends: []fsm.Frontend{{Name: "https", Port: fsm.Port{Protocol: fsm.TCP, Number: 443}, NodePort: 30443}},
			Endpoints: []fsm.Endpoint{{
				Address: netip.MustParseAddr("203.0.113.77"), Node: "node-1", Ready: true, Serving: true,
				Offer: &fsm.Offer{Ports: []fsm.EndpointPort{{Name: "https", Port: fsm.Port{Protocol: fsm.TCP, Number: 8443}}}},
			}},
		}},
		7: &fsm.Allocate{
			Address: vip, Service: "shop/checkout", Pool: "main", SharingKey: "edge",
			Ports: []fsm.Port{{Protocol: fsm.TCP, Number: 443}},
		},
		8:  &fsm.SetRoute{Prefix: fsm.HostPrefix(vip), Hops: []fsm.HopSpec{{Node: "node-1", Address: next}}},
		9:  &fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: "node-1", Boot: "boot-1", Upto: fsm.Revision{Epoch: 1, Index: 8}}}},
		10: &fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{{Server: "m1-a1", Run: "r1", Upto: fsm.Revision{Epoch: 1, Index: 9}}}},
		11: &fsm.PutPeer{Peer: fsm.Peer{
			Name: "switch-1", Address: netip.MustParseAddr("203.0.113.254"), ASN: 64512, LocalASN: 64513, IPv4: true, HoldTime: 9 * time.Second,
		}},
		12: &fsm.PutAdvertisement{Advertisement: fsm.Advertisement{
			Name: "all", Pools: []fsm.PoolName{"main"}, Peers: []fsm.PeerName{"switch-1"}, Communities: []uint32{64512<<16 | 100},
		}},
		13: &fsm.PutNodeConfig{Config: fsm.NodeConfig{Switches: []netip.Addr{netip.MustParseAddr("198.51.100.254")}, InTable: 201, OutTable: 202, FwMark: 0x2000}},
		14: &fsm.GrantLease{VIP: vip, Holder: "node-1", Term: 2 * time.Second},
		15: &fsm.PutRegister{ID: "policy/a", UID: "u3", Version: 3, Spec: []byte{1, 2, 3}},
		16: &fsm.PutHold{ID: "h1", Of: "Service", Subjects: []string{"shop/checkout", "shop/cart"}, Why: "more than half of all"},
		17: &fsm.ObserveView{Source: "kubernetes", Cluster: "u0", Versions: []fsm.KindVersion{{Kind: "Service", Version: 7}}},
		18: &fsm.PutLoadBalancer{ID: "drv/lb-1", Driver: "drv", Info: []fsm.KV{{Key: "id", Value: "lb-1"}}, Synced: true},
		19: &fsm.PutBinding{ID: "b1", Balancer: "drv/lb-1", Owner: "pod/shop/checkout-0/u4", Address: "203.0.113.77:8443", Parameters: backend},
		20: &fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: "b1", Deadline: 10 * time.Second},
		21: &fsm.FinishOperation{
			Subject: fsm.SubjectOf(fsm.IdentityOf("drv", []fsm.KV{{Key: "id", Value: "lb-1"}}), "203.0.113.77:8443", "b1"), Attempt: fsm.Revision{Epoch: 1, Index: 20},
			Result: fsm.ResultSucceeded, Returned: []fsm.KV{{Key: "id", Value: "backend-9"}},
		},
		22: &fsm.PutBinding{ID: "b2", Balancer: "drv/lb-1", Owner: "pod/shop/checkout-1/u5", Parameters: backend},
		23: &fsm.BeginOperation{Action: fsm.ActionAddress, Binding: "b2", Deadline: 10 * time.Second},
		24: &fsm.PutPool{Pool: fsm.Pool{Name: "old", Ranges: []fsm.Range{{From: netip.MustParseAddr("198.51.100.128"), To: netip.MustParseAddr("198.51.100.130")}}}},
		25: &fsm.PutRegister{ID: "policy/b", UID: "u6", Version: 1},
		26: &fsm.DeleteRegister{ID: "policy/b"},
		27: &fsm.PutEnrolment{ID: fsm.EnrolmentID(strings.Repeat("0a", 32)), Node: "node-2", TTL: time.Hour},
		28: &fsm.PutDriver{Driver: fsm.Driver{
			Name: "drv", UID: "u7", URL: "http://192.0.2.80:8080", Timeouts: []fsm.WebhookTimeout{{Webhook: "ensureBackend", Timeout: 5 * time.Second}}, Secret: "token",
		}},
		29: &fsm.PutLoadBalancer{ID: "LoadBalancer/shop/edge/u8", Driver: "drv", Spec: []fsm.KV{{Key: "pool", Value: "dmz"}}, Attributes: backend, UID: "u8"},
		30: &fsm.BeginOperation{Action: fsm.ActionCreateBalancer, Balancer: "LoadBalancer/shop/edge/u8", Deadline: 10 * time.Second},
		31: &fsm.AdoptBinding{
			Binding: fsm.PutBinding{
				ID: "shop/8e37c738700571d3078073269cf4474d", Balancer: "drv/lb-1", Owner: "BackendGroup/shop/web/u9", Address: "203.0.113.78:8443", Parameters: backend,
				Backend: fsm.Backend{Kind: "Pod", Name: "web-0", UID: "u10", Port: 8443, Protocol: "TCP", Target: "203.0.113.78"},
			},
			UID: "u11", Returned: []fsm.KV{{Key: "id", Value: "backend-4"}}, Registered: true, Origin: fsm.Origin{UID: "u11", Made: 1_789_000_000},
		},
		32: &fsm.NewEpoch{Group: "group-1", Epoch: 2, Cause: "restore"},
		33: &fsm.BeginDrain{Of: fsm.DrainNode, Name: "node-1"},
		34: &fsm.PutL2Advertisement{Advertisement: fsm.L2Advertisement{Name: "lan", Pools: []fsm.PoolName{"public"}, Kept: []fsm.PoolName{"public"}, EveryNode: true}},
		35: &fsm.ReportSpeakers{Marks: []fsm.SpeakerMark{{Node: "node-1", Boot: "boot-1", Speaks: true, Withdrawn: fsm.Revision{Epoch: 1, Index: 20},
			Sessions: fsm.Sessions{Told: true, Open: []fsm.Reach{{Peer: "tor-a", IPv4: true}}}}}},
		36: &fsm.PutNode{ID: "node-2", UID: "u12", Version: 2, Eligible: true},
		37: &fsm.BeginMove{Service: "shop/checkout", Node: "node-2"},
		38: &fsm.PutPolicy{Policy: fsm.Policy{
			ID: "BalancingPolicy/db", UID: "u13", Version: 4, Created: 1_789_000_000, EveryNode: true, Outside: true, Mode: "address",
			Captures: []fsm.Capture{{Address: netip.MustParseAddr("169.254.77.1"), Port: fsm.Port{Protocol: fsm.TCP, Number: 5432}, Target: 6432}},
			Backends: []fsm.PolicyBackend{{Address: netip.MustParseAddr("198.51.100.11"), Ready: true}},
			Probe:    fsm.Probe{Type: "TCP", Interval: 10 * time.Second, Timeout: 2 * time.Second, Healthy: 1, Unhealthy: 3},
		}},
		39: &fsm.SetPolicyHealth{ID: "BalancingPolicy/db", UID: "u13", Verdicts: []fsm.ProbeVerdict{
			{Address: netip.MustParseAddr("198.51.100.11"), Port: fsm.Port{Protocol: fsm.TCP, Number: 6432}, Say: 2, Of: 3},
		}},
		40: &fsm.RegisterHost{ID: "edge-1", Boot: "boot-2", Addresses: []netip.Addr{netip.MustParseAddr("198.51.100.77")}, Admit: true},
		41: &fsm.EndQuarantine{Since: fsm.Revision{Epoch: 2, Index: 32}},
		42: &fsm.SetTunnels{Settings: fsm.TunnelSettings{
			Range4: netip.MustParsePrefix("10.250.0.0/16"), Range6: netip.MustParsePrefix("fd00:250::/64"), Port: 7789, VNI: 7789, MTU: 1400,
		}},
		43: &fsm.PutTunnel{Host: "node-1", Underlay: netip.MustParseAddr("198.51.100.1")},
		44: &fsm.PutTunnel{Host: "node-2", Underlay: netip.MustParseAddr("198.51.100.2")},
		45: &fsm.ReleaseTunnel{Host: "node-2"},
		46: &fsm.ReportPolicySupport{Node: "node-1", Boot: "boot-1", Carries: true},
		47: &fsm.NumberNode{ID: "node-1", Number: 31007},
		48: &fsm.PutPolicy{Policy: fsm.Policy{ID: "BalancingPolicy/db", UID: "u14", Version: 5, EveryNode: true, Mode: "address"}},
		49: &fsm.PutService{Service: fsm.Service{
			ID: "shop/probed", UID: "u15", Version: 1, Frontends: []fsm.Frontend{{Port: fsm.Port{Protocol: fsm.TCP, Number: 80}}},
			Endpoints: []fsm.Endpoint{{Address: netip.MustParseAddr("10.0.0.9"), Serving: true, Failing: true}},
			Rare:      &fsm.Rare{Probe: fsm.Probe{Type: "HTTP", Path: "/healthz", Interval: 10 * time.Second, Timeout: 2 * time.Second, Healthy: 1, Unhealthy: 3}},
		}},
		50: &fsm.JudgeService{ID: "shop/probed", UID: "u15", Verdicts: []fsm.ProbeVerdict{{Address: netip.MustParseAddr("10.0.0.9"), Say: 2, Of: 3}}},
		51: &fsm.Revoke{Of: "agent", Name: "node-2"},
		52: &fsm.Revoke{Of: fsm.RevokedSerial, Name: "0a1b2c"},
		54: &fsm.ReportAbsences{
			Members: []fsm.MemberAbsence{{Server: "m1-a1", Run: "r1", Absence: fsm.Absence{For: time.Minute, Holds: 631 * time.Second}}},
		},
		53: &fsm.ReportSessions{Members: []fsm.MemberSessions{{Server: "m1-a1", Run: "r1", Open: []fsm.Reach{{Peer: "switch-1", IPv4: true}}}}},
	}
}

// tell applies a story, each command as an entry of its own.
func tell(t *testing.T, story []fsm.Command) *fsm.State {
	t.Helper()
	s := fsm.New()
	for i, c := range story {
		if c == nil {
			continue
		}
		_, epoch, _ := s.Identity()
		data, err := fsm.EncodeEntry(epoch, []fsm.Proposal{{Actor: "test", Reason: "story", AtUnixMilli: 1_790_000_000_000, Command: c}})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range s.ApplyEntries([]fsm.LogEntry{{Index: fsm.Index(i), Term: 3, Data: data}})[0] {
			if o.Err() != nil {
				t.Fatalf("entry %d: %v", i, o.Err())
			}
		}
	}
	return s
}

func snapshotOf(t *testing.T, s *fsm.State) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Freeze().Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func summary(t *testing.T, s *fsm.State) string {
	t.Helper()
	counts := map[fsm.Table]int{}
	for _, table := range fsm.Tables() {
		if n := len(fsm.List[fsm.Record](s.Read(), table)); n > 0 { // a table of a later format has none
			counts[table] = n
		}
	}
	return toJSON(t, map[string]any{"applied": s.Applied(), "digest": s.Digest().String(), "rows": counts})
}

func TestSnapshotEncodingIsCurrent(t *testing.T) {
	s := tell(t, story())
	for _, table := range fsm.Tables() {
		if len(fsm.List[fsm.Record](s.Read(), table)) == 0 {
			t.Errorf("table %s has no row in this snapshot", table)
		}
	}
	title := fmt.Sprintf("Snapshot of a small group, format %d.", fsm.NewestFormat)
	current(t, "snapshot", golden{title: title, value: summary(t, s), data: snapshotOf(t, s)})
}

// A snapshot of any format restores to the record that it was taken of, and is written again byte by byte.
func TestReleasedSnapshotsRestoreAndEncodeToTheSameBytes(t *testing.T) {
	released(t, "snapshot", func(t *testing.T, g golden) {
		s := fsm.New()
		if err := s.Restore(bytes.NewReader(g.data)); err != nil {
			t.Fatal(err)
		}
		if got := summary(t, s); got != g.value {
			t.Errorf("restores to\n%s\nwant\n%s", got, g.value)
		}
		if again := snapshotOf(t, s); !bytes.Equal(again, g.data) {
			t.Errorf("written as\n%x\nwant\n%x", again, g.data)
		}
	})
}

// Damage anywhere in a snapshot is noticed, and leaves the State as it was: every byte counts.
func TestDamagedSnapshotsAreRefused(t *testing.T) {
	data := snapshotOf(t, tell(t, story()))
	s := tell(t, story()[:5])
	before := snapshotOf(t, s)
	refused := func(what string, damaged []byte) {
		t.Helper()
		if err := s.Restore(bytes.NewReader(damaged)); err == nil {
			t.Fatalf("%s: restored", what)
		}
	}
	step := 1
	if testing.Short() {
		step = 5 // as rapid checks a fifth then
	}
	for i := 0; i < len(data); i += step {
		refused(fmt.Sprintf("cut at %d", i), data[:i])
	}
	for i := 0; i < len(data); i += step {
		damaged := bytes.Clone(data)
		damaged[i] ^= 1
		refused(fmt.Sprintf("bit flipped in byte %d", i), damaged)
	}
	refused("a byte more", append(bytes.Clone(data), 0))
	if !bytes.Equal(snapshotOf(t, s), before) {
		t.Fatal("a refused snapshot changed the record")
	}
}
