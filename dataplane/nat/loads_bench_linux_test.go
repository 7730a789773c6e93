// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/flows"
	"fairlead.io/fairlead/internal/netns"
	"fairlead.io/fairlead/internal/netnstest"
)

// BenchmarkCount is one count of 100,000 connections to the endpoints of 10,000 Services that go by connections: what reading them
// takes, and what planning does if nothing changed hands.
// Rule: K39.
func BenchmarkCount(b *testing.B) {
	ns := netnstest.New(b, "node")
	k := newKernel(ns.FD(), "")
	services := manyServices(10_000, 10)
	for _, s := range services {
		s.Scheduler = desired.LeastConnections
	}
	planner := planOf(Config{Node: "n1"}, services)
	if err := netns.Do(ns.FD(), func() error {
		for i := range 100_000 {
			s := services[i%len(services)]
			if err := open(s.Addresses[0], s.Endpoints[i/len(services)%10].Address, uint16(1024+i%50000), byte(i/50000)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	of := planner.toCount()
	var loads map[flows.Endpoint]flows.Load
	count := func() {
		var err error
		if loads, err = k.Loads(context.Background(), of); err != nil {
			b.Fatal(err)
		}
	}
	count()
	planner.Rebalance(loads, time.Now())
	open := 0
	for _, l := range loads {
		open += l.Open
	}
	if open != 100_000 {
		b.Fatalf("%d connections are counted", open)
	}
	for name, part := range map[string]func(){
		"list": func() { of = planner.toCount() }, "read": count, "plan": func() { planner.Rebalance(loads, time.Now()) },
	} {
		b.Run(name, func(b *testing.B) {
			var before, after unix.Rusage
			_ = unix.Getrusage(unix.RUSAGE_SELF, &before)
			for range b.N {
				part()
			}
			_ = unix.Getrusage(unix.RUSAGE_SELF, &after)
			used := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
			b.ReportMetric(float64(used.Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

// open has the kernel know of a connection from a client to a Service's address, which was translated.
func open(vip, endpoint netip.Addr, port uint16, client byte) error {
	from := net.IPv4(203, 0, 113, client+1)
	established := uint8(3)
	return netlink.ConntrackCreate(netlink.ConntrackTable, unix.AF_INET, &netlink.ConntrackFlow{
		FamilyType: unix.AF_INET, TimeOut: 431_990,
		Forward:   netlink.IPTuple{SrcIP: from, DstIP: vip.AsSlice(), SrcPort: port, DstPort: 80, Protocol: unix.IPPROTO_TCP},
		Reverse:   netlink.IPTuple{SrcIP: endpoint.AsSlice(), DstIP: from, SrcPort: 8080, DstPort: port, Protocol: unix.IPPROTO_TCP},
		ProtoInfo: &netlink.ProtoInfoTCP{State: established},
	})
}
