// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"errors"
	"net/netip"
	"reflect"
	"testing"

	"fairlead.io/fairlead/api/desired"
)

// Balancing §9, §16.3: sockets are ended that are at a backend which the rule that gave it has no more, at that address; those of TCP if asked for.
// Nobody looks at sockets while nothing left, and what failed is looked at again with the next comparison.
// Rule: balancing §16.
func TestOnlySocketsOfBackendsThatLeftAreEnded(t *testing.T) {
	udp := desired.Port{Protocol: UDP, Number: 53}
	dns := desired.Frontend{Name: "dns", Port: udp, NodePort: 30053}
	backend := func(address string) desired.Endpoint {
		return desired.Endpoint{Address: netip.MustParseAddr(address), Node: "n2", Ready: true, Serving: true, Ports: []desired.EndpointPort{
			{Name: "dns", Port: udp}, {Name: "http", Port: desired.Port{Protocol: TCP, Number: 8080}},
		}}
	}
	node := netip.MustParseAddr("198.51.100.1")
	service := desired.Service{Name: "shop/dns", ClusterIPs: []netip.Addr{vip}, NodePortsIPv4: true, Frontends: []desired.Frontend{dns, web}, Endpoints: []desired.Endpoint{backend("10.0.0.1"), backend("10.0.0.2")}}
	id := uint32(0)
	for n, name := range Names([]string{service.Name}, nil) {
		if name == service.Name {
			id = n
		}
	}
	record := func(socket uint64, at netip.Addr, port uint16, protocol uint8, to string, toPort uint16) Record {
		return Record{socket, Place{at, port, protocol}, Place{netip.MustParseAddr(to), toPort, protocol}, id}
	}
	all := []Record{
		record(1, vip, 53, UDP, "10.0.0.1", 53), record(2, vip, 53, UDP, "10.0.0.2", 53), record(3, node, 30053, UDP, "10.0.0.1", 53),
		record(4, node, 30053, UDP, "10.0.0.2", 53), record(5, vip, 80, TCP, "10.0.0.2", 8080), record(6, vip, 80, TCP, "10.0.0.1", 8080),
	}
	var ended []uint64
	var fails error
	k := newMemory()
	s, err := Over(Options{Config: Config{Node: "n1"}, Room: room, Ending: Ending{
		Records: func() ([]Record, error) { return append([]Record{}, all...), nil },
		End: func(gone []Record) (int, error) {
			for _, r := range gone {
				ended = append(ended, r.Socket)
			}
			return len(gone), fails
		},
	}}, k)
	if err != nil {
		t.Fatal(err)
	}
	after := func(when string, want ...uint64) {
		t.Helper()
		ended = nil
		s.endLeft()
		if !reflect.DeepEqual(ended, want) {
			t.Errorf("%s: sockets %v are ended, want %v", when, ended, want)
		}
	}
	apply := func(services ...desired.Service) {
		t.Helper()
		w := wanted{nodes: []netip.Addr{node}}
		for i := range services {
			w.services = append(w.services, desired.Held{Is: &services[i]})
		}
		if err := s.apply(w); err != nil {
			t.Fatal(err)
		}
	}
	after("before anything is known")
	apply(service)
	after("all are there")
	one := service
	one.Endpoints = one.Endpoints[:1]
	apply(one)
	after("a backend left", 2, 4)
	after("nothing left since")
	s.ending.TCP, fails = true, errors.New("no rights")
	apply(service)
	apply(one)
	after("with connections", 2, 4, 5)
	after("it failed, and is not tried on and on")
	if err := s.repair(); err != nil {
		t.Fatal(err)
	}
	after("with the next comparison", 2, 4, 5)
	apply()
	after("the Service is gone", 1, 2, 3, 4, 5, 6)
}

// Balancing §14: an address that fails its probes gets nothing new, and sockets that got to it stay, until the policy lists it no more.
// Rule: balancing §14.
func TestSocketsStayWithWhatFailsItsProbes(t *testing.T) {
	bad := netip.MustParseAddr("198.51.100.2")
	listed := &desired.Policy{
		Name: "BalancingPolicy/a", Number: 7, EveryNode: true, Mode: desired.ToAddresses,
		Captures: []desired.Capture{{Address: vip, Port: desired.Port{Protocol: UDP, Number: 53}, Target: 5353}},
		Backends: []desired.PolicyBackend{{Address: netip.MustParseAddr("198.51.100.1"), Ready: true}, {Address: bad, Ready: true}},
		Probe:    desired.Probe{Type: "UDP"},
	}
	var fails bool
	var ended []Record
	got := Record{1, Place{vip, 53, UDP}, Place{bad, 5353, UDP}, 7}
	s, err := Over(Options{Config: Config{Node: "n1", Usable: func(_ *desired.Policy, _ desired.Capture, of []netip.Addr) []netip.Addr {
		if fails {
			return of[:1]
		}
		return of
	}}, Room: room, Ending: Ending{
		Records: func() ([]Record, error) { return []Record{got}, nil },
		End:     func(gone []Record) (int, error) { ended = gone; return len(gone), nil },
	}}, newMemory())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.apply(wanted{redirects: []*desired.Policy{listed}}); err != nil {
		t.Fatal(err)
	}
	fails = true
	if err := s.reconsider(); err != nil {
		t.Fatal(err)
	}
	if s.endLeft(); len(ended) > 0 {
		t.Errorf("ended with its probes: %v", ended)
	}
	one := *listed
	one.Backends = one.Backends[:1]
	if err := s.apply(wanted{redirects: []*desired.Policy{&one}}); err != nil {
		t.Fatal(err)
	}
	if s.endLeft(); len(ended) != 1 {
		t.Errorf("the policy lists it no more, and it stays: %v", ended)
	}
}
