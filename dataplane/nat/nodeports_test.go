// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/testkit"
)

// K2, K43: a packet costs the same lookups whatever the number of Services with node ports; one to a service address costs
// as many as without any.
// Rule: K2.
func TestLookupsDoNotDependOnTheNumberOfServices(t *testing.T) {
	lookups := func(services int, ranges []netip.Prefix, p packet) int {
		var all []*desired.Service
		for i := range services {
			front := desired.Frontend{Name: "web", Port: desired.Port{Protocol: 6, Number: 80}, NodePort: uint16(30000 + i)}
			all = append(all, &desired.Service{
				Name: fmt.Sprintf("a/%d", i), Addresses: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})}, Frontends: []desired.Frontend{front},
				Endpoints: []desired.Endpoint{{Address: pods[0], Node: "n1", Ready: true, Ports: []desired.EndpointPort{{Name: "web", Port: front.Port}}}},
			})
		}
		m := newMachine(planOf(Config{Node: "n1", NodePortAddresses: ranges}, all).Ruleset())
		m.draw = (&script{}).draw
		if f := m.walk(p); f.verdict != "translated" {
			t.Fatalf("%+v: %s", p, f.verdict)
		}
		return m.looked
	}
	everywhere := prefixes("0.0.0.0/0", "::/0")
	atNode := packet{source: clients[0], destination: nodes[0], protocol: 6, port: 30000}
	atAddress := packet{source: clients[0], destination: netip.MustParseAddr("192.0.2.0"), protocol: 6, port: 80}
	for _, p := range []packet{atNode, atAddress} {
		if one, many := lookups(1, everywhere, p), lookups(200, everywhere, p); one != many {
			t.Errorf("%+v: %d lookups among 200 Services, %d alone", p, many, one)
		}
	}
	if with, without := lookups(9, everywhere, atAddress), lookups(9, nil, atAddress); with != without {
		t.Errorf("%d lookups with node ports, %d without", with, without)
	}
}

// K2, K18: flows by node ports are those at the node's addresses of the same family.
// Rule: K2.
func TestPropertyFlowsAtTheNodesAddresses(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		planner := NewPlanner(Config{Node: "n1", NodePortAddresses: prefixes("0.0.0.0/0", "::/0")})
		planner.Step(genServices().Draw(t, "services"))
		all, own := planner.Flows(), some(nodes, 0, len(nodes)).Draw(t, "addresses")
		flows := all.at(own)
		want := Flows{}
		for front, serving := range all {
			is := netip.AddrPort(front)
			for _, a := range own {
				if is.Addr() == netip.IPv4Unspecified() && a.Is4() || is.Addr() == netip.IPv6Unspecified() && a.Is6() {
					want[Frontend(netip.AddrPortFrom(a, is.Port()))] = serving
				}
			}
			if !is.Addr().IsUnspecified() {
				want[front] = serving
			}
		}
		if !maps.EqualFunc(flows, want, maps.Equal) {
			t.Fatalf("%v at %v: %v, want %v", all, own, flows, want)
		}
	})
}

// What a range is taken out of is what was in before, less that.
func TestPropertySpansWithoutARange(t *testing.T) {
	probes := addrs("0.0.0.0", "10.0.0.0", "10.0.0.255", "10.255.255.255", "11.0.0.0", "203.0.113.127", "203.0.113.128", "203.0.114.0", "255.255.255.254", "255.255.255.255")
	testkit.Check(t, func(t *rapid.T) {
		ranges, hole := some(rangesOf, 0, len(rangesOf)).Draw(t, "ranges"), rapid.SampledFrom(prefixes("10.0.0.0/24", "10.0.0.0/8", "203.0.113.128/25", "8.0.0.0/6")).Draw(t, "hole")
		rules := newRuleset()
		rules.Sets["s"] = Set{Name: "s", Key: []Type{Address4}, Interval: true}
		rules.put(ends("s", without(spans(ipv4, ranges), hole)))
		for _, a := range probes {
			w := walker{machine: newMachine(rules)}
			w.write(0, string(a.AsSlice()))
			if in, want := w.member(Member{"s", 0}), allowedBy(ranges, a) && !hole.Contains(a); in != want {
				t.Fatalf("%v without %s: %s is in: %v", ranges, hole, a, in)
			}
		}
	})
}

// Marks that share bits would mix up what leaves.
// Rule: K2.
func TestNodePortsNeedAMarkOfTheirOwn(t *testing.T) {
	o := Options{Node: "n1", Mark: DefaultNodePortMark}
	if _, err := Over(o, nil); err != nil {
		t.Errorf("without node ports: %v", err)
	}
	o.NodePortAddresses = prefixes("0.0.0.0/0")
	if _, err := Over(o, nil); err == nil || !strings.Contains(err.Error(), "marks 0x800, and 0x800 of node ports, share bits; give each its own") {
		t.Errorf("error: %v", err)
	}
}
