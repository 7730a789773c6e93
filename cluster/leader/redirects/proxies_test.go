// SPDX-License-Identifier: Apache-2.0

package redirects

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
func (g *group) tunnels() map[fsm.NodeID]uint32 {
	out := map[fsm.NodeID]uint32{}
	for _, r := range fsm.List[*fsm.Tunnel](g.Read(), fsm.TableTunnels) {
		out[r.Host] = r.Number
	}
	return out
}

// leads are "address node ready" of the backends of a policy.
func (g *group) leads(id fsm.RedirectID) (out []string) {
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
func TestBalancing13NodesAreLedToOnceTheySaidSo(t *testing.T) {
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

// Balancing §2.3, §13.3: an administrator's proxy address needs no tunnel, and wins; without it the node leaves, or has its tunnel's.
func TestBalancing13AdministratorsAddressesWin(t *testing.T) {
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
func TestBalancing13PortBehindAProxyPort(t *testing.T) {
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
func TestBalancing13A14ProxyPortsAreNotStolen(t *testing.T) {
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

// Balancing §13.1: addresses that would be somebody else's are told, and not given out.
func TestBalancing13RangesOfOthersAreTold(t *testing.T) {
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

// Balancing §13.1: whatever nodes do, no two hosts have one address, a host keeps its own for as long as it makes tunnels, and another
// one has it only after everybody who makes tunnels said that it is gone. A policy leads to exactly those nodes that have a pod, and
// said that they have their tunnel and lead there.
func TestPropertyBalancing13TunnelsAndProxies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGroup(t, format)
		g.joins(t)
		in := proxied(toProxies("a", 1))
		in.Pods = nil
		in.Nodes = append(in.Nodes, &world.Node{Meta: world.Meta{ID: world.ID{Name: "n2"}}, Ready: true})
		in.Tunnels.Range4, in.Tunnels.Range6 = netip.MustParsePrefix("10.250.0.0/29"), netip.Prefix{}
		makes, told, down := map[fsm.NodeID]bool{}, map[fsm.NodeID]bool{}, map[fsm.NodeID]bool{}
		knows := map[string]bool{} // pods that their nodes know of
		numbers := map[fsm.NodeID]uint32{}
		pending := map[fsm.NodeID]map[fsm.NodeID]bool{} // hosts that left, and who has still to say so
		for range rapid.IntRange(1, 14).Draw(t, "events") {
			id := fsm.NodeID(rapid.SampledFrom([]string{"n0", "n1", "n2"}).Draw(t, "node"))
			switch rapid.SampledFrom([]string{"on", "on", "off", "ack", "ack", "ack", "pod", "pod", "no pod", "down", "up"}).Draw(t, "event") {
			case "on":
				if g.must(t, &fsm.ReportTunnels{Node: id, Boot: "b1", Tunnels: true}); !makes[id] {
					makes[id], told[id] = true, told[id] && pending[id] == nil && numbers[id] != 0
					delete(pending, id)
				}
			case "off":
				g.must(t, &fsm.ReportTunnels{Node: id, Boot: "b1"})
				if makes[id] {
					makes[id], told[id], pending[id] = false, false, map[fsm.NodeID]bool{"n0": true, "n1": true, "n2": true}
				}
			case "ack":
				g.acknowledges(t, id)
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
				g.must(t, &fsm.SetLiveness{Node: id, Boot: "b1", Liveness: liveness})
			}
			g.converge(t, in)
			now := g.tunnels()
			held := map[uint32]fsm.NodeID{}
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
				still := slices.ContainsFunc(slices.Collect(maps.Keys(waits)), func(w fsm.NodeID) bool { return waits[w] && makes[w] })
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
			for _, host := range []fsm.NodeID{"n0", "n1", "n2"} {
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
