// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// bothAt listens on UDP and TCP at one port of an address. Which is free for one of them need not be for the other.
func (l *sockLab) bothAt(at netip.Addr) (udp *net.UDPConn, tcp net.Listener, port uint16) {
	l.t.Helper()
	for {
		tcp, err := net.Listen("tcp", netip.AddrPortFrom(at, 0).String())
		if err != nil {
			l.t.Fatal(err)
		}
		here := tcp.Addr().(*net.TCPAddr).AddrPort()
		udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(here))
		if err == nil {
			return udp, tcp, here.Port()
		}
		if _ = tcp.Close(); !errors.Is(err, syscall.EADDRINUSE) {
			l.t.Fatal(err)
		}
	}
}

// resolver answers every question with one address, over UDP and TCP at one port of an address.
func (l *sockLab) resolver(at, answer netip.Addr) uint16 {
	l.t.Helper()
	udp, tcp, port := l.bothAt(at)
	l.t.Cleanup(func() { _ = errors.Join(udp.Close(), tcp.Close()) })
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := udp.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			if out, err := answerTo(b[:n], answer); err == nil {
				_, _ = udp.WriteToUDPAddrPort(out, from)
			}
		}
	}()
	go func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			_ = overTCP(c, answer) // who left hears nothing
			_ = c.Close()
		}
	}()
	return port
}

// overTCP answers one question, in the framing of RFC 1035 §4.2.2.
func overTCP(c net.Conn, answer netip.Addr) error {
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return err
	}
	question := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(c, question); err != nil {
		return err
	}
	out, err := answerTo(question, answer)
	if err != nil {
		return err
	}
	_, err = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...))
	return err
}

func answerTo(question []byte, answer netip.Addr) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil {
		return nil, err
	}
	m.Response, m.Additionals = true, nil
	for _, q := range m.Questions {
		m.Answers = append(m.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, Body: &dnsmessage.AResource{A: answer.As4()},
		})
	}
	return m.Pack()
}

// Balancing §1, §16.1, §24.4: dig, as it is, asks a Service's resolver, and the node's own where a LocalRedirectPolicy leads to one, over
// UDP and TCP, IPv4 and IPv6. It takes answers from the address alone that it asked, and names that.
// Rule: balancing §24.
func TestDigAsksARedirectedResolver(t *testing.T) {
	t.Parallel()
	dig := birdtest.Find(t, "dig")
	l := newSockLab(t)
	vips := map[string]netip.Addr{"-4": netip.MustParseAddr("192.0.2.53"), "-6": netip.MustParseAddr("2001:db8::53")}
	loopback := map[string]netip.Addr{"-4": netip.MustParseAddr("127.0.0.1"), "-6": netip.MustParseAddr("::1")}
	s := fsm.Service{ID: "kube-system/kube-dns"}
	local := fsm.Policy{ID: "LocalRedirectPolicy/dns-local", UID: "u1", EveryNode: true, Service: s.ID, Mode: "local"}
	protocols := []fsm.Protocol{fsm.UDP, fsm.TCP}
	for _, p := range protocols {
		s.Frontends = append(s.Frontends, fsm.Frontend{Name: p.String(), Port: fsm.Port{Protocol: p, Number: 53}})
	}
	for _, family := range []string{"-4", "-6"} {
		of, here := l.resolver(loopback[family], netip.MustParseAddr("198.51.100.1")), l.resolver(loopback[family], netip.MustParseAddr("198.51.100.2"))
		e := fsm.Endpoint{Address: loopback[family], Node: "n2", Ready: true, Serving: true, Offer: &fsm.Offer{}}
		for _, p := range protocols {
			e.Offer.Ports = append(e.Offer.Ports, fsm.EndpointPort{Name: p.String(), Port: fsm.Port{Protocol: p, Number: of}})
			local.Captures = append(local.Captures, fsm.Capture{Address: vips[family], Port: fsm.Port{Protocol: p, Number: 53}, Target: here})
		}
		s.ClusterIPs, s.Endpoints = append(s.ClusterIPs, vips[family]), append(s.Endpoints, e)
		local.Backends = append(local.Backends, fsm.PolicyBackend{Address: loopback[family], Node: "n1", Pod: "kube-system/cache", UID: "p", Ready: true})
	}
	l.group.Apply(t, &fsm.PutService{Service: s})
	agent := start(t, l.config)
	asks := func(family, transport, answer string) {
		t.Helper()
		var said string
		testkit.Until(t, fmt.Sprintf("dig %s %s hears %s", family, transport, answer), func() bool {
			said = l.client.Bash(fmt.Sprintf("%s @%s %s +tries=1 +time=2 a.example A", dig, vips[family], transport))
			return strings.Contains(said, answer)
		})
		if from := fmt.Sprintf("SERVER: %s#53", vips[family]); !strings.Contains(said, from) || strings.Contains(said, "unexpected source") {
			t.Errorf("dig %s %s does not say %s: %s", family, transport, from, said)
		}
	}
	all := func(answer string) {
		t.Helper()
		for _, family := range []string{"-4", "-6"} {
			for _, transport := range []string{"+notcp", "+tcp"} {
				asks(family, transport, answer)
			}
		}
	}
	all("198.51.100.1")
	l.group.Apply(t, &fsm.PutPolicy{Policy: local})
	all("198.51.100.2")
	l.group.Apply(t, &fsm.DeletePolicy{ID: local.ID, UID: local.UID})
	all("198.51.100.1")
	if err := agent.stop(); err != nil {
		t.Fatal(err)
	}
}
