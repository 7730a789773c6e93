// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/api/desired/desiredtest"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/nat"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// patience is for machines with much else to do.
const patience = testkit.Patience

// shortly is how long it is looked whether something comes that should not.
const shortly = 500 * time.Millisecond

// lab is three hosts with a pod each. Hosts know no way to the pods of others, as in an overlay network; each pod's way out is its host.
//
//	pod 10.9.N.2 --- 10.9.N.1 host N 198.51.100.N --- bridge of the switch     (N = 1, 2, 3)
//	    fd09:N::2    fd09:N::1       2001:db8:9::N
//
// Tunnel addresses are 10.250.0.N and fd00:250::N.
type lab struct {
	t     *testing.T
	hosts []*host
	over6 bool
	mtu   uint32
	told  fsm.Index
}

// host is one with its agent's parts.
type host struct {
	t      *testing.T
	name   string
	number uint32
	in     *netnstest.Namespace
	pod    *netnstest.Namespace
	tunnel *Tunnel
	ports  *nat.NAT
}

func newLab(t *testing.T, over6 bool) *lab {
	t.Helper()
	t.Parallel()
	l := &lab{t: t, over6: over6}
	middle := netnstest.New(t, "switch")
	middle.Run("ip", "link", "add", "br0", "type", "bridge")
	middle.Run("ip", "link", "set", "br0", "up")
	for n := 1; n <= 3; n++ {
		h := &host{t: t, name: fmt.Sprintf("n%d", n), number: uint32(n), in: netnstest.New(t, fmt.Sprintf("host%d", n)), pod: netnstest.New(t, fmt.Sprintf("pod%d", n))}
		netnstest.Join(
			netnstest.Link{In: h.in, Name: "eth0", Addresses: []string{fmt.Sprintf("198.51.100.%d/24", n), fmt.Sprintf("2001:db8:9::%d/64", n)}},
			netnstest.Link{In: middle, Name: fmt.Sprintf("port%d", n)})
		middle.Run("ip", "link", "set", fmt.Sprintf("port%d", n), "master", "br0")
		netnstest.Join(
			netnstest.Link{In: h.pod, Name: "eth0", Addresses: []string{fmt.Sprintf("10.9.%d.2/24", n), fmt.Sprintf("fd09:%d::2/64", n)}},
			netnstest.Link{In: h.in, Name: "pod", Addresses: []string{fmt.Sprintf("10.9.%d.1/24", n), fmt.Sprintf("fd09:%d::1/64", n)}})
		h.pod.Run("ip", "route", "add", "default", "via", fmt.Sprintf("10.9.%d.1", n))
		h.pod.Run("ip", "-6", "route", "add", "default", "via", fmt.Sprintf("fd09:%d::1", n))
		h.in.SetSysctl("ipv4/ip_forward", "1")
		h.in.SetSysctl("ipv6/conf/all/forwarding", "1")
		h.start()
		l.hosts = append(l.hosts, h)
		serve(h.pod, h.name, 8080)
	}
	return l
}

// start makes what an agent has, anew.
func (h *host) start() {
	h.t.Helper()
	var err error
	if h.tunnel, err = New(Options{Host: h.name, Namespace: h.in.FD()}); err != nil {
		h.t.Fatal(err)
	}
	if h.ports, err = nat.New(nat.Options{Node: h.name, Mark: nat.DefaultProxyMark, Table: "fairlead-proxy", LeaveOthers: true, NetNS: h.in.FD()}); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(h.tunnel.Close)
}

func (h *host) apply(s desired.State) []agent.Failure {
	h.t.Helper()
	failed, err := h.tunnel.Apply(h.t.Context(), s)
	if err != nil {
		h.t.Fatalf("%s: %v", h.name, err)
	}
	more, err := h.ports.Serve(h.t.Context(), Services(s, h.name))
	if err != nil {
		h.t.Fatalf("%s: %v", h.name, err)
	}
	return append(failed, more...)
}

func (h *host) address(six bool) netip.Addr {
	if six {
		return netip.MustParseAddr(fmt.Sprintf("fd00:250::%d", h.number))
	}
	return netip.MustParseAddr(fmt.Sprintf("10.250.0.%d", h.number))
}

func (h *host) podAddress(six bool) netip.Addr {
	if six {
		return netip.MustParseAddr(fmt.Sprintf("fd09:%d::2", h.number))
	}
	return netip.MustParseAddr(fmt.Sprintf("10.9.%d.2", h.number))
}

// state has tunnels between some hosts, and proxy port 10080 of TCP and UDP lead to port 8080 of the pods of some.
func (l *lab) state(between, pods []*host) desired.State {
	l.t.Helper()
	var m desiredtest.Told
	for _, h := range between {
		underlay := netip.MustParseAddr(fmt.Sprintf("198.51.100.%d", h.number))
		if l.over6 {
			underlay = netip.MustParseAddr(fmt.Sprintf("2001:db8:9::%d", h.number))
		}
		value, err := desired.TunnelHostValue(desired.TunnelHost{Underlay: underlay, Addresses: []netip.Addr{h.address(false), h.address(true)}, Number: h.number})
		m.Put(desired.TunnelHostKey(h.name), value, err)
	}
	var proxy desired.Proxy
	for _, h := range pods {
		for _, six := range []bool{false, true} {
			pod := desired.ProxiedPod{Node: h.name, Address: h.podAddress(six), Ready: true}
			for _, protocol := range []uint8{6, 17} {
				pod.Ports = append(pod.Ports, desired.ProxyPort{Port: desired.Port{Protocol: protocol, Number: 10080}, Target: 8080})
			}
			proxy.Pods = append(proxy.Pods, pod)
		}
	}
	value, err := desired.ProxyValue(proxy)
	m.Put(desired.ProxyKey("BalancingPolicy/a"), value, err)
	l.told++
	own := desired.NodeMessage("g1", nil, nil)
	own.Tunnels = desired.TunnelMessage(&desired.TunnelSettings{
		Port: 7446, VNI: 7446, MTU: l.mtu, Over6: l.over6, Ranges: []netip.Prefix{netip.MustParsePrefix("10.250.0.0/16"), netip.MustParsePrefix("fd00:250::/64")},
	})
	return m.StateAt(l.t, l.told, own)
}

// serve answers on a port, over TCP and UDP, with a name, a line end, and what it is sent.
func serve(in *netnstest.Namespace, name string, port int) {
	in.Serve(fmt.Sprintf(":%d", port), func(c net.Conn) {
		_, _ = io.WriteString(c, name+"\n")
		_, _ = io.Copy(c, c)
	})
	in.ServePacket(fmt.Sprintf(":%d", port), func(datagram []byte, _ net.Addr) []byte { return append([]byte(name+"\n"), datagram...) })
}

// dial connects from a namespace.
func dial(in *netnstest.Namespace, network string, to netip.AddrPort, within time.Duration) (net.Conn, error) {
	c, err := in.Dial(network, to.String(), within)
	if err == nil {
		err = c.SetDeadline(time.Now().Add(within))
	}
	return c, err
}

// ask sends bytes and gives the name of who sent them back.
func ask(in *netnstest.Namespace, network string, to netip.AddrPort, size int, within time.Duration) (who string, err error) {
	c, err := dial(in, network, to, within)
	if err != nil {
		return "", err
	}
	defer c.Close()
	sent := bytes.Repeat([]byte("fairlead"), size/8)
	failed := make(chan error, 1)
	go func() {
		_, err := c.Write(sent)
		failed <- err
	}()
	got := make([]byte, 0, size+16)
	for len(got) < len(sent)+3 { // "n2\n"
		buf := make([]byte, 64<<10)
		n, err := c.Read(buf)
		if got = append(got, buf[:n]...); err != nil {
			return "", fmt.Errorf("after %d bytes: %w", len(got), err)
		}
	}
	if err := <-failed; err != nil {
		return "", err
	}
	name, back, _ := bytes.Cut(got, []byte("\n"))
	if !bytes.Equal(back, sent) {
		return "", fmt.Errorf("%d bytes came back, and are not what was sent", len(back))
	}
	return string(name), nil
}
