// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

var mesh = fsm.TunnelSettings{Range4: netip.MustParsePrefix("10.250.0.0/24"), Range6: netip.MustParsePrefix("fd00:250::/64"), Port: 7446, VNI: 7446}

// converge plans until nothing is left to do.
func (g *group) converge(t failer, in Input) Result {
	t.Helper()
	for range 8 {
		in.Record, in.Now = g.Read(), time.UnixMilli(1)
		out := Plan(in)
		if len(out.Proposals) == 0 {
			return out
		}
		for _, p := range out.Proposals {
			g.must(t, p.Command)
		}
	}
	t.Fatalf("plans do not come to an end")
	return Result{}
}

// joins has nodes n0, n1 and n2 in the record, under a first boot.
func (g *group) joins(t failer) {
	t.Helper()
	for i := range 3 {
		id := fsm.NodeID(fmt.Sprint("n", i))
		g.must(t, &fsm.PutNode{ID: id, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)})}, Eligible: true},
			&fsm.RegisterBoot{Node: id, Boot: "b1"})
	}
}

// acknowledges has a node carry out all that is in the record, but for some addresses.
func (g *group) acknowledges(t failer, id fsm.NodeID, failed ...netip.Addr) {
	t.Helper()
	n, _ := fsm.Get[*fsm.Node](g.Read(), fsm.TableNodes, string(id))
	mark := fsm.AppliedMark{Node: id, Boot: n.Boot, Upto: g.Read().Revision()}
	for _, a := range failed {
		mark.Failed = append(mark.Failed, fsm.HostPrefix(a))
	}
	g.must(t, &fsm.Acknowledge{Marks: []fsm.AppliedMark{mark}})
}

// tunnels are the numbers of hosts.
func (g *group) tunnels() map[fsm.TunnelID]uint32 {
	out := map[fsm.TunnelID]uint32{}
	for _, r := range fsm.List[*fsm.Tunnel](g.Read(), fsm.TableTunnels) {
		out[r.Host] = r.Number
	}
	return out
}

// leads are "address node ready" of the backends of a policy.
func (g *group) leads(id fsm.PolicyID) (out []string) {
	for _, b := range g.rows()[id].Backends {
		out = append(out, fmt.Sprintf("%s %s %t", b.Address, b.Node, b.Ready))
	}
	return out
}

func toProxies(name string, created int64) mPolicy {
	p := toPods(name, created)
	p.mode = world.ToProxies
	return p
}

// proxied is a world with tunnels, in which one policy leads to pods of n0.
func proxied(policies ...mPolicy) Input {
	in := plain().with(policies...).input(everything)
	in.Tunnels = mesh
	for _, n := range in.Nodes {
		n.Ready = true
	}
	return in
}

// Balancing §13.7: a node is led to once it has a ready pod and said that it has its tunnel and leads there (S9), and not while it is
// down; until a first one is, connections go where they went.
// Rule: balancing §13.
func TestNodesAreLedToOnceTheySaidSo(t *testing.T) {
	g := newGroup(t, format)
	g.joins(t)
	in := proxied(toProxies("a", 1))
	const id = "BalancingPolicy/a"
	wants := func(when string, captured bool, want ...string) {
		t.Helper()
		out := g.converge(t, in)
		r := g.rows()[id]
		if got := g.leads(id); !slices.Equal(got, want) || (len(r.Captures) > 0) != captured || (r.Pending.Code == "") != (len(want) > 0) {
			t.Fatalf("%s: leads to %q, not %q; captures %v, waits for %+v", when, got, want, r.Captures, r.Pending)
		}
		if len(want) == 0 && !out.AwaitsNodes && when != "n0 is down" {
			t.Errorf("%s: nothing is waited for", when)
		}
	}
	for i := range 2 {
		g.must(t, &fsm.ReportTunnels{Node: fsm.NodeID(fmt.Sprint("n", i)), Boot: "b1", Tunnels: true})
	}
	wants("nothing is acknowledged", false)
	g.acknowledges(t, "n1")
	wants("a node without a pod", false)
	address := mesh.Addresses(g.tunnels()["n0"])[0]
	g.acknowledges(t, "n0", address)
	wants("the tunnel failed", false)
	g.acknowledges(t, "n0")
	own := address.String() + " n0 true"
	wants("acknowledged", true, own)
	g.must(t, &fsm.RegisterBoot{Node: "n0", Boot: "b2"})
	wants("booted", true)
	g.must(t, &fsm.ReportTunnels{Node: "n0", Boot: "b2", Tunnels: true})
	g.acknowledges(t, "n0")
	wants("and acknowledged again", true, own)
	g.must(t, &fsm.SetLiveness{Node: "n0", Boot: "b2", Liveness: fsm.NodeDown})
	wants("n0 is down", true)
	g.must(t, &fsm.SetLiveness{Node: "n0", Boot: "b2"})
	in.Pods[0].Ready = false
	wants("not ready", true, strings.Replace(own, "true", "false", 1))
	in.Pods[0].Ready = true
	in.Nodes[0].Ready = false
	wants("the node is not ready", true, strings.Replace(own, "true", "false", 1))
	in.Nodes[0].Ready = true
	again := *in.Pods[0]
	again.UID = "u2"
	in.Pods[0] = &again
	wants("another pod of the name, which n0 does not know yet", true)
	g.acknowledges(t, "n0")
	wants("which n0 knows", true, own)
}

// Balancing §13, §17: a pod of both families is behind proxy addresses of both.
// Rule: balancing §13.
func TestPodsOfBothFamiliesAreProxied(t *testing.T) {
	g := newGroup(t, format)
	g.joins(t)
	in := proxied(toProxies("a", 1))
	in.Pods[0].IPs = []netip.Addr{netip.MustParseAddr(in.Pods[0].IP), netip.MustParseAddr("fd00:9::1")}
	g.must(t, &fsm.ReportTunnels{Node: "n0", Boot: "b1", Tunnels: true})
	g.converge(t, in)
	g.acknowledges(t, "n0")
	g.converge(t, in)
	own := mesh.Addresses(g.tunnels()["n0"])
	if got, want := g.leads("BalancingPolicy/a"), []string{own[0].String() + " n0 true", own[1].String() + " n0 true"}; !slices.Equal(got, want) {
		t.Errorf("leads to %q, not %q", got, want)
	}
}

// Balancing §2.3, §13.3: an administrator's proxy address needs no tunnel, and wins; without it the node leaves, or has its tunnel's.
// Rule: balancing §13.
func TestAdministratorsAddressesWin(t *testing.T) {
	g := newGroup(t, format)
	g.joins(t)
	in := proxied(toProxies("a", 1))
	in.Tunnels = fsm.TunnelSettings{}
	leads := func(when string, want ...string) {
		t.Helper()
		g.converge(t, in)
		if got := g.leads("BalancingPolicy/a"); !slices.Equal(got, want) {
			t.Fatalf("%s: leads to %q, not %q", when, got, want)
		}
	}
	theirs := []netip.Addr{netip.MustParseAddr("203.0.113.7")}
	in.Nodes[0].Proxies, in.Nodes[1].Proxies = theirs, theirs
	leads("no tunnels", "203.0.113.7 n0 true")
	if r := g.rows()["BalancingPolicy/a"]; len(r.Proxied) != 1 || len(r.Proxied[0].Ports) > 0 {
		t.Errorf("nodes are told to lead there: %+v", r.Proxied)
	}
	in.Tunnels = mesh
	g.must(t, &fsm.ReportTunnels{Node: "n0", Boot: "b1", Tunnels: true})
	g.converge(t, in)
	g.acknowledges(t, "n0")
	leads("with a tunnel besides", "203.0.113.7 n0 true")
	in.Nodes[0].Proxies = nil
	leads("taken back", mesh.Addresses(g.tunnels()["n0"])[0].String()+" n0 true")
	g.must(t, &fsm.ReportTunnels{Node: "n0", Boot: "b1"})
	leads("and the tunnel, too")
}

// Balancing §13.5: the port behind a proxy port is the annotation's, else the targetPort of the captured port, else the same number;
// names are resolved on each pod.
// Rule: balancing §13.
func TestPortBehindAProxyPort(t *testing.T) {
	for name, c := range map[string]struct {
		annotation, target string
		own                bool // an address of its own, no Service
		want               uint16
	}{
		"a number in the annotation":     {"9000", "7000", false, 9000},
		"a name in the annotation":       {"http", "7000", false, 8081},
		"the Service's number":           {"", "7000", false, 7000},
		"the Service's name":             {"", "http", false, 8081},
		"the proxy port":                 {"", "7000", true, 8080},
		"a name that no container has":   {"https", "", false, 0},
		"a name of another protocol":     {"dns", "", false, 0},
		"the annotation of another port": {"", "", false, 8080},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, format)
			g.joins(t)
			p := toProxies("a", 1)
			if c.own {
				p.service, p.address = "", "169.254.77.1"
			}
			in := proxied(p)
			in.Services[0].Ports[0].TargetPort = c.target
			o := in.Balancing[0]
			o.Ports[0].Name = "web"
			o.ProxyTargets = []world.KV{{Key: "other", Value: "1"}}
			if c.annotation != "" {
				o.ProxyTargets = append(o.ProxyTargets, world.KV{Key: "web", Value: c.annotation})
			}
			in.Pods[0].Ports = []world.PodPort{{Name: "http", Protocol: world.TCP, Port: 8081}, {Name: "dns", Protocol: world.UDP, Port: 53}}
			g.converge(t, in)
			var got uint16
			for _, port := range g.rows()["BalancingPolicy/a"].Proxied[0].Ports {
				if port.Port != (fsm.Port{Protocol: fsm.TCP, Number: 8080}) {
					t.Errorf("proxy port %v", port.Port)
				}
				got = port.Target
			}
			if got != c.want {
				t.Errorf("leads to port %d, not %d", got, c.want)
			}
		})
	}
}

// Balancing §3 A14, §13.6: a proxy port that an older policy or a node port has stays with them, and the other policy tells.
// Rule: balancing §13.
func TestA14ProxyPortsAreNotStolen(t *testing.T) {
	other := func(in Input) *world.BalancingPolicy {
		in.Balancing[1].Service, in.Balancing[1].Address = world.ID{}, netip.MustParseAddr("169.254.77.1")
		return in.Balancing[1]
	}
	g := newGroup(t, format)
	g.joins(t)
	in := proxied(toProxies("a", 1), toProxies("b", 2))
	b := other(in)
	in.Services[0].Ports[0].TargetPort = "7000" // of a; b leads to 8080
	ready := func() {
		g.must(t, &fsm.ReportTunnels{Node: "n0", Boot: "b1", Tunnels: true})
		g.converge(t, in)
		g.acknowledges(t, "n0")
		g.converge(t, in)
	}
	ready()
	r := g.rows()["BalancingPolicy/b"]
	if r.Pending.Code != WaitsForProxyPort || !strings.Contains(r.Pending.Text, "8080/TCP is that of BalancingPolicy/a") || len(r.Captures) > 0 || len(r.Proxied[0].Ports) > 0 {
		t.Errorf("b has %+v", r)
	}
	if a := g.rows()["BalancingPolicy/a"]; a.Pending.Code != "" || len(a.Captures) != 1 || len(a.Proxied[0].Ports) != 1 {
		t.Errorf("a has %+v", a)
	}
	in.Services[0].Ports[0].TargetPort = "8080" // both lead to the same
	g.converge(t, in)
	if r := g.rows()["BalancingPolicy/b"]; len(r.Proxied[0].Ports) != 1 {
		t.Errorf("b, which leads to the same, has %+v", r)
	}
	b.Ports[0].Target = 30080
	in.Services[0].Ports[0].NodePort = 30080
	g.converge(t, in)
	if r := g.rows()["BalancingPolicy/b"]; r.Pending.Code != WaitsForProxyPort || !strings.Contains(r.Pending.Text, "node port of Service shop/s1") {
		t.Errorf("at a node port b waits for %+v", r.Pending)
	}
}

// Balancing §13.6, A14: a proxy port that is a host port of another pod is left to that: its node is left out, and where no other node is
// left the policy captures nothing. A pod that the policy leads to may have it.
// Rule: balancing §13.
func TestA14HostPortsAreNotStolen(t *testing.T) {
	g := newGroup(t, format)
	g.joins(t)
	in := proxied(toProxies("a", 1))
	const id = "BalancingPolicy/a"
	g.must(t, &fsm.ReportTunnels{Node: "n0", Boot: "b1", Tunnels: true})
	settle := func() Result {
		g.converge(t, in)
		g.acknowledges(t, "n0")
		return g.converge(t, in)
	}
	if settle(); len(g.leads(id)) != 1 {
		t.Fatalf("without host ports it leads to %q", g.leads(id))
	}
	other := *in.Pods[0]
	other.ID.Name, other.UID, other.Labels, other.IP, other.IPs = "ingress", "u-ingress", nil, "10.0.0.9", nil
	other.HostPorts = []world.HostPort{{Protocol: "TCP", Port: 8080}}
	in.Pods = append(in.Pods, &other)
	settle()
	if r := g.rows()[id]; r.Pending.Code != WaitsForProxyPort || !strings.Contains(r.Pending.Text, "8080/TCP is a host port of pod shop/ingress on node n0") || len(r.Captures) > 0 || len(r.Backends) > 0 {
		t.Errorf("its only node's port is taken: %+v", r)
	}
	second := *in.Pods[0]
	second.ID.Name, second.UID, second.IP, second.Node = "p1", "u-p1", "10.0.0.2", "n1"
	in.Pods = append(in.Pods, &second)
	g.must(t, &fsm.ReportTunnels{Node: "n1", Boot: "b1", Tunnels: true})
	settle()
	g.acknowledges(t, "n1")
	if out := settle(); len(g.leads(id)) != 1 || g.rows()[id].Pending.Code != "" || len(out.Waiting) != 1 || out.Waiting[0].Code != WaitsForProxyPort {
		t.Errorf("one of two nodes' ports is taken: it leads to %q, told %+v, row %+v", g.leads(id), out.Waiting, g.rows()[id])
	}
	in.Pods = in.Pods[:2]
	other.HostPorts[0].Protocol = "UDP"
	if settle(); len(g.leads(id)) != 1 {
		t.Errorf("at another protocol's port it leads to %q", g.leads(id))
	}
	other.HostPorts[0].Protocol, other.Labels = "TCP", in.Pods[0].Labels
	if settle(); len(g.leads(id)) != 1 || g.rows()[id].Pending.Code != "" {
		t.Errorf("at its own pod's port it leads to %q", g.leads(id))
	}
}

// Balancing §13.1: addresses that would be somebody else's are told, and not given out.
// Rule: balancing §13.
func TestRangesOfOthersAreTold(t *testing.T) {
	g := newGroup(t, format)
	g.joins(t)
	g.must(t, &fsm.PutPool{Pool: fsm.Pool{Name: "public", Ranges: []fsm.Range{{From: netip.MustParseAddr("10.250.0.64"), To: netip.MustParseAddr("10.250.0.95")}}}})
	out := g.converge(t, proxied())
	if len(out.Waiting) != 1 || out.Waiting[0].Code != WaitsForRange || !strings.Contains(out.Waiting[0].Text, "pool public has 10.250.0.64") || g.Read().Group().Tunnels.On() {
		t.Errorf("told %+v, settings %+v", out.Waiting, g.Read().Group().Tunnels)
	}
	in := proxied()
	in.Tunnels.Range4 = netip.MustParsePrefix("192.0.2.0/28")
	if out := g.converge(t, in); len(out.Waiting) != 1 || !strings.Contains(out.Waiting[0].Text, "node n0 has 192.0.2.1") {
		t.Errorf("told %+v", out.Waiting)
	}
}

// Balancing §13.1: an address of a node is the node's: a host outside that says it has it gets no tunnel, and gives up one that it got before the node
// came; a host that is taken out gives up its own, which another one has once nodes forgot it.
// Rule: balancing §13.
func TestHostsOutsideTakeNoNodesAddress(t *testing.T) {
	g := newGroup(t, format)
	g.joins(t)
	in := proxied()
	at := func(id fsm.HostID, a string) {
		t.Helper()
		g.must(t, &fsm.RegisterHost{ID: id, Boot: "b1", Addresses: []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr(a)}, Admit: true, Tunnels: true})
	}
	has := func(when string, want ...fsm.TunnelID) Result {
		t.Helper()
		out := g.converge(t, in)
		var have []fsm.TunnelID
		for _, r := range fsm.List[*fsm.Tunnel](g.Read(), fsm.TableTunnels) {
			if !r.Leaving {
				have = append(have, r.Host)
			}
		}
		if !slices.Equal(have, want) {
			t.Fatalf("%s: %v have tunnels, not %v", when, have, want)
		}
		return out
	}
	at("edge", "192.0.2.1") // that of n0
	if out := has("a node's address"); len(out.Waiting) != 1 || !strings.Contains(out.Waiting[0].Text, "says that it has a node's") {
		t.Errorf("told %+v", out.Waiting)
	}
	at("edge", "192.0.2.77")
	has("an address of its own", "outside/edge")
	g.must(t, &fsm.ReportTunnels{Node: "n0", Boot: "b1", Tunnels: true}, &fsm.PutNode{ID: "n0", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.77")}, Eligible: true})
	has("which a node comes to have", "n0")
	at("edge", "192.0.2.78")
	has("both", "n0", "outside/edge")
	g.must(t, &fsm.RemoveHost{ID: "edge"})
	has("taken out", "n0")
	number := g.tunnels()["outside/edge"]
	at("other", "192.0.2.78")
	if has("another one", "n0", "outside/other"); g.tunnels()["outside/other"] == number || number == 0 {
		t.Errorf("it has number %d of the one that n0 may still know", number)
	}
	g.acknowledges(t, "n0")
	g.converge(t, in)
	if _, still := g.tunnels()["outside/edge"]; still {
		t.Error("its number is not free, though n0 forgot it")
	}
}

// Balancing §13.1: whatever hosts do, no two hosts have one address, a host keeps its own for as long as it makes tunnels, and another
// one has it only after everybody who makes tunnels said that it is gone. A policy leads to exactly those nodes that have a pod, and
// said that they have their tunnel and lead there.
// Rule: balancing §13.
func TestPropertyTunnelsAndProxies(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		g := newGroup(t, format)
		g.joins(t)
		in := proxied(toProxies("a", 1))
		in.Pods = nil
		in.Nodes = append(in.Nodes, &world.Node{Meta: world.Meta{ID: world.ID{Name: "n2"}}, Ready: true})
		in.Tunnels.Range4, in.Tunnels.Range6 = netip.MustParsePrefix("10.250.0.0/29"), netip.Prefix{}
		makes, told, down := map[fsm.TunnelID]bool{}, map[fsm.TunnelID]bool{}, map[fsm.TunnelID]bool{}
		knows := map[string]bool{} // pods that their nodes know of
		numbers := map[fsm.TunnelID]uint32{}
		pending := map[fsm.TunnelID]map[fsm.TunnelID]bool{} // hosts that left, and who has still to say so
		const edge fsm.TunnelID = "outside/n0"              // which is another machine than n0
		ends := []fsm.TunnelID{"n0", "n1", "n2", edge}
		says := func(id fsm.TunnelID, makes bool) {
			if id == edge {
				g.must(t, &fsm.RegisterHost{ID: "n0", Boot: "b1", Addresses: []netip.Addr{netip.MustParseAddr("198.51.100.9")}, Admit: true, Tunnels: makes})
			} else {
				g.must(t, &fsm.ReportTunnels{Node: fsm.NodeID(id), Boot: "b1", Tunnels: makes})
			}
		}
		says(edge, false)
		for range rapid.IntRange(1, 14).Draw(t, "events") {
			id := rapid.SampledFrom(ends).Draw(t, "host")
			events := []string{"on", "on", "off", "ack", "ack", "ack", "pod", "pod", "no pod", "down", "up"}
			if id == edge {
				events = events[:6] // all that it can do
			}
			switch rapid.SampledFrom(events).Draw(t, "event") {
			case "on":
				if says(id, true); !makes[id] {
					makes[id], told[id] = true, told[id] && pending[id] == nil && numbers[id] != 0
					delete(pending, id)
				}
			case "off":
				says(id, false)
				if makes[id] {
					makes[id], told[id], pending[id] = false, false, map[fsm.TunnelID]bool{"n0": true, "n1": true, "n2": true}
					if id != edge {
						pending[id][edge] = true
					}
				}
			case "ack":
				if id == edge {
					g.must(t, &fsm.ReportHosts{Marks: []fsm.HostMark{{Host: "n0", Boot: "b1", Upto: g.Read().Revision()}}})
				} else {
					g.acknowledges(t, fsm.NodeID(id))
				}
				told[id] = makes[id]
				for _, p := range in.Pods {
					if p.Node == string(id) {
						knows[p.Name] = true
					}
				}
				for _, waits := range pending {
					delete(waits, id)
				}
			case "pod":
				name := "p-" + string(id)
				if !slices.ContainsFunc(in.Pods, func(p *world.Pod) bool { return p.Name == name }) {
					p := &world.Pod{Meta: world.Meta{ID: world.ID{Namespace: "shop", Name: name}, UID: fmt.Sprint(g.Applied())}, Node: string(id), Ready: true, Running: true, Labels: []world.KV{{Key: "app", Value: "web"}}}
					p.IP = "10.0." + string(id[1:]) + ".1"
					in.Pods = append(in.Pods, p)
					knows[name] = false
				}
			case "no pod":
				in.Pods = slices.DeleteFunc(in.Pods, func(p *world.Pod) bool { return p.Node == string(id) })
			case "down", "up":
				down[id] = !down[id]
				liveness := fsm.NodeUp
				if down[id] {
					liveness = fsm.NodeDown
				}
				g.must(t, &fsm.SetLiveness{Node: fsm.NodeID(id), Boot: "b1", Liveness: liveness})
			}
			g.converge(t, in)
			now := g.tunnels()
			held := map[uint32]fsm.TunnelID{}
			for host, n := range now {
				if other, taken := held[n]; taken {
					t.Fatalf("%s and %s both have number %d", host, other, n)
				}
				held[n] = host
				if was := numbers[host]; makes[host] && was != 0 && was != n {
					t.Fatalf("%s had number %d, and has %d", host, was, n)
				}
			}
			for host, waits := range pending {
				still := slices.ContainsFunc(slices.Collect(maps.Keys(waits)), func(w fsm.TunnelID) bool { return waits[w] && makes[w] })
				if _, has := now[host]; has != still {
					t.Fatalf("%s left, is awaited by %v, and has its number: %t", host, waits, has)
				} else if !has {
					delete(pending, host)
				}
			}
			for host := range makes {
				if _, has := now[host]; makes[host] && !has {
					t.Fatalf("%s makes tunnels, and has none", host)
				}
			}
			numbers = now
			var want []string
			for _, host := range []fsm.TunnelID{"n0", "n1", "n2"} {
				has := slices.ContainsFunc(in.Pods, func(p *world.Pod) bool { return p.Node == string(host) && knows[p.Name] })
				if makes[host] && told[host] && has && !down[host] {
					want = append(want, fmt.Sprintf("%s %s true", in.Tunnels.Addresses(now[host])[0], host))
				}
			}
			slices.Sort(want)
			if got := g.leads("BalancingPolicy/a"); !slices.Equal(got, want) {
				t.Fatalf("leads to %q, not %q", got, want)
			}
		}
	})
}

// Balancing §13: when ports of a policy come and go, or lead elsewhere, nodes that are led to stay for the ports that stay, and a port that
// is new is captured once all of them said that they lead it (S9). A node whose agent is silent holds that up only where no other is.
// Rule: balancing §13.
func TestPortsThatStayAreLedAllTheTime(t *testing.T) {
	g := newGroup(t, format)
	g.joins(t)
	p := toProxies("a", 1)
	p.service, p.address = "", "169.254.77.1"
	in := proxied(p)
	second := *in.Pods[0]
	second.ID.Name, second.UID, second.IP, second.Node = "p1", "u-p1", "10.0.0.2", "n1"
	in.Pods = append(in.Pods, &second)
	const id = "BalancingPolicy/a"
	for _, n := range []fsm.NodeID{"n0", "n1"} {
		g.must(t, &fsm.ReportTunnels{Node: n, Boot: "b1", Tunnels: true})
	}
	g.converge(t, in)
	wants := func(when string, captured []uint16, nodes ...string) Result {
		t.Helper()
		out := g.converge(t, in)
		var ports []uint16
		var led []string
		for _, c := range g.rows()[id].Captures {
			ports = append(ports, c.Port.Number)
		}
		for _, b := range g.rows()[id].Backends {
			led = append(led, string(b.Node))
		}
		if !slices.Equal(ports, captured) || !slices.Equal(led, nodes) {
			t.Fatalf("%s: captures %v and leads to %v, not %v and %v", when, ports, led, captured, nodes)
		}
		return out
	}
	both := []string{"n0", "n1"}
	g.acknowledges(t, "n0")
	g.acknowledges(t, "n1")
	wants("at first", []uint16{80}, both...)

	o := in.Balancing[0]
	first := o.Ports
	o.Ports = append(slices.Clone(first), world.RedirectPort{Name: "more", Protocol: world.TCP, Port: 81, Target: 8081})
	out := wants("a port more, which no node leads yet", []uint16{80}, both...)
	if !out.AwaitsNodes || len(out.Waiting) != 1 || out.Waiting[0].Code != WaitsForNode || !strings.Contains(out.Waiting[0].Text, "8081/TCP is not captured until node n0") {
		t.Errorf("told %+v", out.Waiting)
	}
	g.acknowledges(t, "n0")
	wants("which one leads", []uint16{80}, both...)
	g.must(t, &fsm.SetLiveness{Node: "n1", Boot: "b1", Liveness: fsm.AgentDown})
	wants("the other one is silent", []uint16{80, 81}, "n0")
	g.must(t, &fsm.SetLiveness{Node: "n1", Boot: "b1"})
	wants("and back, but does not lead it", []uint16{80, 81}, "n0")
	g.acknowledges(t, "n1")
	wants("which both lead", []uint16{80, 81}, both...)

	o.ProxyTargets = []world.KV{{Key: "more", Value: "9000"}}
	wants("leads to another port of pods", []uint16{80, 81}, both...)
	if ports := g.rows()[id].Proxied[1].Ports; len(ports) != 1 || ports[0].Target != 9000 {
		t.Errorf("the record leads to %+v", ports)
	}
	o.Ports = o.Ports[1:]
	wants("the first port goes", []uint16{81}, both...)
	o.Ports = first
	wants("another one comes in the place of the last", nil)
	g.acknowledges(t, "n0")
	wants("which one node leads", []uint16{80}, "n0")

	g.must(t, &fsm.SetLiveness{Node: "n0", Boot: "b1", Liveness: fsm.AgentDown}, &fsm.SetLiveness{Node: "n1", Boot: "b1", Liveness: fsm.NodeDown})
	o.Ports = append(slices.Clone(first), world.RedirectPort{Name: "more", Protocol: world.TCP, Port: 81, Target: 8081})
	wants("the only node is silent", []uint16{80}, "n0")
}

// Balancing §13.6, A14: a policy that loses one of its proxy ports leads on by the others.
// Rule: balancing §13.
func TestA14OtherPortsAreLed(t *testing.T) {
	g := newGroup(t, format)
	g.joins(t)
	p := toProxies("a", 1)
	p.service, p.address = "", "169.254.77.1"
	in := proxied(p)
	in.Balancing[0].Ports = append(in.Balancing[0].Ports, world.RedirectPort{Name: "more", Protocol: world.TCP, Port: 81, Target: 30080})
	in.Services[0].Ports[0].NodePort = 30080
	g.must(t, &fsm.ReportTunnels{Node: "n0", Boot: "b1", Tunnels: true})
	g.converge(t, in)
	g.acknowledges(t, "n0")
	g.converge(t, in)
	r := g.rows()["BalancingPolicy/a"]
	if len(r.Captures) != 1 || r.Captures[0].Port.Number != 80 || len(r.Backends) != 1 || len(r.Proxied) != 1 || r.Pending.Code != WaitsForProxyPort {
		t.Errorf("captures %v, leads to %v by %+v, waits for %+v", r.Captures, r.Backends, r.Proxied, r.Pending)
	}
}
