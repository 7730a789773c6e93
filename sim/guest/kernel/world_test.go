// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"testing"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/api/desired/desiredtest"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/nat"
	"fairlead.io/fairlead/dataplane/steer"
	"fairlead.io/fairlead/sim/guest/bubble"
	guest "fairlead.io/fairlead/sim/guest/kernel"
	"fairlead.io/fairlead/sim/kernel"
	"fairlead.io/fairlead/sim/kernel/message"
)

var (
	switch4, switch6 = netip.MustParseAddr("192.0.2.254"), netip.MustParseAddr("2001:db8:a::254")
	client4, client6 = netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("2001:db8:c::7")
)

// lab is a world with one node, n1.
type lab struct {
	*bubble.World
	t    *testing.T
	node *kernel.Kernel
}

func inLab(t *testing.T, seed uint64, test func(*lab)) {
	bubble.Test(t, seed, func(t *testing.T, w *bubble.World) {
		l := &lab{World: w, t: t}
		l.Do(func() {
			l.node = kernel.New(l.World.World, l.Network, kernel.Options{
				Node: "n1", NAT: true, Switches: []netip.Addr{switch4, switch6}, Gateways: []netip.Addr{netip.MustParseAddr("192.0.2.1")},
				Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.21/24"), netip.MustParsePrefix("2001:db8:a::21/64")},
			})
		})
		test(l)
	})
}

// process is a life of the agent's kernel parts.
type process struct {
	l     *lab
	end   func()
	steer *steer.Steer
	nat   *nat.NAT
}

func (l *lab) start(rulesMax int) *process {
	p := l.Process("n1")
	k := guest.Open(p.Dial, "n1")
	s, err := k.Steer(steer.Options{Folder: l.t.TempDir(), RulesMax: rulesMax, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		l.t.Fatal(err)
	}
	n, err := k.NAT(nat.Options{
		Node: "n1", ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}, Consistent: []string{"alike/*"},
		NodePortAddresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return &process{l: l, end: p.Kill, steer: s, nat: n}
}

// apply carries a state out and lists the addresses that failed.
func (p *process) apply(want desired.State) (failed []netip.Addr, err error) {
	for _, apply := range []agent.Applier{p.steer, p.nat} {
		list, err := apply.Apply(p.l.t.Context(), want)
		if err != nil {
			return nil, err
		}
		for _, f := range list {
			failed = append(failed, f.Prefix.Addr())
		}
	}
	return failed, nil
}

// service is one Service at addresses with some endpoints.
func service(name string, local bool, endpoints int, addresses ...netip.Addr) desired.Service {
	s := desired.Service{Name: name, Addresses: addresses, Local: local, Frontends: []desired.Frontend{
		{Name: "web", Port: desired.Port{Protocol: 6, Number: 80}},
	}}
	for i := range endpoints {
		for _, pod := range []string{"10.244.1.%d", "2001:db8:f::%d"} {
			s.Endpoints = append(s.Endpoints, desired.Endpoint{
				Address: netip.MustParseAddr(fmt.Sprintf(pod, i+1)), Node: fmt.Sprintf("n%d", i%2+1), Ready: true, Serving: true,
				Ports: []desired.EndpointPort{{Name: "web", Port: desired.Port{Protocol: 6, Number: 8080}}},
			})
		}
	}
	return s
}

// state is what a node shall have: the addresses of all Services, each with its ports.
func state(t desiredtest.T, services ...desired.Service) desired.State {
	t.Helper()
	var m desiredtest.Told
	for _, s := range services {
		for _, a := range s.Addresses {
			var ports []desired.Port
			for _, f := range s.Frontends {
				ports = append(ports, f.Port)
			}
			m.Address(a, ports...)
		}
	}
	m.Services(services...)
	return m.State(t, desired.NodeMessage("g", &desired.Config{Switches: []netip.Addr{switch4, switch6}, InTable: 101, OutTable: 102}, nil))
}

func addresses(services []desired.Service) (out []netip.Addr) {
	for _, s := range services {
		out = append(out, s.Addresses...)
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

// steered is what the kernel steers now.
func (l *lab) steered() (out []netip.Addr) {
	l.Do(func() { out = l.node.Steered() })
	return out
}

// somebody does something to the kernel that is not ours.
func (l *lab) somebody(r message.Request) {
	l.Do(func() { l.node.Change(r) })
}

func vip(v6 bool, n byte) netip.Addr {
	if v6 {
		return netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, 0xe1, 15: n})
	}
	return netip.AddrFrom4([4]byte{198, 51, 100, n})
}
