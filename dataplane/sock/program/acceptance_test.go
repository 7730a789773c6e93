// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package program

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// matrix is a node with a pod, in the cgroups that a kubelet makes, whose programs dial; and servers on all hosts of the world:
//
//	host: a program of the node ──┐
//	                              ├── 10.44.0.1-6, fd44::1-6: a server over TCP and UDP at ports 8080 and 8081 of each
//	pod: 10.44.0.100, fd44::100 ──┘
//
// Odd servers are on this node, n1, even ones on n2.
type matrix struct {
	*lab
	t         *testing.T
	p         *Program
	k         *tables
	config    sock.Config
	clients   map[string]*client
	services  []desired.Service
	redirects []desired.Policy
	nodes     []netip.Addr
}

const matrixServers = 6

func newMatrix(t *testing.T) *matrix {
	l := newLab(t)
	m := &matrix{lab: l, t: t, p: l.open(), clients: map[string]*client{}}
	m.k = l.tables(m.p)
	host, pod := netnstest.New(t, "host"), netnstest.New(t, "pod")
	at := netnstest.Link{In: host, Name: "pods"}
	for n := range matrixServers {
		at.Addresses = append(at.Addresses, fmt.Sprintf("10.44.0.%d/24", n+1), fmt.Sprintf("fd44::%d/64", n+1))
	}
	netnstest.Join(at, netnstest.Link{In: pod, Name: "eth0", Addresses: []string{"10.44.0.100/24", "fd44::100/64"}})
	for n := range matrixServers {
		for _, protocol := range []string{"tcp", "udp"} {
			for _, port := range []int{8080, 8081} {
				serveAt(t, protocol+"4", fmt.Sprintf("10.44.0.%d:%d", n+1, port), host.Do)
				serveAt(t, protocol+"6", fmt.Sprintf("[fd44::%d]:%d", n+1, port), host.Do)
			}
		}
	}
	for name, of := range map[string]struct {
		in     *netnstest.Namespace
		cgroup string
	}{
		"host": {host, "system.slice/cron.service"}, "pod": {pod, "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + strings.ReplaceAll(podUID, "-", "_") + ".slice"},
	} {
		// Without a route a call to an address that nobody has fails at once, before anybody could resolve it.
		of.in.Run("ip", "route", "add", "blackhole", "default")
		of.in.Run("ip", "-6", "route", "add", "blackhole", "default")
		m.clients[name] = startClient(t, l.Below(of.cgroup), func(c *exec.Cmd) error { return of.in.Do(c.Start) })
	}
	return m
}

// begin forgets the policies and Services of before.
func (m *matrix) begin() {
	m.services, m.redirects, m.config = nil, nil, sock.Config{Node: "n1"}
	m.nodes = []netip.Addr{netip.MustParseAddr("192.0.2.201"), netip.MustParseAddr("192.0.2.202"), netip.MustParseAddr("2001:db8:2::201"), netip.MustParseAddr("2001:db8:2::202")}
	if err := m.p.Set(Settings{IPv4: true, IPv6: true}); err != nil {
		m.t.Fatal(err)
	}
}

// hold has the tables be what an agent of n1 has them be, given Services and policies.
func (m *matrix) hold() {
	m.t.Helper()
	want := sock.Want{Nodes: m.nodes}
	for i := range m.services {
		if r := m.config.RuleOf(&m.services[i], uint32(1000+i)); r != nil {
			want.Rules = append(want.Rules, r)
		}
	}
	for i := range m.redirects {
		if r := m.config.RedirectRule(&m.redirects[i]); r != nil {
			want.Rules = append(want.Rules, r)
		}
	}
	m.k.hold(want)
}

// both are one address of each family.
func both(v4, v6 string) []netip.Addr {
	return []netip.Addr{netip.MustParseAddr(v4), netip.MustParseAddr(v6)}
}

var (
	matrixClusterIPs = both("10.96.7.1", "2001:db8:96::7:1")
	matrixExternals  = both("203.0.113.7", "2001:db8:113::7")
	matrixVIPs       = both("169.254.0.90", "2001:db8:169::90")
)

func onNode(server int) string { return map[bool]string{true: "n1", false: "n2"}[server%2 == 1] }

// aService is one at port 80 over TCP and UDP, and at a node port, served by these.
func aService(servers ...int) desired.Service {
	s := desired.Service{Name: "shop/web", ClusterIPs: matrixClusterIPs, NodePortsIPv4: true, NodePortsIPv6: true}
	ports := []desired.EndpointPort{}
	for name, protocol := range map[string]uint8{"t": sock.TCP, "u": sock.UDP} {
		s.Frontends = append(s.Frontends, desired.Frontend{Name: name, Port: desired.Port{Protocol: protocol, Number: 80}, NodePort: 30080})
		ports = append(ports, desired.EndpointPort{Name: name, Port: desired.Port{Protocol: protocol, Number: 8080}})
	}
	for _, n := range servers {
		for _, a := range both(fmt.Sprintf("10.44.0.%d", n), fmt.Sprintf("fd44::%d", n)) {
			s.Endpoints = append(s.Endpoints, desired.Endpoint{Address: a, Node: onNode(n), Ready: true, Serving: true, Ports: ports})
		}
	}
	return s
}

// aRedirect is a policy that captures ports of addresses, and leads to these.
func aRedirect(number uint32, mode string, at []netip.Addr, ports []uint16, servers ...int) desired.Policy {
	r := desired.Policy{Name: fmt.Sprintf("%s/%d", mode, number), Number: number, Created: int64(number), EveryNode: true, Mode: mode, OfService: slices.Equal(at, matrixClusterIPs)}
	for _, a := range at {
		for _, port := range ports {
			for _, protocol := range []uint8{sock.TCP, sock.UDP} {
				r.Captures = append(r.Captures, desired.Capture{Address: a, Port: desired.Port{Protocol: protocol, Number: port}, Target: 8080})
			}
		}
	}
	for _, n := range servers {
		for _, a := range both(fmt.Sprintf("10.44.0.%d", n), fmt.Sprintf("fd44::%d", n)) {
			r.Backends = append(r.Backends, desired.PolicyBackend{Address: a, Node: onNode(n), Ready: true})
		}
	}
	return r
}

// asks makes calls to a port of addresses from everywhere, over TCP and UDP and in both families, and wants all of them be answered by one of
// the servers that are named (s1 …), each by one call at least where there are several, or fail so.
func (m *matrix) asks(when string, at []netip.Addr, port uint16, want ...string) {
	m.t.Helper()
	if refusal(syscall.EHOSTUNREACH) == refusal(syscall.ECONNREFUSED) && slices.Equal(want, []string{"unreachable"}) {
		want = []string{"refused"} // the kernel can say no more
	}
	for from, c := range m.clients {
		for _, network := range []string{"tcp", "udp"} {
			for i, family := range []string{"4", "6"} {
				said := map[string]int{}
				for range 1 + 50*(len(want)-1) { // once in a thousand billions one of two stays silent anywhere
					said[m.said(c, call{Op: "connect", Net: network + family, To: netip.AddrPortFrom(at[i], port)})]++
				}
				for _, w := range want {
					if said[w] == 0 {
						m.t.Errorf("%s, %s of the %s: %v, want %v", when, network+family, from, said, want)
					}
					delete(said, w)
				}
				if len(said) > 0 {
					m.t.Errorf("%s, %s of the %s: %v besides %v", when, network+family, from, said, want)
				}
			}
		}
	}
}

// said is which server answers a call, or how it failed.
func (m *matrix) said(c *client, what call) string {
	m.t.Helper()
	r := c.do(what)
	switch {
	case r.Error == "":
		at := netip.MustParseAddrPort(r.Said).Addr().AsSlice()
		return fmt.Sprintf("s%d", at[len(at)-1])
	case r.Errno == refusal(syscall.ECONNREFUSED):
		return "refused"
	case r.Errno == refusal(syscall.EHOSTUNREACH):
		return "unreachable"
	case r.Errno == syscall.EINVAL || r.Errno == syscall.ENETUNREACH:
		return "untouched" // the blackhole
	}
	return r.Error
}

// Balancing §10, §24: rows of the closing table, from a pod and from a process of the host, over TCP and UDP, IPv4 and IPv6.
// Rule: balancing §24.
func TestClosingTable(t *testing.T) {
	m := newMatrix(t)
	vip := matrixVIPs
	ports := []uint16{80}
	row := func(name string, f func()) {
		t.Run(name, func(t *testing.T) {
			m.t = t
			m.begin()
			f()
		})
	}
	row("1-service", func() {
		m.services = append(m.services, aService(1, 2))
		m.services[0].Addresses = matrixExternals
		m.hold()
		m.asks("ClusterIP", matrixClusterIPs, 80, "s1", "s2")
		m.asks("externalIP", matrixExternals, 80, "s1", "s2")
		m.asks("a node port", both("192.0.2.201", "2001:db8:2::201"), 30080, "s1", "s2")
		m.asks("another node's", both("192.0.2.202", "2001:db8:2::202"), 30080, "s1", "s2")
		m.asks("externalIP:nodePort", matrixExternals, 30080, "untouched")
		m.asks("ClusterIP:nodePort", matrixClusterIPs, 30080, "untouched")
		m.asks("nobody's port", matrixClusterIPs, 81, "untouched")
	})
	row("2-local", func() {
		m.services = append(m.services, aService(1, 2, 4))
		m.services[0].Local, m.services[0].InternalLocal = true, true
		m.hold()
		m.asks("ClusterIP", matrixClusterIPs, 80, "s1")
		m.services[0] = aService(2, 4)
		m.services[0].InternalLocal = true
		m.hold()
		m.asks("none on this node", matrixClusterIPs, 80, "unreachable")
	})
	row("2-strict", func() {
		m.services = append(m.services, aService(1, 2))
		m.services[0].Local, m.services[0].Addresses = true, matrixExternals
		m.hold()
		m.asks("externalTrafficPolicy is about clients outside", matrixExternals, 80, "s1", "s2")
		m.config.StrictExternalLocal = true
		m.hold()
		m.asks("strictExternalLocal", matrixExternals, 80, "s1")
		m.asks("at a node port", both("192.0.2.202", "2001:db8:2::202"), 30080, "s1")
		m.asks("at the ClusterIP", matrixClusterIPs, 80, "s1", "s2")
		m.services[0].Endpoints = aService(2).Endpoints
		m.hold()
		m.asks("none on this node", matrixExternals, 80, "unreachable")
	})
	row("10-without-endpoints", func() {
		m.services = append(m.services, aService())
		sctp := desired.Frontend{Name: "s", Port: desired.Port{Protocol: 132, Number: 81}}
		m.services[0].Addresses, m.services[0].Frontends = matrixExternals, append(m.services[0].Frontends, sctp)
		m.hold()
		for _, at := range [][]netip.Addr{matrixClusterIPs, matrixExternals} {
			m.asks("no EndpointSlice", at, 80, "refused")
			m.asks("SCTP", at, 81, "untouched")
		}
		for at := range m.k.planner.Rows().Places {
			if at.Protocol != sock.TCP && at.Protocol != sock.UDP {
				t.Errorf("there is a row for %s", at)
			}
		}
	})
	row("3-affinity", func() {
		m.services = append(m.services, aService(1, 2, 3, 4))
		m.services[0].Affinity = time.Minute
		m.hold()
		for from, c := range m.clients {
			for _, family := range []int{0, 1} {
				what := call{Op: "connect", Net: "tcp" + []string{"4", "6"}[family], To: netip.AddrPortFrom(matrixClusterIPs[family], 80)}
				m.services[0].Endpoints = aService(1, 2, 3, 4).Endpoints
				m.hold()
				first := m.said(c, what)
				for range 20 {
					if again := m.said(c, what); again != first {
						t.Errorf("%s of the %s: %s, then %s", what.Net, from, first, again)
					}
				}
				m.services[0].Endpoints = slices.DeleteFunc(aService(1, 2, 3, 4).Endpoints, func(e desired.Endpoint) bool {
					at := e.Address.AsSlice()
					return fmt.Sprintf("s%d", at[len(at)-1]) == first
				})
				m.hold()
				if next := m.said(c, what); next == first || next[0] != 's' {
					t.Errorf("%s of the %s: its endpoint %s is gone, and %s answers", what.Net, from, first, next)
				}
			}
		}
	})
	row("4-redirect-of-service", func() {
		m.services = append(m.services, aService(2))
		m.redirects = append(m.redirects, aRedirect(1, desired.ToLocalPods, matrixClusterIPs, ports, 3, 4))
		m.hold()
		m.asks("a local pod", matrixClusterIPs, 80, "s3")
		m.redirects[0].Backends = aRedirect(1, desired.ToLocalPods, matrixClusterIPs, ports, 4).Backends
		m.hold()
		m.asks("none", matrixClusterIPs, 80, "s2")
		m.redirects[0] = aRedirect(1, desired.ToLocalPods, matrixClusterIPs, ports, 3)
		m.hold()
		m.asks("again", matrixClusterIPs, 80, "s3")
	})
	row("5-redirect-of-address", func() {
		m.redirects = append(m.redirects, aRedirect(1, desired.ToLocalPods, vip, ports, 3))
		m.hold()
		m.asks("a local pod", vip, 80, "s3")
		m.redirects[0].Backends = nil
		m.hold()
		m.asks("none", vip, 80, "refused")
		m.redirects[0] = aRedirect(1, desired.ToLocalPods, vip, ports, 3)
		m.hold()
		m.asks("again", vip, 80, "s3")
	})
	row("6-nodes", func() {
		m.services = append(m.services, aService(2))
		m.redirects = append(m.redirects, aRedirect(1, desired.ToLocalPods, matrixClusterIPs, ports, 3))
		m.redirects[0].EveryNode, m.redirects[0].Nodes = false, []string{"n2"}
		m.hold()
		m.asks("on the other node", matrixClusterIPs, 80, "s2")
		m.redirects[0].Nodes = []string{"n1", "n2"}
		m.hold()
		m.asks("relabelled", matrixClusterIPs, 80, "s3")
	})
	for _, mode := range []string{desired.ToPods, desired.ToHostPorts} {
		row("7-"+mode, func() {
			m.services = append(m.services, aService(2))
			m.redirects = append(m.redirects, aRedirect(1, mode, vip, []uint16{80, 8080}, 3, 4))
			m.hold()
			m.asks("p1", vip, 8080, "s3", "s4")
			m.asks("p2", vip, 80, "s3", "s4")
			m.asks("no port of it", vip, 81, "untouched")
		})
	}
	row("11-precedence", func() {
		m.services = append(m.services, aService(2))
		m.redirects = []desired.Policy{aRedirect(2, desired.ToAddresses, matrixClusterIPs, ports, 4), aRedirect(1, desired.ToLocalPods, matrixClusterIPs, ports, 3)}
		m.hold()
		m.asks("all", matrixClusterIPs, 80, "s3")
		m.redirects = m.redirects[:1]
		m.hold()
		m.asks("without local redirection", matrixClusterIPs, 80, "s4")
		m.redirects = nil
		m.hold()
		m.asks("without policies", matrixClusterIPs, 80, "s2")
		m.services = nil
		m.hold()
		m.asks("without anything", matrixClusterIPs, 80, "untouched")
	})
	row("12-recreated", func() {
		m.redirects = append(m.redirects, aRedirect(1, desired.ToAddresses, vip, ports, 4))
		m.hold()
		m.asks("at first", vip, 80, "s4")
		m.redirects = nil
		m.hold()
		m.asks("deleted", vip, 80, "untouched")
		m.redirects = append(m.redirects, aRedirect(1, desired.ToAddresses, vip, ports, 5))
		m.redirects[0].Number = 9
		m.hold()
		m.asks("under the same name", vip, 80, "s5")
	})
	row("14-named-ports", func() {
		s := aService(2)
		// Pods of another slice have another number for the name.
		other := aService(4).Endpoints
		for i := range other {
			other[i].Ports = []desired.EndpointPort{{Name: "t", Port: desired.Port{Protocol: sock.TCP, Number: 8081}}, {Name: "u", Port: desired.Port{Protocol: sock.UDP, Number: 8081}}}
		}
		s.Endpoints = append(s.Endpoints, other...)
		m.services = append(m.services, s)
		m.hold()
		m.asks("either slice", matrixClusterIPs, 80, "s2", "s4")
	})
	row("15-what-programs-see", func() {
		m.services = append(m.services, aService(2))
		m.hold()
		for from, c := range m.clients {
			for _, what := range []call{
				{Op: "connect", Net: "mapped", To: netip.AddrPortFrom(matrixClusterIPs[0], 80)}, {Op: "send", Net: "mapped", To: netip.AddrPortFrom(matrixClusterIPs[0], 80)},
				{Op: "send", Net: "udp4", To: netip.AddrPortFrom(matrixClusterIPs[0], 80)}, {Op: "send", Net: "udp6", To: netip.AddrPortFrom(matrixClusterIPs[1], 80)},
				{Op: "connect", Net: "tcp4", To: netip.AddrPortFrom(matrixClusterIPs[0], 80)}, {Op: "connect", Net: "udp6", To: netip.AddrPortFrom(matrixClusterIPs[1], 80)},
			} {
				if r := c.do(what); r.Error != "" || netip.AddrPortFrom(r.Peer.Addr().Unmap(), r.Peer.Port()) != what.To {
					t.Errorf("%s %s of the %s to %s: %+v", what.Op, what.Net, from, what.To, r)
				}
			}
		}
	})
	row("10-limit", m.limited)
}

// limited is row 10: of two calls within a second one is redirected, and the other one's event says why it was not.
func (m *matrix) limited() {
	m.services = append(m.services, aService(2))
	m.redirects = append(m.redirects, aRedirect(1, desired.ToLocalPods, matrixClusterIPs, []uint16{80}, 3))
	m.hold()
	if err := m.p.Set(Settings{IPv4: true, IPv6: true, Limit: 1, Events: true}); err != nil {
		m.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(m.t.Context())
	events, ended := make(chan sock.Event, 1000), make(chan error)
	go func() { ended <- m.p.Events(ctx, func(e sock.Event) { events <- e }) }()
	for from, c := range m.clients {
		for _, network := range []string{"tcp", "udp"} {
			for i, family := range []string{"4", "6"} {
				what := call{Op: "connect", Net: network + family, To: netip.AddrPortFrom(matrixClusterIPs[i], 80)}
				testkit.Until(m.t, "one of two calls is redirected", func() bool {
					first, second := m.said(c, what), m.said(c, what)
					a, b := <-events, <-events
					if (first == "s2") != a.Limited || (second == "s2") != b.Limited {
						m.t.Fatalf("%s of the %s: %s and %s, events %+v and %+v", what.Net, from, first, second, a, b)
					}
					return first == "s3" && second == "s2"
				})
			}
		}
	}
	cancel()
	<-ended
}
