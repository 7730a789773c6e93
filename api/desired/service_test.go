// SPDX-License-Identifier: Apache-2.0

package desired_test

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

func drawPort(t *rapid.T) desired.Port {
	return desired.Port{Protocol: rapid.SampledFrom([]uint8{6, 17, 132}).Draw(t, "protocol"), Number: rapid.Uint16().Draw(t, "port")}
}

func drawService(t *rapid.T) desired.Service {
	address := rapid.SampledFrom([]netip.Addr{
		netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("198.51.100.7"),
	})
	name := rapid.SampledFrom([]string{"", "http", "dns"})
	s := desired.Service{
		Name:  rapid.SampledFrom([]string{"shop/cart", "shop/checkout", "a/b"}).Draw(t, "name"),
		Local: rapid.Bool().Draw(t, "local"), Affinity: time.Duration(rapid.IntRange(0, 86400).Draw(t, "affinity")) * time.Second,
		Scheduler:           rapid.SampledFrom([]string{"", desired.RoundRobin, desired.SourceHash, desired.ConsistentHash, "wlc"}).Draw(t, "scheduler"),
		HealthCheckNodePort: rapid.SampledFrom([]uint16{0, 30100, 65535}).Draw(t, "healthCheckNodePort"),
		InternalLocal:       rapid.Bool().Draw(t, "internal policy Local"), ClusterIPs: rapid.SampledFrom([][]netip.Addr{nil, {netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd96::1")}}).Draw(t, "cluster IPs"),
		NodePortsIPv4: rapid.Bool().Draw(t, "node ports of IPv4"), NodePortsIPv6: rapid.Bool().Draw(t, "node ports of IPv6"),
	}
	for range rapid.IntRange(0, 2).Draw(t, "addresses") {
		s.Addresses = append(s.Addresses, address.Draw(t, "address"))
	}
	for range rapid.IntRange(0, 2).Draw(t, "frontends") {
		f := desired.Frontend{Name: name.Draw(t, "name"), Port: drawPort(t), NodePort: rapid.Uint16().Draw(t, "node port")}
		for range rapid.IntRange(0, 2).Draw(t, "elsewhere") {
			f.NotOn = append(f.NotOn, address.Draw(t, "not on"))
		}
		s.Frontends = append(s.Frontends, f)
	}
	for range rapid.IntRange(0, 3).Draw(t, "endpoints") {
		e := desired.Endpoint{
			Address: address.Draw(t, "endpoint"), Node: name.Draw(t, "node"),
			Ready: rapid.Bool().Draw(t, "ready"), Serving: rapid.Bool().Draw(t, "serving"), Terminating: rapid.Bool().Draw(t, "terminating"),
			Weight: rapid.Uint16().Draw(t, "weight"), Quiesced: rapid.Bool().Draw(t, "quiesced"), Failing: rapid.Bool().Draw(t, "failing"),
		}
		for range rapid.IntRange(0, 2).Draw(t, "ports") {
			e.Ports = append(e.Ports, desired.EndpointPort{Name: name.Draw(t, "name"), Port: drawPort(t)})
		}
		for range rapid.IntRange(0, 2).Draw(t, "hints") {
			e.Hints = append(e.Hints, desired.Hint{Node: name.Draw(t, "for node"), Zone: name.Draw(t, "for zone")})
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	for range rapid.IntRange(0, 2).Draw(t, "ranges") {
		s.SourceRanges = append(s.SourceRanges, netip.MustParsePrefix("10.0.0.0/8"))
	}
	return s
}

func TestPropertyServicesComeOutAsTheyWentIn(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		want := drawService(t)
		value, err := desired.ServiceValue(want)
		must(t, err)
		m := model{desired.ServiceKey(want.Name): value}
		var steps desired.Steps
		if _, err := steps.Add(m.full(t, fsm.Revision{Epoch: 1, Index: 1})); err != nil {
			t.Fatal(err)
		}
		have := steps.State.Services()
		if len(have) != 1 || !reflect.DeepEqual(*have[0], want) {
			t.Fatalf("have %+v\nwant %+v", have, want)
		}
	})
}

// Whoever carries Services out compares pointers to see what there is to do.
func TestUnchangedServiceIsTheSamePointerInTheNextState(t *testing.T) {
	put := func(name string, local bool) *desired.Pieces {
		value, err := desired.ServiceValue(desired.Service{Name: name, Local: local})
		must(t, err)
		var p desired.Pieces
		must(t, p.Put(desired.ServiceKey(name), value))
		return &p
	}
	var steps desired.Steps
	var digest desired.Digest
	step := func(index fsm.Index, name string, local bool) []*desired.Told {
		changes, err := put(name, local).Bytes()
		must(t, err)
		value, err := desired.ServiceValue(desired.Service{Name: name, Local: local})
		must(t, err)
		digest = digest.Plus(desired.ServiceKey(name), value)
		m := &fairleadv1.SyncResponse{
			Revision: desired.RevisionMessage(fsm.Revision{Epoch: 1, Index: index}), Full: index == 1, Changes: changes, Digest: digest[:],
			Node: desired.NodeMessage("g", nil, nil),
		}
		if _, err := steps.Add(m); err != nil {
			t.Fatal(err)
		}
		return steps.State.Told()
	}
	first := step(1, "a/a", false)
	second := step(2, "a/b", true)
	if len(second) != 2 || second[0] != first[0] || second[1] == first[0] {
		t.Fatalf("%p became %p beside %p", first[0], second[0], second[1])
	}
}
