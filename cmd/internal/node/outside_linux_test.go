// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/sock/program"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// outside makes the lab's agent that of a host outside the cluster, with a token that was offered for it.
func (l *sockLab) outside(name string) {
	l.t.Helper()
	token := enrol.NewToken()
	l.config.Node, l.config.OutOfCluster, l.config.NAT = name, true, ""
	l.config.TLS, l.config.Enrol = config.TLS{}, &config.Enrol{CA: l.ca.Cert(), TokenFile: filepath.Join(l.t.TempDir(), "token")}
	if err := os.WriteFile(l.config.Enrol.TokenFile, []byte(token), 0o600); err != nil {
		l.t.Fatal(err)
	}
	if err := l.config.Validate(); err != nil {
		l.t.Fatal(err)
	}
	l.group.Apply(l.t, &fsm.PutEnrolment{ID: enrol.Sum(token), Node: fsm.NodeID(name), Outside: true, TTL: time.Hour})
}

func (l *sockLab) host(name string) *fsm.Host {
	h, _ := fsm.Get[*fsm.Host](l.group.Read(), fsm.TableHosts, name)
	return h
}

// Balancing §8, §15, §24.7, §24.9: a host outside the cluster enrols with a one-time token, also if a node has its name, and gets what Services and
// policies have for it: endpoints wherever they are, whatever traffic policies say, and never local redirection. It is in the record as a host of its
// own. Once it is taken out it is told nothing more, and keeps what it has.
// Rule: balancing §15.
func TestHostOutsideTheClusterResolves(t *testing.T) {
	t.Parallel()
	l := newSockLab(t)
	l.outside("n1")
	first, second, third := l.says("first"), l.says("second"), l.says("third")
	vip := netip.MustParseAddr("192.0.2.1")
	inside := fsm.Service{ClusterIPs: []netip.Addr{vip}, InternalLocal: true, Local: true}
	l.putService(inside, first)
	agent := start(t, l.config)
	l.eventually("first")
	if h := l.host("n1"); h == nil || h.Boot == "" {
		t.Fatalf("in the record it is %+v", h)
	}
	if n, _ := fsm.Get[*fsm.Node](l.group.Read(), fsm.TableNodes, "n1"); n.Boot != "" || !n.Acknowledged.IsZero() {
		t.Errorf("the node of that name became %+v", n)
	}
	put := func(id fsm.PolicyID, mode string, at netip.AddrPort, outside bool) {
		t.Helper()
		l.group.Apply(t, &fsm.PutPolicy{Policy: fsm.Policy{
			ID: id, UID: string(id), EveryNode: true, Outside: outside, Service: "shop/web", Mode: mode,
			Captures: []fsm.Capture{{Address: vip, Port: fsm.Port{Protocol: fsm.TCP, Number: 80}, Target: at.Port()}},
			Backends: []fsm.PolicyBackend{{Address: at.Addr(), Node: "n1", Pod: "shop/p", UID: "p", Ready: true}},
		}})
	}
	put("LocalRedirectPolicy/b", "local", third, true)
	put("BalancingPolicy/a", "podEndpoint", second, true)
	l.eventually("second")
	put("BalancingPolicy/a", "podEndpoint", third, false)
	l.eventually("first")
	put("BalancingPolicy/a", "hostPort", second, true)
	l.eventually("second")
	testkit.Until(t, "it is noted what the host carried out", func() bool { return !l.host("n1").Acknowledged.IsZero() })

	l.group.Apply(t, &fsm.RemoveHost{ID: "n1"})
	put("BalancingPolicy/a", "podEndpoint", third, true)
	testkit.Until(t, "no member serves it", func() bool { return agent.Status().Member == "" })
	if got := l.hears(); got != "second" {
		t.Errorf("taken out it gets %s", got)
	}
	l.group.Apply(t, &fsm.RegisterHost{ID: "n1", Admit: true})
	l.eventually("third")
	if err := agent.stop(); err != nil {
		t.Fatal(err)
	}
}

// saysTo is says at an address of any family, and over UDP too.
func (l *sockLab) saysTo(address, word string) netip.AddrPort {
	l.t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = listener.Close() })
	at := netip.MustParseAddrPort(listener.Addr().String())
	packets, err := net.ListenPacket("udp", at.String())
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = packets.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, word) // who left hears nothing
			_ = c.Close()
		}
	}()
	go func() {
		for buffer := make([]byte, 64); ; {
			_, from, err := packets.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = packets.WriteTo([]byte(word), from) // likewise
		}
	}()
	return at
}

// calls has a program of the host call places, over TCP and UDP, until it gets a word at all of them.
func (l *sockLab) calls(word string, places ...string) {
	l.t.Helper()
	for _, place := range places {
		for protocol, script := range map[string]string{
			"tcp": "exec 3<>/dev/tcp/" + place + " && cat <&3", "udp": "exec 3<>/dev/udp/" + place + " && echo hello >&3 && timeout 5 dd bs=512 count=1 status=none <&3",
		} {
			testkit.Until(l.t, word+" at "+place+" over "+protocol, func() bool { return strings.Contains(l.client.Bash(script), word) })
		}
	}
}

// Balancing §8, §15, §24.9: a policy's own address, of either family and protocol, leads to listed hosts. Tables that a reboot emptied are
// filled from what the host kept while no member answers; then it follows the members that are there, by whichever of them.
// Rule: balancing §15.
func TestHostOutsideGoesOnWithoutMembers(t *testing.T) {
	t.Parallel()
	l := newSockLab(t)
	second := l.serve("", "m2")
	l.config.Members = append(l.config.Members, second.Address)
	l.outside("edge-1")
	four, six := l.saysTo("127.0.0.1", "first"), l.saysTo("::1", "first")
	places := []string{"169.254.77.1/5432", "fd00:77::1/5432"}
	put := func(four, six netip.AddrPort) {
		t.Helper()
		r := fsm.Policy{ID: "BalancingPolicy/db", UID: "db", Outside: true, Mode: "address"}
		for _, p := range []fsm.Protocol{fsm.TCP, fsm.UDP} {
			r.Captures = append(r.Captures,
				fsm.Capture{Address: netip.MustParseAddr("169.254.77.1"), Port: fsm.Port{Protocol: p, Number: 5432}, Target: four.Port()},
				fsm.Capture{Address: netip.MustParseAddr("fd00:77::1"), Port: fsm.Port{Protocol: p, Number: 5432}, Target: six.Port()})
		}
		r.Backends = []fsm.PolicyBackend{{Address: four.Addr(), Ready: true}, {Address: six.Addr(), Ready: true}}
		l.group.Apply(t, &fsm.PutPolicy{Policy: r})
	}
	put(four, six)
	agent := start(t, l.config)
	l.calls("first", places...)

	l.api.Stop()
	second.Stop()
	if err := agent.stop(); err != nil {
		t.Fatal(err)
	}
	l.calls("first", places...) // without an agent
	if err := program.Remove(l.config.Sock.Pins); err != nil {
		t.Fatal(err) // as a reboot does
	}
	agent = start(t, l.config)
	l.calls("first", places...)
	if code, said := ask(t, l.config, "/healthz"); code != http.StatusOK {
		t.Errorf("a restart would not help, but it is not healthy: %s", said)
	}

	third := l.serve(second.Address, "m2")
	put(l.saysTo("127.0.0.1", "second"), l.saysTo("::1", "second"))
	l.calls("second", places...)
	l.serve(l.api.Address, "m1")
	third.Stop()
	put(four, six)
	l.calls("first", places...)
	if err := agent.stop(); err != nil {
		t.Fatal(err)
	}
}
