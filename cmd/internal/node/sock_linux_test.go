// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/machine"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/sock/program"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/socktest"
	"fairlead.io/fairlead/internal/testkit"
)

// sockLab is an agent that resolves for the sockets of one cgroup.
type sockLab struct {
	*world
	t      *testing.T
	config config.Agent
	client *socktest.Lab
}

func newSockLab(t *testing.T) *sockLab {
	t.Helper()
	l := &sockLab{world: newWorld(t), t: t, client: socktest.New(t)}
	l.config = l.world.config(t)
	l.config.Sock = &config.Sock{Cgroup: l.client.Cgroup, Pins: l.client.Pins}
	l.config.DrainDelay = 0
	return l
}

// says listens on loopback, and tells every client a word.
func (l *sockLab) says(word string) netip.AddrPort {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = listener.Close() })
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
	return netip.MustParseAddrPort(listener.Addr().String())
}

// hears is what a program in the cgroup hears at the service address, or how it failed.
func (l *sockLab) hears() string {
	l.t.Helper()
	return l.client.Bash("exec 3<>/dev/tcp/192.0.2.1/80 && cat <&3")
}

func (l *sockLab) eventually(want string) {
	l.t.Helper()
	testkit.Until(l.t, want, func() bool { return strings.Contains(l.hears(), want) })
}

func (l *sockLab) put(endpoints ...netip.AddrPort) {
	l.t.Helper()
	l.putService(fsm.Service{}, endpoints...)
}

// putService has the record hold shop/web with these endpoints on another node.
func (l *sockLab) putService(s fsm.Service, endpoints ...netip.AddrPort) {
	l.t.Helper()
	s.ID, s.Frontends = "shop/web", []fsm.Frontend{{Name: "http", Port: fsm.Port{Protocol: fsm.TCP, Number: 80}, NodePort: 30080}}
	for _, at := range endpoints {
		s.Endpoints = append(s.Endpoints, fsm.Endpoint{
			Address: at.Addr(), Node: "n2", Ready: true, Serving: true,
			Offer: &fsm.Offer{Ports: []fsm.EndpointPort{{Name: "http", Port: fsm.Port{Protocol: fsm.TCP, Number: at.Port()}}}},
		})
	}
	l.group.Apply(l.t, &fsm.PutService{Service: s})
}

// Balancing §10, §18: what the record says of a Service is what programs of the node get at its address, without a rule or
// a route; an agent that ends leaves that as it is, the next one takes it over, and cleanup removes it.
// Rule: balancing §10.
func TestServicesOfTheRecordAreResolvedAtTheClient(t *testing.T) {
	t.Parallel()
	l := newSockLab(t)
	first, second := l.says("first"), l.says("second")
	vip := netip.MustParseAddr("192.0.2.1")
	l.put(first)
	l.group.Apply(t, &fsm.Allocate{Address: vip, Service: "shop/web", Ports: []fsm.Port{{Protocol: fsm.TCP, Number: 80}}},
		&fsm.SetRoute{Prefix: fsm.HostPrefix(vip), Hops: []fsm.HopSpec{{Node: "n1", Address: netip.MustParseAddr("198.51.100.1")}}})
	agent := start(t, l.config)
	l.eventually("first")
	l.put(second)
	l.eventually("second")
	l.put()
	l.eventually("refused")
	l.put(first)
	l.eventually("first")

	if err := agent.stop(); err != nil {
		t.Fatal(err)
	}
	if got := l.hears(); got != "first" {
		t.Errorf("without an agent: %s", got)
	}
	l.put(second)
	again := start(t, l.config)
	l.eventually("second")
	if err := again.stop(); err != nil {
		t.Fatal(err)
	}
	if err := node.Cleanup(t.Context(), l.config, machine.Agent(), quiet); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(l.config.Sock.Pins)
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after cleanup there is %v (%v)", left, err)
	}
}

// Balancing §20, §21: tables that somebody cleaned are filled anew within seconds, long before the next comparison, and metrics count
// what clients left.
// Rule: balancing §21.
func TestCleanedTablesAreFilledAnew(t *testing.T) {
	t.Parallel()
	l := newSockLab(t)
	first := l.says("first")
	l.putService(fsm.Service{ClusterIPs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}, first)
	agent := start(t, l.config)
	l.eventually("first")
	tables, err := program.Look(l.client.Pins)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tables.Close() }()
	for _, table := range []string{"places", "endpoints"} {
		if n, err := program.Clean(l.client.Pins, table); err != nil || n == 0 {
			t.Fatalf("%s: %d rows removed (%v)", table, n, err)
		}
		if table == "endpoints" && !strings.Contains(l.hears(), "refused") {
			t.Error("without endpoints a call is not refused")
		}
		if err := program.Ask(l.client.Pins); err != nil {
			t.Fatal(err)
		}
		testkit.Until(t, table+" are there again", func() bool { // a call that is not resolved would hang
			rows, err := tables.Rows()
			return err == nil && len(rows.Places) > 0 && len(rows.Slots) > 0
		})
		l.eventually("first")
	}
	if _, page := ask(t, l.config, "/metrics"); !strings.Contains(page, `fairlead_sock_rows_max{table="records"} 262144`) {
		t.Errorf("nobody counts what clients left:\n%s", page)
	}
	if err := agent.stop(); err != nil {
		t.Fatal(err)
	}
}

// Balancing §10, K1: a Service that has nothing but a ClusterIP is resolved there, and internalTrafficPolicy is heeded.
// Rule: balancing §10, K1.
func TestClusterIPsAreResolvedAtTheClient(t *testing.T) {
	t.Parallel()
	l := newSockLab(t)
	first := l.says("first")
	inside := fsm.Service{ClusterIPs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}
	l.putService(inside, first)
	agent := start(t, l.config)
	l.eventually("first")
	inside.InternalLocal = true // the endpoint is on another node
	l.putService(inside, first)
	l.eventually("No route to host")
	inside.InternalLocal = false
	l.putService(inside, first)
	l.eventually("first")
	l.group.Apply(t, &fsm.DeleteService{ID: "shop/web"})
	testkit.Until(t, "the ClusterIP is resolved no more", func() bool { return !strings.Contains(l.hears(), "first") })
	if err := agent.stop(); err != nil {
		t.Fatal(err)
	}
}

// Balancing §10, K2: the node port of a Service is resolved at the addresses of all nodes, also of one that just came, with no
// node in between.
// Rule: balancing §10, K2.
func TestNodePortsAreResolvedAtTheClient(t *testing.T) {
	t.Parallel()
	l := newSockLab(t)
	first := l.says("first")
	l.putService(fsm.Service{NodePortsIPv4: true}, first)
	agent := start(t, l.config)
	hears := func() string { return l.client.Bash("exec 3<>/dev/tcp/203.0.113.7/30080 && cat <&3") }
	l.group.Apply(t, &fsm.PutNode{ID: "n7", UID: "n7", Addresses: []netip.Addr{netip.MustParseAddr("203.0.113.7")}})
	testkit.Until(t, "first", func() bool { return strings.Contains(hears(), "first") })
	l.group.Apply(t, &fsm.PutNode{ID: "n7", UID: "n7", Addresses: []netip.Addr{netip.MustParseAddr("203.0.113.8")}})
	testkit.Until(t, "the node is elsewhere", func() bool { return !strings.Contains(hears(), "first") })
	l.group.Apply(t, &fsm.PutNode{ID: "n7", UID: "n7", Others: []netip.Addr{netip.MustParseAddr("203.0.113.7")}})
	testkit.Until(t, "the address is another one of the node's", func() bool { return strings.Contains(hears(), "first") })
	if err := agent.stop(); err != nil {
		t.Fatal(err)
	}
}

// Balancing §7, §8: a LocalRedirectPolicy of the record goes before a BalancingPolicy, that before the Service, each as long as it is there
// and effective on the node.
// Rule: balancing §7.
func TestPoliciesOfTheRecordAreCarriedOut(t *testing.T) {
	t.Parallel()
	l := newSockLab(t)
	first, second, third := l.says("first"), l.says("second"), l.says("third")
	vip := netip.MustParseAddr("192.0.2.1")
	l.putService(fsm.Service{ClusterIPs: []netip.Addr{vip}}, first)
	put := func(id fsm.PolicyID, mode string, at netip.AddrPort, ready bool) {
		t.Helper()
		l.group.Apply(t, &fsm.PutPolicy{Policy: fsm.Policy{
			ID: id, UID: string(id), EveryNode: true, Service: "shop/web", Mode: mode,
			Captures: []fsm.Capture{{Address: vip, Port: fsm.Port{Protocol: fsm.TCP, Number: 80}, Target: at.Port()}},
			Backends: []fsm.PolicyBackend{{Address: at.Addr(), Node: "n1", Pod: "shop/p", UID: "p", Ready: ready}},
		}})
	}
	agent := start(t, l.config)
	l.eventually("first")
	put("BalancingPolicy/a", "podEndpoint", second, true)
	l.eventually("second")
	put("LocalRedirectPolicy/b", "local", third, true)
	l.eventually("third")
	put("LocalRedirectPolicy/b", "local", third, false)
	l.eventually("second")
	put("LocalRedirectPolicy/b", "local", third, true)
	l.eventually("third")
	l.group.Apply(t, &fsm.DeletePolicy{ID: "BalancingPolicy/a", UID: "BalancingPolicy/a"})
	l.group.Apply(t, &fsm.DeletePolicy{ID: "LocalRedirectPolicy/b", UID: "LocalRedirectPolicy/b"})
	l.eventually("first")
	if err := agent.stop(); err != nil {
		t.Fatal(err)
	}
}

// Balancing §11: beyond sock.redirectLimit a second, calls that a LocalRedirectPolicy takes go on to the Service.
// Rule: balancing §11.
func TestLocalRedirectionIsLimitedAsConfigured(t *testing.T) {
	t.Parallel()
	l := newSockLab(t)
	l.config.Sock.RedirectLimit = 1
	first, second := l.says("first"), l.says("second")
	vip := netip.MustParseAddr("192.0.2.1")
	l.putService(fsm.Service{ClusterIPs: []netip.Addr{vip}}, first)
	l.group.Apply(t, &fsm.PutPolicy{Policy: fsm.Policy{
		ID: "LocalRedirectPolicy/a", UID: "a", EveryNode: true, Service: "shop/web", Mode: "local",
		Captures: []fsm.Capture{{Address: vip, Port: fsm.Port{Protocol: fsm.TCP, Number: 80}, Target: second.Port()}},
		Backends: []fsm.PolicyBackend{{Address: second.Addr(), Node: "n1", Pod: "shop/p", UID: "p", Ready: true}},
	}})
	var limit atomic.Int64
	limit.Store(1)
	l.config.Reread = func() (config.Agent, error) {
		c := l.config
		s := *c.Sock
		s.RedirectLimit, c.Sock = int(limit.Load()), &s
		return c, nil
	}
	agent := start(t, l.config)
	testkit.Until(t, "some calls are taken, and some go on", func() bool {
		said := l.client.Bash("for i in 1 2 3 4 5 6; do exec 3<>/dev/tcp/192.0.2.1/80 && cat <&3; done")
		return strings.Contains(said, "first") && strings.Contains(said, "second")
	})
	limit.Store(0)
	testkit.Until(t, "without a limit, all calls are taken", func() bool {
		said := l.client.Bash("for i in 1 2 3 4 5 6; do exec 3<>/dev/tcp/192.0.2.1/80 && cat <&3; done")
		return strings.Count(said, "second") == 6
	})
	if err := agent.stop(); err != nil {
		t.Fatal(err)
	}
}

// Balancing §6: with skipRedirectFromBackend a node-local pod that a policy leads to gets to the Service itself, also once its cgroup was made
// anew; other programs of the node get to the pod.
// Rule: balancing §6.
func TestPodsReachTheServiceThatTheyStandFor(t *testing.T) {
	t.Parallel()
	l := newSockLab(t)
	first, second := l.says("first"), l.says("second")
	vip := netip.MustParseAddr("192.0.2.1")
	l.putService(fsm.Service{ClusterIPs: []netip.Addr{vip}}, first)
	uid := "1c6f0d4e-8a9b-4c55-9d3e-0a1b2c3d4e5f"
	redirect := fsm.Policy{
		ID: "LocalRedirectPolicy/a", UID: "a", EveryNode: true, Service: "shop/web", Mode: "local", SpareOwn: true,
		Captures: []fsm.Capture{{Address: vip, Port: fsm.Port{Protocol: fsm.TCP, Number: 80}, Target: second.Port()}},
		Backends: []fsm.PolicyBackend{{Address: second.Addr(), Node: "n1", Pod: "shop/p", UID: uid, Ready: true}},
	}
	l.group.Apply(t, &fsm.PutPolicy{Policy: redirect})
	agent := start(t, l.config)
	l.eventually("second")
	for _, path := range []string{"kubepods/pod" + uid, "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice"} {
		inside := l.client.Below(path)
		hears := func() string { return inside.Bash("exec 3<>/dev/tcp/192.0.2.1/80 && cat <&3") }
		testkit.Until(t, "first, by the pod itself", func() bool { return hears() == "first" })
		if got := l.hears(); got != "second" {
			t.Errorf("another program hears %s", got)
		}
		if err := os.Remove(inside.Cgroup); err != nil {
			t.Fatal(err)
		}
	}
	// A static pod's cgroup is named by a UID that the API server does not have.
	redirect.Backends[0].HostUID = strings.Repeat("5f3c9d0b", 4)
	l.group.Apply(t, &fsm.PutPolicy{Policy: redirect})
	static := l.client.Below("kubepods/pod" + redirect.Backends[0].HostUID)
	testkit.Until(t, "first, by the static pod itself", func() bool { return static.Bash("exec 3<>/dev/tcp/192.0.2.1/80 && cat <&3") == "first" })
	redirect.Backends[0].HostUID = ""
	inside := l.client.Below("kubepods/pod" + uid)
	redirect.SpareOwn = false
	l.group.Apply(t, &fsm.PutPolicy{Policy: redirect})
	testkit.Until(t, "second, by the pod itself", func() bool {
		return inside.Bash("exec 3<>/dev/tcp/192.0.2.1/80 && cat <&3") == "second"
	})
	if err := agent.stop(); err != nil {
		t.Fatal(err)
	}
}

// Balancing §16.3: sockets of datagrams that are connected to an endpoint which left are ended, of the host and in namespaces of pods, so that
// programs connect anew; connections of TCP are if that is asked for, and what is connected to others goes on.
// Rule: balancing §16.
func TestSocketsWhoseEndpointLeftAreEnded(t *testing.T) {
	t.Parallel()
	for _, endTCP := range []bool{false, true} {
		l := newSockLab(t)
		l.config.Sock.EndTCP = endTCP
		stays, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stays.Close() })
		at := netip.MustParseAddrPort(stays.Addr().String()) // and nobody listens over UDP
		vip := netip.MustParseAddr("192.0.2.1")
		service := func(ports ...uint16) {
			s := fsm.Service{ID: "shop/web", ClusterIPs: []netip.Addr{vip}, Frontends: []fsm.Frontend{
				{Name: "t", Port: fsm.Port{Protocol: fsm.TCP, Number: 80}}, {Name: "u", Port: fsm.Port{Protocol: fsm.UDP, Number: 80}},
			}}
			for i, port := range ports {
				s.Endpoints = append(s.Endpoints, fsm.Endpoint{
					Address: at.Addr(), Node: "n2", Ready: true, Serving: true, Offer: &fsm.Offer{Ports: []fsm.EndpointPort{
						{Name: s.Frontends[i%2].Name, Port: fsm.Port{Protocol: s.Frontends[i%2].Port.Protocol, Number: port}},
					}},
				})
			}
			l.group.Apply(t, &fsm.PutService{Service: s})
		}
		service(at.Port(), at.Port())
		agent := start(t, l.config)
		dial := func(script string) (ended chan string) {
			ended, said := make(chan string, 1), make(chan string, 1)
			c := exec.Command("bash", "-c", script+"; echo there; exec cat <&3")
			l.client.Join(c)
			out, err1 := c.StdoutPipe()
			why, err2 := c.StderrPipe()
			if err := errors.Join(err1, err2, c.Start()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = c.Process.Kill() // it may have ended
				_ = c.Wait()
			})
			go func() {
				line, _ := bufio.NewReader(out).ReadString('\n')
				said <- line
				text, _ := io.ReadAll(why)
				ended <- string(text)
			}()
			if line := <-said; line != "there\n" {
				t.Fatalf("%s: %q, %s", script, line, <-ended)
			}
			return ended
		}
		testkit.Until(t, "the Service is resolved", func() bool {
			return l.client.Bash("exec 3<>/dev/tcp/192.0.2.1/80 && exec 4<>/dev/udp/192.0.2.1/80 && echo both") == "both"
		})
		host, pod := dial("exec 3<>/dev/udp/192.0.2.1/80"), dial("exec unshare -n bash -c 'ip link set lo up; exec 3<>/dev/udp/192.0.2.1/80; echo there; exec cat <&3'")
		connection := dial("exec 3<>/dev/tcp/192.0.2.1/80")
		other := dial("exec 3<>/dev/udp/127.0.0.1/9")
		service(at.Port()+1, at.Port()+1)
		expect := func(what string, ended chan string) {
			t.Helper()
			select {
			case why := <-ended:
				if !strings.Contains(why, "connection abort") {
					t.Errorf("%s ended with %q", what, why)
				}
			case <-time.After(testkit.Patience):
				t.Errorf("%s goes on", what)
			}
		}
		expect("a socket of the host", host)
		expect("a socket of a pod", pod)
		if endTCP {
			expect("a connection", connection)
		} else if len(connection) > 0 {
			t.Errorf("a connection ended with %q", <-connection)
		}
		if len(other) > 0 {
			t.Errorf("a socket to somebody else ended with %q", <-other)
		}
		if err := agent.stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// Balancing §19: with sock.events calls of the node's programs are logged, with the name of the Service; an agent without it has that end.
// Rule: balancing §19.
func TestCallsOfTheNodeAreLogged(t *testing.T) {
	t.Parallel()
	l := newSockLab(t)
	first := l.says("first")
	l.putService(fsm.Service{ClusterIPs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}, first)
	l.config.Sock.Events = 1000
	var log testkit.Log
	agent := startLogging(t, l.config, slog.New(slog.NewJSONHandler(&log, nil)))
	l.eventually("first")
	testkit.Until(t, "the call is logged", func() bool {
		return strings.Contains(log.String(), `"NatIp":"127.0.0.1"`) && strings.Contains(log.String(), `"PolicyName":"shop/web","NatType":"service","NatMode":"ServiceClusterIP"`)
	})
	if text := log.String(); !strings.Contains(text, `"IsHostApp":true`) {
		t.Errorf("the caller is not the host's:\n%s", text)
	}
	if err := agent.stop(); err != nil {
		t.Fatal(err)
	}
	l.config.Sock.Events = 0
	var silent testkit.Log
	start := startLogging(t, l.config, slog.New(slog.NewJSONHandler(&silent, nil)))
	l.eventually("first")
	if err := start.stop(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(silent.String(), "ebpf event") {
		t.Errorf("nobody asked for events:\n%s", silent.String())
	}
}
