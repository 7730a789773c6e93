// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// lab is one node with pods, and a client beyond it. Packets to 192.0.2.0/24 and 2001:db8::/64 are delivered locally
// on the node, as steer has it. The third pod counts as another node's.
//
//	client 203.0.113.2 --- 203.0.113.1 node 10.0.N.1 --- 10.0.N.2 pod N (N = 1, 2, 3)
//	       2001:db8:c::2         2001:db8:c::1  fd00:0:0:N::1    fd00:0:0:N::2
type lab struct {
	t            *testing.T
	client, node *netnstest.Namespace
	pods         []*netnstest.Namespace
	nat          *NAT
	nodePorts    []netip.Prefix // where the next agent serves node ports
}

const podPort = 8080

var (
	vip4    = netip.MustParseAddr("192.0.2.10")
	vip6    = netip.MustParseAddr("2001:db8::10")
	client4 = netip.MustParseAddr("203.0.113.2")
	tcp80   = desired.Frontend{Name: "web", Port: desired.Port{Protocol: 6, Number: 80}}
	udp53   = desired.Frontend{Name: "dns", Port: desired.Port{Protocol: 17, Number: 53}}
)

func newLab(t *testing.T) *lab {
	t.Helper()
	t.Parallel()
	l := &lab{t: t, client: netnstest.New(t, "client"), node: netnstest.New(t, "node")}
	netnstest.Join(
		netnstest.Link{In: l.client, Name: "wan", Addresses: []string{"203.0.113.2/24", "2001:db8:c::2/64"}},
		netnstest.Link{In: l.node, Name: "ext", Addresses: []string{"203.0.113.1/24", "2001:db8:c::1/64"}})
	l.client.Run("ip", "route", "add", "default", "via", "203.0.113.1")
	l.client.Run("ip", "-6", "route", "add", "default", "via", "2001:db8:c::1")
	for i := 1; i <= 3; i++ {
		pod := netnstest.New(t, fmt.Sprintf("pod%d", i))
		netnstest.Join(
			netnstest.Link{In: pod, Name: "eth0", Addresses: []string{fmt.Sprintf("10.0.%d.2/24", i), fmt.Sprintf("fd00:0:0:%d::2/64", i)}},
			netnstest.Link{In: l.node, Name: fmt.Sprintf("pod%d", i), Addresses: []string{fmt.Sprintf("10.0.%d.1/24", i), fmt.Sprintf("fd00:0:0:%d::1/64", i)}})
		pod.Run("ip", "route", "add", "default", "via", fmt.Sprintf("10.0.%d.1", i))
		pod.Run("ip", "-6", "route", "add", "default", "via", fmt.Sprintf("fd00:0:0:%d::1", i))
		l.pods = append(l.pods, pod)
		l.serve(pod, fmt.Sprintf("pod%d", i))
	}
	l.node.SetSysctl("ipv4/ip_forward", "1")
	l.node.SetSysctl("ipv6/conf/all/forwarding", "1")
	for _, of := range [][]string{{"-4", "192.0.2.0/24", "203.0.113.1"}, {"-6", "2001:db8::/64", "2001:db8:c::1"}} {
		l.node.Run("ip", of[0], "route", "add", "local", of[1], "dev", "lo", "table", "101", "src", of[2])
		l.node.Run("ip", of[0], "rule", "add", "to", of[1], "lookup", "101", "priority", "30101")
	}
	l.warmUp()
	l.nat = l.newNAT()
	return l
}

// warmUp waits until all know their neighbours: the kernel drops what is sent in the first moments of a cable.
func (l *lab) warmUp() {
	l.t.Helper()
	for i, pod := range podEndpoints(1, 2, 3) {
		from := l.node
		if i >= 4 {
			from = l.client
		}
		testkit.Until(l.t, "pods answer", func() bool {
			_, _, err := l.once(from, "udp", at(pod.Address, podPort), silence)
			return err == nil
		})
	}
}

// newNAT is the node's agent, started anew.
func (l *lab) newNAT() *NAT {
	l.t.Helper()
	n, err := New(Options{Node: "n1", ClusterCIDRs: prefixes("10.0.0.0/16", "fd00::/16"), NodePortAddresses: l.nodePorts, NetNS: l.node.FD()})
	if err != nil {
		l.t.Fatal(err)
	}
	return n
}

// serve answers every line, or datagram, with the pod's name and the client's address.
func (l *lab) serve(pod *netnstest.Namespace, name string) {
	l.t.Helper()
	pod.Serve(fmt.Sprintf(":%d", podPort), answering(name))
	pod.ServePacket(fmt.Sprintf(":%d", podPort), func(_ []byte, from net.Addr) []byte { return []byte(name + " " + hostOf(from)) })
}

// answering answers every line with a name and the client's address.
func answering(name string) func(net.Conn) {
	return func(c net.Conn) {
		buffer := make([]byte, 512)
		for {
			if _, err := c.Read(buffer); err != nil {
				return
			}
			if _, err := io.WriteString(c, name+" "+hostOf(c.RemoteAddr())); err != nil {
				return
			}
		}
	}
}

func hostOf(a net.Addr) string {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return a.String()
	}
	return ap.Addr().Unmap().String()
}

// Patience of clients: where they expect an answer, so much that a busy machine does not matter; where they expect
// silence, more than an answer takes.
const (
	patience = testkit.Patience
	silence  = 600 * time.Millisecond
)

// conn is an open connection, or flow, of a client.
type conn struct {
	net.Conn
	patience time.Duration
}

// dial opens a connection from a namespace.
func (l *lab) dial(from *netnstest.Namespace, network string, to netip.AddrPort, patience time.Duration) (*conn, error) {
	c, err := from.Dial(network, to.String(), patience)
	if err != nil {
		return nil, err
	}
	return &conn{c, patience}, nil
}

// ask sends a line and gives what the pod answered: its name, and the address that it saw.
func (c *conn) ask() (pod, source string, err error) {
	if err := c.SetDeadline(time.Now().Add(c.patience)); err != nil {
		return "", "", err
	}
	if _, err := io.WriteString(c, "x"); err != nil {
		return "", "", err
	}
	buffer := make([]byte, 512)
	n, err := c.Read(buffer)
	if err != nil {
		return "", "", err
	}
	pod, source, _ = strings.Cut(string(buffer[:n]), " ")
	return pod, source, nil
}

// once opens a connection, asks and closes it, as a client whose next one is another.
func (l *lab) once(from *netnstest.Namespace, network string, to netip.AddrPort, patience time.Duration) (pod, source string, err error) {
	c, err := l.dial(from, network, to, patience)
	if err != nil {
		return "", "", err
	}
	defer c.Close()
	return c.ask()
}

// must is once, and the test ends if it fails.
func (l *lab) must(from *netnstest.Namespace, network string, to netip.AddrPort) (pod, source string) {
	l.t.Helper()
	pod, source, err := l.once(from, network, to, patience)
	if err != nil {
		l.t.Fatalf("%s to %s: %v", network, to, err)
	}
	return pod, source
}

// outcome names how an attempt ended.
func outcome(err error) string {
	var timeout net.Error
	switch {
	case err == nil:
		return "served"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EPERM): // EPERM where the sender is on the node
		return "refused"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "silence"
	}
	return err.Error()
}

func (l *lab) want(what string, from *netnstest.Namespace, network string, to netip.AddrPort, outcomeIs string) {
	l.t.Helper()
	wait := patience
	if outcomeIs == "silence" {
		wait = silence
	}
	_, _, err := l.once(from, network, to, wait)
	if got := outcome(err); got != outcomeIs {
		l.t.Errorf("%s: %s to %s: %s, want %s", what, network, to, got, outcomeIs)
	}
}

// apply carries Services out, and fails if an address cannot be.
func (l *lab) apply(services ...*desired.Service) {
	l.t.Helper()
	failed, err := l.nat.apply(context.Background(), "", services)
	if err != nil || len(failed) > 0 {
		l.t.Fatalf("apply: %v, failed %v", err, failed)
	}
}

// podEndpoints are the lab's pods of these numbers, in both families; the third is on another node.
func podEndpoints(numbers ...int) []desired.Endpoint {
	var out []desired.Endpoint
	for _, i := range numbers {
		node := "n1"
		if i == 3 {
			node = "n2"
		}
		for _, a := range []string{fmt.Sprintf("10.0.%d.2", i), fmt.Sprintf("fd00:0:0:%d::2", i)} {
			out = append(out, desired.Endpoint{
				Address: netip.MustParseAddr(a), Node: node, Ready: true, Serving: true,
				Ports: []desired.EndpointPort{
					{Name: tcp80.Name, Port: desired.Port{Protocol: 6, Number: podPort}},
					{Name: udp53.Name, Port: desired.Port{Protocol: 17, Number: podPort}},
				},
			})
		}
	}
	return out
}

// web is a Service at vip4 and vip6, TCP 80 and UDP 53, with pods of these numbers.
func web(pods ...int) *desired.Service {
	return &desired.Service{
		Name: "shop/web", Addresses: []netip.Addr{vip4, vip6}, Frontends: []desired.Frontend{tcp80, udp53},
		Endpoints: podEndpoints(pods...),
	}
}

func at(a netip.Addr, port uint16) netip.AddrPort { return netip.AddrPortFrom(a, port) }
