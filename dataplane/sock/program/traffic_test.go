// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package program

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/dataplane/sock/origin"
	"fairlead.io/fairlead/internal/testkit"
)

// podUID is of a pod of the tests.
const podUID = "1c6f0d4e-8a9b-4c55-9d3e-0a1b2c3d4e5f"

var (
	vip4 = netip.MustParseAddrPort("10.96.0.10:80")
	vip6 = netip.MustParseAddrPort("[2001:db8:96::10]:80")
)

func service(id uint32, fronts ...sock.Front) *sock.Rule {
	return &sock.Rule{ID: id, Kind: sock.Service, Name: "default/web", Fronts: fronts}
}

// Balancing §1, §16.1: sockets of every kind get to a backend, and see the address that they asked for.
// Rule: balancing §16.
func TestSocketsGetToBackends(t *testing.T) {
	l := newLab(t)
	k := l.tables(l.open())
	tcp4, tcp6, udp4, udp6 := serve(t, "tcp4", "127.0.0.1"), serve(t, "tcp6", "::1"), serve(t, "udp4", "127.0.0.1"), serve(t, "udp6", "::1")
	k.hold(sock.Want{Rules: []*sock.Rule{service(1, front(sock.TCP, vip4, tcp4), front(sock.TCP, vip6, tcp6), front(sock.UDP, vip4, udp4), front(sock.UDP, vip6, udp6))}})
	for _, c := range []struct {
		call
		want *server
	}{
		{call{Op: "connect", Net: "tcp4", To: vip4}, tcp4},
		{call{Op: "connect", Net: "tcp6", To: vip6}, tcp6},
		{call{Op: "connect", Net: "mapped", To: vip4}, tcp4},
		{call{Op: "connect", Net: "udp4", To: vip4}, udp4},
		{call{Op: "connect", Net: "udp6", To: vip6}, udp6},
		{call{Op: "send", Net: "udp4", To: vip4}, udp4},
		{call{Op: "send", Net: "udp6", To: vip6}, udp6},
		{call{Op: "send", Net: "mapped", To: vip4}, udp4},
		{call{Op: "send", Net: "mapped", To: vip6}, udp6},
	} {
		r := l.client.do(c.call)
		if r.Error != "" || r.Said != c.want.at.String() || netip.AddrPortFrom(r.Peer.Addr().Unmap(), r.Peer.Port()) != c.To {
			t.Errorf("%s %s to %s: %+v, want an answer of %s", c.Op, c.Net, c.To, r, c.want.at)
		}
	}
}

// Balancing §14, §16.3: sockets of the exempt priority get to what they dialled, those of another one to a backend.
// Rule: balancing §14.
func TestExemptSocketsAreLeftAlone(t *testing.T) {
	const exempt = 0x464c5000
	l := newLab(t)
	p := l.open()
	k := l.tables(p)
	for network, host := range map[string]string{"tcp4": "127.0.0.1", "tcp6": "::1", "udp4": "127.0.0.1", "udp6": "::1"} {
		protocol := uint8(sock.TCP)
		if network[:3] == "udp" {
			protocol = sock.UDP
		}
		captured, backend := serve(t, network, host), serve(t, network, host)
		k.hold(sock.Want{Rules: []*sock.Rule{service(1, front(protocol, captured.at, backend))}})
		for _, c := range []struct {
			setting  uint32
			priority int
			want     *server
		}{{exempt, exempt, captured}, {exempt, 0, backend}, {exempt, 6, backend}, {0, 0, backend}, {0, exempt, backend}} {
			if err := p.Set(Settings{IPv4: true, IPv6: true, ExemptPriority: c.setting}); err != nil {
				t.Fatal(err)
			}
			if r := l.client.do(call{Op: "connect", Net: network, To: captured.at, Priority: c.priority}); r.Error != "" || r.Said != c.want.at.String() {
				t.Errorf("%s of priority %#x, exempt %#x: %+v, want an answer of %s", network, c.priority, c.setting, r, c.want.at)
			}
		}
	}
}

// Balancing §10, §16.2: a node port is at every address of every node, nowhere else, and gives way to what is at an address of its own.
// Rule: balancing §10.
func TestNodePortsAreAtEveryNode(t *testing.T) {
	l := newLab(t)
	k := l.tables(l.open())
	tcp4, tcp6, udp4, own := serve(t, "tcp4", "127.0.0.1"), serve(t, "tcp6", "::1"), serve(t, "udp4", "127.0.0.1"), serve(t, "tcp4", "127.0.0.1")
	at := func(node string, port uint16) netip.AddrPort {
		return netip.AddrPortFrom(netip.MustParseAddr(node), port)
	}
	nodePort := func(protocol uint8, any netip.Addr, backends ...*server) sock.Front {
		return front(protocol, netip.AddrPortFrom(any, 30080), backends...)
	}
	rules := []*sock.Rule{
		service(1, nodePort(sock.TCP, sock.AnyNode4, tcp4), nodePort(sock.TCP, sock.AnyNode6, tcp6), nodePort(sock.UDP, sock.AnyNode4, udp4)),
		service(2, front(sock.TCP, at("127.0.9.2", 30080), own)),
	}
	nodes := []netip.Addr{netip.MustParseAddr("127.0.9.1"), netip.MustParseAddr("127.0.9.2"), netip.MustParseAddr("2001:db8:9::1")}
	expect := func(when string, c call, want *server) {
		t.Helper()
		r := l.client.do(c)
		switch {
		case want == nil && r.Said != "":
			t.Errorf("%s: %s %s to %s: %s answers", when, c.Op, c.Net, c.To, r.Said)
		case want != nil && (r.Error != "" || r.Said != want.at.String() || netip.AddrPortFrom(r.Peer.Addr().Unmap(), r.Peer.Port()) != c.To):
			t.Errorf("%s: %s %s to %s: %+v, want an answer of %s", when, c.Op, c.Net, c.To, r, want.at)
		}
	}
	connect := func(network, node string, port uint16) call {
		return call{Op: "connect", Net: network, To: at(node, port)}
	}

	k.hold(sock.Want{Rules: rules, Nodes: nodes})
	expect("whole", connect("tcp4", "127.0.9.1", 30080), tcp4)
	expect("whole", connect("mapped", "127.0.9.1", 30080), tcp4)
	expect("whole", connect("tcp6", "2001:db8:9::1", 30080), tcp6)
	expect("whole", call{Op: "send", Net: "udp4", To: at("127.0.9.1", 30080)}, udp4)
	expect("an address of its own", connect("tcp4", "127.0.9.2", 30080), own)
	expect("another port", connect("tcp4", "127.0.9.1", 30081), nil)
	expect("no node", connect("tcp4", "127.0.9.3", 30080), nil)

	k.hold(sock.Want{Rules: rules[:1], Nodes: nodes[1:]})
	expect("a node gone", connect("tcp4", "127.0.9.1", 30080), nil)
	expect("the address gone", connect("tcp4", "127.0.9.2", 30080), tcp4)
	k.hold(sock.Want{Nodes: nodes[1:]})
	expect("the Service gone", connect("tcp4", "127.0.9.2", 30080), nil)
}

// Balancing §7: what has no backend is refused at once, and what is nobody's is left alone.
// Rule: balancing §7.
func TestWithoutBackendsCallsAreRefused(t *testing.T) {
	l := newLab(t)
	k := l.tables(l.open())
	none, elsewhere := front(sock.TCP, vip4), front(sock.TCP, vip6)
	elsewhere.Empty = sock.Unreachable
	datagrams := front(sock.UDP, vip4)
	k.hold(sock.Want{Rules: []*sock.Rule{service(1, none, elsewhere, datagrams)}})
	direct := serve(t, "tcp4", "127.0.0.1")
	for _, c := range []struct {
		call
		want syscall.Errno
	}{
		{call{Op: "connect", Net: "tcp4", To: vip4}, refusal(syscall.ECONNREFUSED)},
		{call{Op: "connect", Net: "mapped", To: vip4}, refusal(syscall.ECONNREFUSED)},
		{call{Op: "connect", Net: "tcp6", To: vip6}, refusal(syscall.EHOSTUNREACH)},
		{call{Op: "send", Net: "udp4", To: vip4}, refusal(syscall.ECONNREFUSED)},
		{call{Op: "connect", Net: "tcp4", To: direct.at}, 0},
	} {
		if r := l.client.do(c.call); r.Errno != c.want || c.want == 0 && r.Peer != c.To {
			t.Errorf("%s %s to %s: %+v, want %v", c.Op, c.Net, c.To, r, c.want)
		}
	}
}

// Balancing §11: so many redirects a second, and then as if there were none.
// Rule: balancing §11.
func TestRedirectsAreLimited(t *testing.T) {
	l := newLab(t)
	p := l.open()
	k := l.tables(p)
	local, remote := serve(t, "tcp4", "127.0.0.1"), serve(t, "tcp4", "127.0.0.1")
	redirect := &sock.Rule{ID: 2, Kind: sock.LocalRedirect, Name: "dns", Fronts: []sock.Front{front(sock.TCP, vip4, local)}}
	k.hold(sock.Want{Rules: []*sock.Rule{service(1, front(sock.TCP, vip4, remote)), redirect}})
	if err := p.Set(Settings{IPv4: true, Limit: 1}); err != nil {
		t.Fatal(err)
	}
	// However the second falls, of so many calls within less than three at most four are redirected, and one is.
	start := time.Now()
	said := map[string]int{}
	for range 20 {
		said[l.client.do(call{Op: "connect", Net: "tcp4", To: vip4}).Said]++
	}
	most := int(time.Since(start)/time.Second) + 2
	if n := said[local.at.String()]; n < 1 || n > most || said[remote.at.String()] != 20-n {
		t.Errorf("answers %v, want 1 to %d of %s", said, most, local.at)
	}
	testkit.Until(t, "another second, and another redirect", func() bool {
		return l.client.do(call{Op: "connect", Net: "tcp4", To: vip4}).Said == local.at.String()
	})
}

// Balancing §12, §16.3: a client keeps its backend, and a flow of datagrams too, until that leaves.
// Rule: balancing §12.
func TestClientsKeepTheirBackend(t *testing.T) {
	for _, network := range []string{"tcp4", "udp4"} {
		t.Run(network, func(t *testing.T) {
			l := newLab(t)
			k := l.tables(l.open())
			var all []*server
			for range 8 {
				all = append(all, serve(t, network, "127.0.0.1"))
			}
			what := call{Op: "connect", Net: network, To: vip4}
			f := front(sock.TCP, vip4, all...)
			f.Affinity = time.Hour
			if network == "udp4" {
				what.Op = "send"
				f = front(sock.UDP, vip4, all...)
			}
			k.hold(sock.Want{Rules: []*sock.Rule{service(1, f)}})
			for len(f.Backends) > 0 {
				first := l.client.do(what)
				for range 10 {
					if again := l.client.do(what); again != first || first.Error != "" {
						t.Fatalf("answer %+v, then %+v", first, again)
					}
				}
				var left []sock.Backend
				for _, b := range f.Backends {
					if b.At.String() != first.Said {
						left = append(left, b)
					}
				}
				if len(left) != len(f.Backends)-1 {
					t.Fatalf("%s answered, which is none of %v", first.Said, f.Backends)
				}
				f.Backends = left
				k.hold(sock.Want{Rules: []*sock.Rule{service(1, f)}})
			}
		})
	}
}

// Balancing §12: memory ends after the time of a rule without use, and that of datagrams after the settings' time.
// Rule: balancing §12.
func TestMemoryEnds(t *testing.T) {
	l := newLab(t)
	p := l.open()
	k := l.tables(p)
	var streams, datagrams []*server
	for range 8 {
		streams, datagrams = append(streams, serve(t, "tcp4", "127.0.0.1")), append(datagrams, serve(t, "udp4", "127.0.0.1"))
	}
	sticky := front(sock.TCP, vip4, streams...)
	sticky.Affinity = time.Hour
	k.hold(sock.Want{Rules: []*sock.Rule{service(1, sticky, front(sock.UDP, vip4, datagrams...))}})
	if err := p.Set(Settings{IPv4: true, UDPIdle: time.Nanosecond}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []call{{Op: "connect", Net: "tcp4", To: vip4}, {Op: "send", Net: "udp4", To: vip4}} {
		said := map[string]bool{}
		for range 40 { // eight to the minus thirty-nine that one of them answers all
			r := l.client.do(c)
			if r.Error != "" {
				t.Fatal(r.Error)
			}
			said[r.Said] = true
			longAgo(t, p.maps.Affinity, time.Hour+time.Second)
		}
		if len(said) == 1 {
			t.Errorf("%s: one of eight answers all: %v", c.Net, said)
		}
	}
}

// longAgo has all clients in a table be seen that much earlier.
func longAgo(t *testing.T, memory *ebpf.Map, ago time.Duration) {
	var key sockMemoryKey
	var m sockMemory
	all := map[sockMemoryKey]sockMemory{}
	rows := memory.Iterate()
	for rows.Next(&key, &m) {
		m.Last -= uint64(ago)
		all[key] = m
	}
	for key, m := range all {
		if err := memory.Put(key, m); err != nil {
			t.Fatal(err)
		}
	}
}

// Balancing §16.1: a connected socket that closes leaves nothing behind, in either family.
// Rule: balancing §16.
func TestClosedSocketsAreForgotten(t *testing.T) {
	l := newLab(t)
	p := l.open()
	tcp4, tcp6, udp4 := serve(t, "tcp4", "127.0.0.1"), serve(t, "tcp6", "::1"), serve(t, "udp4", "127.0.0.1")
	l.tables(p).hold(sock.Want{Rules: []*sock.Rule{service(1, front(sock.TCP, vip4, tcp4), front(sock.TCP, vip6, tcp6), front(sock.UDP, vip4, udp4))}})
	records := func() (n int) {
		var key sockRecordKey
		var r sockRecord
		rows := p.maps.Records.Iterate()
		for rows.Next(&key, &r) {
			n++
		}
		return n
	}
	for _, c := range []call{
		{Net: "tcp4", To: vip4}, {Net: "tcp6", To: vip6}, {Net: "mapped", To: vip4}, {Net: "udp4", To: vip4},
	} {
		c.Op = "connect"
		if r := l.client.do(c); r.Error != "" {
			t.Fatal(r.Error)
		}
		if n := records(); n != 0 {
			t.Errorf("%s: the socket is closed, and %d records are there", c.Net, n)
		}
	}
	c := call{Op: "connect", Net: "tcp4", To: vip4, Keep: true}
	if r := l.client.do(c); r.Error != "" || records() != 1 {
		t.Errorf("an open connection has %d records (%s)", records(), r.Error)
	}
}

// Balancing §6: sockets of a rule's own backends go on as if it were not there, where the rule says so.
// Rule: balancing §6.
func TestBackendsAreSpared(t *testing.T) {
	l := newLab(t)
	p := l.open()
	local, remote := serve(t, "tcp4", "127.0.0.1"), serve(t, "tcp4", "127.0.0.1")
	redirect := &sock.Rule{ID: 2, Kind: sock.LocalRedirect, Name: "dns", Fronts: []sock.Front{front(sock.TCP, vip4, local)}, SparesBackends: true}
	l.tables(p).hold(sock.Want{Rules: []*sock.Rule{service(1, front(sock.TCP, vip4, remote)), redirect}})
	// As kubelets lay cgroups out: of a pod of each class, for both drivers.
	for _, pod := range []string{"kubepods/besteffort/pod" + podUID, "kubepods/pod" + podUID, "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + strings.ReplaceAll(podUID, "-", "_") + ".slice"} {
		in := l.newClientIn(l.Below(pod + "/" + strings.Repeat("0", 64)))
		connect := call{Op: "connect", Net: "tcp4", To: vip4}
		spare := func(uids ...string) {
			t.Helper()
			want := map[sock.Own]bool{}
			for _, cgroup := range origin.New(l.cgroup, "").Pods(uids) {
				want[sock.Own{Cgroup: cgroup, Rule: 2}] = true
			}
			if err := p.Spare(want); err != nil {
				t.Fatal(err)
			}
		}
		expect := func(when string, c *client, what call, s *server) {
			t.Helper()
			if r := c.do(what); r.Said != s.at.String() {
				t.Errorf("%s, %s: %+v, want %s", pod, when, r, s.at)
			}
		}
		spare()
		expect("nobody is spared", in, connect, local)
		spare(podUID)
		expect("a client", l.client, connect, local)
		expect("the backend itself", in, connect, remote)
		in.end()
		l.removeBelow()
	}
}

// Balancing §21: who looks sees who is remembered, which sockets got to a backend, and how calls ended.
// Rule: balancing §21.
func TestTablesTellOfClients(t *testing.T) {
	l := newLab(t)
	k := l.tables(l.open())
	tcp, udp := serve(t, "tcp4", "127.0.0.1"), serve(t, "udp4", "127.0.0.1")
	sticky := front(sock.TCP, vip4, tcp)
	sticky.Affinity = time.Hour
	k.hold(sock.Want{Rules: []*sock.Rule{service(7, sticky, front(sock.UDP, vip4, udp), front(sock.TCP, vip6))}})
	for _, c := range []call{{Op: "connect", Net: "tcp4", To: vip4, Keep: true}, {Op: "send", Net: "udp4", To: vip4}} {
		if r := l.client.do(c); r.Error != "" {
			t.Fatal(r.Error)
		}
	}
	l.client.do(call{Op: "connect", Net: "tcp6", To: vip6})
	seen, err := Look(l.pins)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = seen.Close() }()
	rows, err1 := seen.Rows()
	records, err2 := seen.Records()
	affinity, err3 := seen.Affinity()
	flows, err4 := seen.Flows()
	counters, err5 := seen.Counters()
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	at := map[uint8]netip.AddrPort{sock.TCP: tcp.at, sock.UDP: udp.at}
	if len(records) != 2 {
		t.Errorf("records %+v", records)
	}
	for _, r := range records {
		if r.Rule != 7 || r.Original.Address != vip4.Addr() || netip.AddrPortFrom(r.Backend.Address, r.Backend.Port) != at[r.Original.Protocol] {
			t.Errorf("record %+v", r)
		}
	}
	for protocol, all := range map[uint8][]Memory{sock.TCP: affinity, sock.UDP: flows} {
		if len(all) != 1 {
			t.Errorf("over %d: %+v", protocol, all)
			continue
		}
		backend, ok := rows.Remembered(all[0].To, all[0].Rule, all[0].Backend)
		if !ok || backend != at[protocol] || all[0].Unused > time.Minute {
			t.Errorf("over %d a client is remembered at %v (%v), unused for %v", protocol, backend, ok, all[0].Unused)
		}
	}
	if of := counters[sock.Service]; of["resolved"] != 2 || of["refused"] != 1 || of["failed"] != 0 {
		t.Errorf("counters %+v", of)
	}
	if _, err := Look(t.TempDir()); !errors.Is(err, ErrNothing) {
		t.Errorf("where no agent was: %v", err)
	}
}

// Balancing §19: calls that were resolved, or refused, are told of, with who made them; what is nobody's is not, and nothing is unless it is
// asked for.
// Rule: balancing §19.
func TestCallsAreToldOf(t *testing.T) {
	l := newLab(t)
	p := l.open()
	k := l.tables(p)
	tcp, udp := serve(t, "tcp4", "127.0.0.1"), serve(t, "udp4", "127.0.0.1")
	k.hold(sock.Want{Rules: []*sock.Rule{service(7, front(sock.TCP, vip4, tcp), front(sock.UDP, vip4, udp), front(sock.TCP, vip6))}})
	l.client.do(call{Op: "connect", Net: "tcp4", To: vip4}) // nobody asked yet
	if err := p.Set(Settings{IPv4: true, IPv6: true, Events: true}); err != nil {
		t.Fatal(err)
	}
	events := make(chan sock.Event, 10)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Events(ctx, func(e sock.Event) { events <- e }) }()
	var folder syscall.Stat_t
	if err := syscall.Stat(l.cgroup, &folder); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		call
		backend netip.AddrPort
		failure sock.Failure
		ipv4    bool
	}{
		{call{Op: "connect", Net: "tcp4", To: vip4}, tcp.at, sock.NoFailure, true},
		{call{Op: "connect", Net: "mapped", To: vip4}, tcp.at, sock.NoFailure, true},
		{call{Op: "send", Net: "udp4", To: vip4}, udp.at, sock.NoFailure, true},
		{call{Op: "connect", Net: "tcp6", To: vip6}, netip.AddrPort{}, sock.NoBackend, false},
	} {
		began := time.Now()
		l.client.do(call{Op: "connect", Net: "tcp4", To: tcp.at}) // nobody's
		l.client.do(c.call)
		select {
		case e := <-events:
			protocol := uint8(sock.TCP)
			if c.Op == "send" {
				protocol = sock.UDP
			}
			to := sock.Place{Address: c.To.Addr(), Port: c.To.Port(), Protocol: protocol}
			early, late := e.Time.Before(began.Add(-time.Second)), e.Time.After(time.Now().Add(time.Second)) // two clocks
			if e.To != to || e.Backend != c.backend || e.Failure != c.failure || e.Rule != 7 || e.Kind != sock.Service || e.IPv4 != c.ipv4 ||
				e.Cgroup != folder.Ino || int(e.PID) != l.client.pid || early || late {
				t.Errorf("%s %s to %s: %+v, want it of process %d in cgroup %d, to %s", c.Op, c.Net, c.To, e, l.client.pid, folder.Ino, c.backend)
			}
		case <-time.After(patience):
			t.Fatalf("%s %s to %s: nothing is told", c.Op, c.Net, c.To)
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || len(events) > 0 {
		t.Errorf("it ended with %v, and %d events more", err, len(events))
	}
}
