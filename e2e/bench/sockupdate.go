// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"fairlead.io/fairlead/dataplane/sock/program"
	"fairlead.io/fairlead/e2e/lab"
)

const (
	updateServices = 10_000
	updateChanges  = 50
	updateLook     = 500 * time.Microsecond // leaves the processors to those that are measured
	updatePort     = 8081                   // of the endpoints that are looked at; each answers who it is
)

// sockUpdate takes the time from the answer to a committed change until a program that connects gets to where it leads, through a group of
// three and the shipped agent, which has 10,000 Services in its tables. A sample is an address that a Service gets, with its backend; what
// it takes from a folder that is changed until another backend stands in for one is in detail.
func sockUpdate(t *bench) figures {
	s := &sockLab{t: t, home: ownCgroup(t)}
	s.cgroup = s.newCgroup("agent")
	pins := mountPins(t)
	t.Cleanup(func() {
		if err := program.Remove(pins); err != nil {
			t.Error(err)
		}
	})
	serveNames(t)
	l := lab.New(t, lab.Options{Log: "warn"})
	l.Manifests.Node(1, true)
	putNodes(l.Manifests, largeNodes)
	putServices(l.Manifests, updateServices)
	putWaiting(l.Manifests, updateChanges+1)
	for i := range updateChanges + 1 {
		putBackend(l.Manifests, i, 1)
	}
	g := joinGroup(t, l)
	l.EventuallyWithin("an address for every Service", 5*time.Minute, func() error {
		if n := allocated(l.Members[0]); n < updateServices {
			return fmt.Errorf("%d Services have one", n)
		}
		return nil
	})
	l.Agent(nil, 1, fmt.Sprintf("steer: false\nhealth: 127.0.0.1:7480\nlog: warn\nsock: {cgroup: %s, pins: %s}\n", s.cgroup, pins))
	g.allocate(updateChanges)
	s.enter(s.cgroup)
	defer s.enter(s.home)
	s.until(updateChanges, backend(updateChanges, 1))
	t.progressf("changing %d of %d Services", updateChanges, updateServices)
	var f figures
	for i := range updateChanges {
		g.allocate(i)
		f.samples = append(f.samples, s.until(i, backend(i, 1)))
	}
	var changed []float64
	for i := range updateChanges {
		putBackend(l.Manifests, i, 2)
		changed = append(changed, s.until(i, backend(i, 2)))
	}
	f.detail = map[string]any{"services": updateServices, "folder_to_backend_ms": spread(changed)}
	return f
}

// backend is an endpoint of waiting Service i.
func backend(i, which int) netip.Addr { return netip.AddrFrom4([4]byte{10, 20, byte(which), byte(i)}) }

// putBackend has a waiting Service be served by one endpoint.
func putBackend(m *lab.Manifests, i, which int) {
	m.Put(fmt.Sprintf("backend-%03d.yaml", i), fmt.Sprintf(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: svc-%[1]d-1, namespace: waiting, labels: {kubernetes.io/service-name: svc-%[1]d}}
addressType: IPv4
ports: [{name: http, port: %[2]d, protocol: TCP}]
endpoints: [{addresses: ["%[3]s"], nodeName: n1, conditions: {ready: true}}]
`, i, updatePort, backend(i, which)))
}

// until connects to a waiting Service until an endpoint answers, and gives the milliseconds that took.
func (s *sockLab) until(i int, want netip.Addr) float64 {
	to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(i + 1)}), 80).String()
	last := ""
	for begin := time.Now(); time.Since(begin) < time.Minute; {
		c, err := net.DialTimeout("tcp", to, soon)
		if err != nil {
			last = err.Error()
			time.Sleep(updateLook)
			continue
		}
		_ = c.(*net.TCPConn).SetLinger(0) // leaves no port behind
		said, err := io.ReadAll(c)
		_ = c.Close()
		if last = string(said); err == nil && last == want.String() {
			return milliseconds(time.Since(begin))
		}
		time.Sleep(updateLook)
	}
	s.t.Fatalf("%s does not lead to %s: %s", to, want, last)
	return 0
}

// serveNames has all endpoints on loopback, each of which tells who connects its address.
func serveNames(t *bench) {
	endpointsHere(t)
	acceptAll(t, updatePort, func(c net.Conn) {
		_, _ = io.WriteString(c, c.LocalAddr().(*net.TCPAddr).IP.String()) // who left hears nothing
	})
}
