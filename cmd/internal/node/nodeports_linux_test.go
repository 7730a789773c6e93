// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// K2: what the record says of node ports is served at the addresses that agent.yaml lists, from outside and from the node;
// the endpoint is on another machine, and sees this node come.
// Rule: K2.
func TestNodePortsOfTheRecordAreServed(t *testing.T) {
	t.Parallel()
	l := newCheckLab(t)
	l.node.SetSysctl("ipv4/ip_forward", "1")
	l.node.SetSysctl("ipv6/conf/all/forwarding", "1")
	listener := l.endpoint(8080)
	defer func() { _ = listener.Close() }()
	s := fsm.Service{ID: "shop/web", Frontends: []fsm.Frontend{{Name: "http", Port: fsm.Port{Protocol: fsm.TCP, Number: 80}, NodePort: 30080}}}
	for _, a := range []string{"198.51.100.254", "2001:db8:f::fe"} {
		s.Endpoints = append(s.Endpoints, fsm.Endpoint{
			Address: netip.MustParseAddr(a), Node: "n2", Ready: true, Serving: true,
			Offer: &fsm.Offer{Ports: []fsm.EndpointPort{{Name: "http", Port: fsm.Port{Protocol: fsm.TCP, Number: 8080}}}},
		})
	}
	vip := netip.MustParseAddr(checkedVIP)
	l.group.Apply(t, &fsm.PutService{Service: s},
		&fsm.Allocate{Address: vip, Service: "shop/web", Ports: []fsm.Port{{Protocol: fsm.TCP, Number: 80}}},
		&fsm.SetRoute{Prefix: fsm.HostPrefix(vip), Hops: []fsm.HopSpec{{Node: "n1", Address: netip.MustParseAddr("198.51.100.1")}}})
	for _, c := range []struct {
		from *netnstest.Namespace
		to   string
		want string
	}{
		{l.balancer, "198.51.100.1:30080", "198.51.100.1"}, {l.node, "198.51.100.1:30080", "198.51.100.1"},
		{l.balancer, "198.51.100.2:30080", "refused"},    // is not listed
		{l.balancer, "[2001:db8:f::1]:30080", "refused"}, // the Service has no address of this family
		{l.balancer, "198.51.100.1:8080", "refused"},     // is not the node's port
		{l.balancer, checkedVIP + ":80", "198.51.100.1"}, // as without
		{l.balancer, checkedVIP + ":30080", "refused"},   // node ports are the node's own
		{l.node, "127.0.0.1:30080", "refused"},           // nor is loopback served
	} {
		last := ""
		testkit.Until(t, c.to+": "+c.want, func() bool {
			last = seen(c.from, c.to)
			return last == c.want
		})
	}
	s.Frontends[0].NodePort = 30081
	l.group.Apply(t, &fsm.PutService{Service: s})
	testkit.Until(t, "the port follows the Service", func() bool {
		return seen(l.balancer, "198.51.100.1:30081") == "198.51.100.1" && seen(l.balancer, "198.51.100.1:30080") == "refused"
	})
}

// K2: a Service of type NodePort, which has no address of ours, is in the record for its node ports. Nodes that serve those are told.
// Rule: K2.
func TestNodePortsOfServicesWithoutAnAddressAreServed(t *testing.T) {
	t.Parallel()
	l := newCheckLab(t)
	l.node.SetSysctl("ipv4/ip_forward", "1")
	listener := l.endpoint(8080)
	defer func() { _ = listener.Close() }()
	s := fsm.Service{
		ID: "shop/ported", NodePortsIPv4: true,
		Frontends: []fsm.Frontend{{Name: "http", Port: fsm.Port{Protocol: fsm.TCP, Number: 80}, NodePort: 30090}},
		Endpoints: []fsm.Endpoint{{
			Address: netip.MustParseAddr("198.51.100.254"), Node: "n2", Ready: true, Serving: true,
			Offer: &fsm.Offer{Ports: []fsm.EndpointPort{{Name: "http", Port: fsm.Port{Protocol: fsm.TCP, Number: 8080}}}},
		}},
	}
	sees := func(what, want string) {
		t.Helper()
		testkit.Until(t, what, func() bool { return seen(l.balancer, "198.51.100.1:30090") == want })
	}
	l.group.Apply(t, &fsm.PutService{Service: s})
	sees("the node port is served", "198.51.100.1")
	if got := seen(l.balancer, "[2001:db8:f::1]:30090"); got != "refused" {
		t.Errorf("in a family that the Service is not of: %s", got)
	}
	l.group.Apply(t, &fsm.DeleteService{ID: "shop/ported"})
	sees("it goes with the Service", "refused")
}

// endpoint answers in the balancer's namespace, with the address that it sees a client come from.
func (l *checkLab) endpoint(port int) net.Listener {
	l.t.Helper()
	return l.balancer.Serve(fmt.Sprintf(":%d", port), func(c net.Conn) {
		from, _ := c.RemoteAddr().(*net.TCPAddr)
		_, _ = io.WriteString(c, from.AddrPort().Addr().Unmap().String()) // who left hears nothing
	})
}

// seen dials, and tells what the endpoint saw, or how it failed.
func seen(from *netnstest.Namespace, to string) (what string) {
	err := from.Do(func() error {
		c, err := net.DialTimeout("tcp", to, 5*time.Second)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			return err
		}
		all, err := io.ReadAll(c)
		what = string(all)
		return err
	})
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case err != nil:
		return err.Error()
	}
	return what
}
