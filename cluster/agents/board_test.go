// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"bytes"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// expected derives a node's addresses the slow way: each owner's ports, and whatever has a route in any state.
func expected(v *fsm.View) map[netip.Prefix][]desired.Port {
	out := map[netip.Prefix][]desired.Port{}
	for _, r := range fsm.List[*fsm.Route](v, fsm.TableRoutes) {
		out[r.Prefix] = nil
	}
	for _, a := range fsm.List[*fsm.Allocation](v, fsm.TableAllocations) {
		prefix := fsm.HostPrefix(a.Address)
		ports := out[prefix]
		for _, p := range a.Ports() {
			port := desired.Port{Protocol: uint8(p.Protocol), Number: p.Number}
			if !slices.Contains(ports, port) {
				ports = append(ports, port)
			}
		}
		out[prefix] = ports
	}
	return out
}

func byPort(a, b desired.Port) int {
	return int(a.Protocol)<<16 + int(a.Number) - int(b.Protocol)<<16 - int(b.Number)
}

func checkAddresses(t interface {
	Helper()
	Fatalf(string, ...any)
}, s desired.State, v *fsm.View) {
	t.Helper()
	want := expected(v)
	for _, a := range s.Addresses() {
		ports, ok := want[a.Prefix]
		slices.SortFunc(ports, byPort)
		if !ok || !slices.Equal(a.Ports, ports) {
			t.Fatalf("%s has ports %v, want %v (%v)", a.Prefix, a.Ports, ports, ok)
		}
		delete(want, a.Prefix)
	}
	if len(want) > 0 {
		t.Fatalf("missing: %v", want)
	}
}

func checkAll(t interface {
	Helper()
	Fatalf(string, ...any)
}, s desired.State, v *fsm.View) {
	t.Helper()
	checkAddresses(t, s, v)
	if have, want := fmt.Sprint(toldServices(s)), fmt.Sprint(expectedServices(v)); have != want {
		t.Fatalf("services\n%s\nwant\n%s", have, want)
	}
	told := map[string]desired.Policy{}
	for _, r := range s.Policies() {
		told[r.Name] = *r
	}
	if have, want := fmt.Sprint(told), fmt.Sprint(expectedPolicies(v)); have != want {
		t.Fatalf("policies\n%s\nwant\n%s", have, want)
	}
	nodes := map[netip.Addr]bool{}
	for _, n := range fsm.List[*fsm.Node](v, fsm.TableNodes) {
		for _, a := range slices.Concat(n.Addresses, n.Others) {
			nodes[a] = true
		}
	}
	if have, want := s.NodeAddresses(), slices.SortedFunc(maps.Keys(nodes), netip.Addr.Compare); !slices.Equal(have, want) {
		t.Fatalf("addresses of nodes %v, want %v", have, want)
	}
}

// expectedPolicies are those that capture something somewhere.
func expectedPolicies(v *fsm.View) map[string]desired.Policy {
	out := map[string]desired.Policy{}
	for _, r := range fsm.List[*fsm.Policy](v, fsm.TablePolicies) {
		one := desired.Policy{Name: string(r.ID), Number: r.Number, Created: r.Created, EveryNode: r.EveryNode, Outside: r.Outside, Mode: r.Mode}
		for _, n := range r.Nodes {
			one.Nodes = append(one.Nodes, string(n))
		}
		one.OfService, one.SpareOwn, one.FallThrough = len(r.Service) > 0, r.SpareOwn, r.FallThrough
		for _, c := range r.Captures {
			one.Captures = append(one.Captures, desired.Capture{Address: c.Address, Port: desired.Port{Protocol: 17, Number: c.Port.Number}, Target: c.Target})
		}
		for _, b := range r.Backends {
			told := desired.PolicyBackend{Address: b.Address, Node: string(b.Node), Ready: b.Ready}
			if r.SpareOwn { // who is spared is found by UID
				if told.UID = b.UID; b.HostUID != "" {
					told.UID = b.HostUID
				}
			}
			one.Backends = append(one.Backends, told)
		}
		if r.Probe.Type == "HTTP" {
			one.Probe = desired.Probe{Type: "HTTP", Path: "/ok", Statuses: []uint32{200}, Interval: time.Second, Timeout: time.Minute, Healthy: 2, Unhealthy: 3, Port: 80}
		}
		for _, v := range r.Verdicts {
			one.Verdicts = append(one.Verdicts, desired.ProbeVerdict{Address: v.Address, Port: desired.Port{Protocol: 17, Number: v.Port.Number}, Healthy: v.Healthy})
		}
		if len(one.Captures) > 0 && (one.Outside || one.EveryNode || len(one.Nodes) > 0) {
			out[one.Name] = one
		}
	}
	return out
}

func drawPolicy(t *rapid.T) fsm.Command {
	id := rapid.SampledFrom([]fsm.PolicyID{"BalancingPolicy/a", "LocalRedirectPolicy/a"}).Draw(t, "policy")
	if rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
		return &fsm.DeletePolicy{ID: id}
	}
	if rapid.IntRange(0, 2).Draw(t, "judge") == 0 {
		return &fsm.SetPolicyHealth{ID: id, Verdicts: []fsm.ProbeVerdict{{
			Address: drawAddress(t), Port: fsm.Port{Protocol: fsm.UDP, Number: 5353}, Healthy: rapid.Bool().Draw(t, "healthy"), Say: 1, Of: 1,
		}}}
	}
	r := fsm.Policy{
		ID: id, Created: rapid.Int64Range(1, 3).Draw(t, "created"), Mode: rapid.SampledFrom([]string{"podEndpoint", "local"}).Draw(t, "mode"),
		EveryNode: rapid.Bool().Draw(t, "every node"), Outside: rapid.Bool().Draw(t, "outside"), SpareOwn: rapid.Bool().Draw(t, "spares"),
		FallThrough: rapid.Bool().Draw(t, "falls through"), Service: fsm.ServiceID(rapid.SampledFrom([]string{"", "ns/s0"}).Draw(t, "service")),
	}
	if rapid.Bool().Draw(t, "on a node") {
		r.Nodes = []fsm.NodeID{"n1"}
	}
	for range rapid.IntRange(0, 2).Draw(t, "captures") {
		r.Captures = append(r.Captures, fsm.Capture{Address: drawAddress(t), Port: fsm.Port{Protocol: fsm.UDP, Number: 53}, Target: 5353})
	}
	for range rapid.IntRange(0, 2).Draw(t, "backends") {
		b := fsm.PolicyBackend{Address: drawAddress(t), Node: "n1", Pod: "ns/p", UID: "u-p", Ready: rapid.Bool().Draw(t, "ready")}
		if rapid.Bool().Draw(t, "listed") {
			b.Node, b.Pod, b.UID = "", "", ""
		} else if rapid.Bool().Draw(t, "static") {
			b.HostUID = "h-p"
		}
		r.Backends = append(r.Backends, b)
	}
	r.Probe = fsm.Probe{Type: rapid.SampledFrom([]string{"", "None", "HTTP", "HTTP"}).Draw(t, "probe"), Port: 80, Path: "/ok", Statuses: []uint32{200}, Interval: time.Second, Timeout: time.Minute, Healthy: 2, Unhealthy: 3}
	return &fsm.PutPolicy{Policy: r}
}

func toldServices(s desired.State) map[string]desired.Service {
	out := map[string]desired.Service{}
	for _, service := range s.Services() {
		out[service.Name] = *service
	}
	return out
}

// expectedServices derives the Services the slow way: all that own an address, and all that have node ports to be served without.
func expectedServices(v *fsm.View) map[string]desired.Service {
	out := map[string]desired.Service{}
	for _, s := range fsm.List[*fsm.Service](v, fsm.TableServices) {
		var addresses []netip.Addr
		for _, a := range fsm.List[*fsm.Allocation](v, fsm.TableAllocations) {
			if a.Service == s.ID {
				addresses = append(addresses, a.Address)
			}
		}
		if len(addresses) == 0 && !s.NodePortsIPv4 && !s.NodePortsIPv6 && len(s.ClusterIPs)+len(s.ByOthers()) == 0 {
			continue
		}
		var one desired.Service
		one.Name, one.Local, one.Affinity, one.Endpoints = string(s.ID), s.Local, s.Affinity(), nil
		one.HealthCheckNodePort, one.NodePortsIPv4, one.NodePortsIPv6 = s.HealthCheckNodePort, s.NodePortsIPv4, s.NodePortsIPv6
		one.Addresses, one.ClusterIPs, one.InternalLocal = addresses, s.ClusterIPs, s.InternalLocal
		one.ByOthers = s.ByOthers()
		for _, f := range s.Frontends {
			front := desired.Frontend{Name: f.Name, Port: desired.Port{Protocol: uint8(f.Port.Protocol), Number: f.Port.Number}, NodePort: f.NodePort}
			somewhere := f.NodePort != 0 && (s.NodePortsIPv4 || s.NodePortsIPv6) || len(s.ClusterIPs)+len(s.ByOthers()) > 0
			for _, o := range v.Addresses(s.ID) {
				if slices.Contains(o.Ports(), f.Port) {
					somewhere = true
				} else {
					front.NotOn = append(front.NotOn, o.Address)
				}
			}
			if somewhere {
				one.Frontends = append(one.Frontends, front)
			}
		}
		down, others := map[fsm.NodeID]bool{}, map[int]bool{} // nodes; families with somebody left
		at := func(e fsm.Endpoint) fsm.NodeID {
			for _, n := range fsm.List[*fsm.Node](v, fsm.TableNodes) {
				if e.Node == "" && slices.Contains(n.Addresses, e.Address) {
					return n.ID
				}
			}
			return e.Node
		}
		for _, n := range fsm.List[*fsm.Node](v, fsm.TableNodes) {
			down[n.ID] = n.Liveness == fsm.NodeDown
		}
		for _, e := range s.Endpoints {
			e.Node = at(e)
			others[e.Address.BitLen()] = others[e.Address.BitLen()] || e.Ready && !down[e.Node]
		}
		for _, e := range s.Endpoints {
			e.Node = at(e)
			if down[e.Node] && others[e.Address.BitLen()] {
				continue
			}
			one.Endpoints = append(one.Endpoints, desired.Endpoint{
				Address: e.Address, Node: string(e.Node), Ready: e.Ready,
				Ports: []desired.EndpointPort{{Name: "http", Port: desired.Port{Protocol: 6, Number: e.Ports()[0].Port.Number}}},
			})
		}
		out[string(s.ID)] = one
	}
	return out
}

func drawAddress(t *rapid.T) netip.Addr {
	if rapid.Bool().Draw(t, "v6") {
		return netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", rapid.IntRange(1, 3).Draw(t, "host6")))
	}
	return netip.AddrFrom4([4]byte{192, 0, 2, byte(rapid.IntRange(1, 4).Draw(t, "host4"))})
}

func drawService(t *rapid.T) fsm.ServiceID {
	return fsm.ServiceID(fmt.Sprintf("ns/s%d", rapid.IntRange(0, 2).Draw(t, "service")))
}

// drawCommand favours collisions; many of these are refused, which changes nothing.
func drawCommand(t *rapid.T, g *grouptest.Group) fsm.Command {
	a := drawAddress(t)
	switch rapid.IntRange(0, 11).Draw(t, "command") {
	case 11:
		return drawPolicy(t)
	case 10:
		id := rapid.SampledFrom([]fsm.NodeID{"n1", "n2"}).Draw(t, "node")
		node, _ := fsm.Get[*fsm.Node](g.Read(), fsm.TableNodes, string(id))
		switch change := rapid.IntRange(0, 3).Draw(t, "change of the node"); {
		case node == nil || change < 2:
			return &fsm.PutNode{
				ID: id, Addresses: rapid.SliceOfN(rapid.Custom(drawAddress), 0, 2).Draw(t, "addresses of the node"),
				Others: rapid.SliceOfN(rapid.Custom(drawAddress), 0, 2).Draw(t, "other addresses of the node"),
			}
		case change == 2:
			return &fsm.DeleteNode{ID: id}
		}
		return &fsm.SetLiveness{Node: node.ID, Boot: node.Boot, Liveness: fsm.Liveness(rapid.IntRange(0, 2).Draw(t, "liveness"))}
	case 8, 9:
		service := fsm.Service{ID: drawService(t), Local: rapid.Bool().Draw(t, "local"), Rare: &fsm.Rare{Affinity: time.Duration(rapid.IntRange(0, 1).Draw(t, "affinity")) * time.Hour}}
		service.HealthCheckNodePort = rapid.SampledFrom([]uint16{0, 30100, 30101}).Draw(t, "health-check node port")
		service.NodePortsIPv4, service.NodePortsIPv6 = rapid.Bool().Draw(t, "node ports of IPv4"), rapid.Bool().Draw(t, "node ports of IPv6")
		if rapid.Bool().Draw(t, "inside") {
			service.ClusterIPs, service.InternalLocal = []netip.Addr{drawAddress(t)}, rapid.Bool().Draw(t, "internal policy Local")
		}
		if rapid.IntRange(0, 3).Draw(t, "given") == 0 {
			service.Rare.ByOthers = []netip.Addr{drawAddress(t)}
		}
		for _, port := range rapid.SliceOfNDistinct(rapid.Uint16Range(80, 83), 0, 2, rapid.ID).Draw(t, "frontends") {
			service.Frontends = append(service.Frontends, fsm.Frontend{Name: fmt.Sprint(port), Port: fsm.Port{Protocol: fsm.TCP, Number: port}})
			service.Frontends[len(service.Frontends)-1].NodePort = rapid.SampledFrom([]uint16{0, 30000 + port}).Draw(t, "node port")
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "endpoints") {
			address := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
			if rapid.Bool().Draw(t, "v6 endpoint") {
				address = netip.MustParseAddr(fmt.Sprintf("fd00::%d", i))
			}
			if rapid.Bool().Draw(t, "an address that nodes have") {
				address = drawAddress(t)
			}
			service.Endpoints = append(service.Endpoints, fsm.Endpoint{
				Address: address, Node: fsm.NodeID(rapid.SampledFrom([]string{"n1", "n2", ""}).Draw(t, "on")), Ready: rapid.Bool().Draw(t, "ready"),
				Offer: &fsm.Offer{Ports: []fsm.EndpointPort{{Name: "http", Port: fsm.Port{Protocol: fsm.TCP, Number: rapid.SampledFrom([]uint16{8080, 8081}).Draw(t, "target port")}}}},
			})
		}
		return &fsm.PutService{Service: service}
	case 0, 1:
		port := fsm.Port{Protocol: fsm.TCP, Number: rapid.Uint16Range(80, 83).Draw(t, "port")}
		return &fsm.Allocate{Address: a, Service: drawService(t), Ports: []fsm.Port{port}, SharingKey: "k"}
	case 2:
		return &fsm.ReleaseAllocation{Address: a, Service: drawService(t)}
	case 3:
		return &fsm.FreeAllocation{Address: a, Service: drawService(t)}
	case 4, 5:
		c := &fsm.SetRoute{Prefix: fsm.HostPrefix(a)}
		for _, n := range []fsm.NodeID{"n1", "n2"} {
			hop := netip.MustParseAddr("198.51.100.1")
			if a.Is6() {
				hop = netip.MustParseAddr("2001:db8:f::1")
			}
			if rapid.Bool().Draw(t, "hop") {
				c.Hops = append(c.Hops, fsm.HopSpec{Node: n, Address: hop})
			}
		}
		return c
	case 6:
		for _, r := range fsm.List[*fsm.Route](g.Read(), fsm.TableRoutes) {
			for _, h := range r.NextHops {
				if h.Withdrawing {
					return &fsm.FinishWithdrawal{Prefix: r.Prefix, Node: h.Node(), Address: h.Address(), Since: h.Since}
				}
			}
		}
	}
	return &fsm.PutNodeConfig{Config: fsm.NodeConfig{Name: "n1", InTable: rapid.Uint32Range(10, 12).Draw(t, "table")}}
}

func drawTells(t *rapid.T) tells {
	return rapid.SampledFrom([]tells{tellsAddresses, tellsAddressed, tellsAll}).Draw(t, "wants")
}

// agent follows boards as an agent does, without the network.
type agent struct {
	wants   tells
	outside bool // of a host outside the cluster
	steps   desired.Steps
	at      place
	on      *board
	fulls   int
}

// connect goes to a board with what the agent has.
func (a *agent) connect(b *board) {
	var digest []byte
	if !a.steps.State.IsZero() {
		digest = a.steps.State.Digest[:]
	}
	if a.on = b; a.outside {
		a.at = b.resumeOutside(a.steps.State.Revision, digest)
		return
	}
	a.at = b.resume(a.steps.State.Revision, digest, a.wants)
}

// pull takes what there is. It starts anew where the digest says so.
func (a *agent) pull(t grouptest.T) {
	for range 2 {
		u, err := a.on.since(a.at, "n1")
		if err != nil {
			t.Fatal(err)
		}
		a.at = u.to
		if u.full {
			a.fulls++
		}
		next := desired.Steps{State: a.steps.State}
		for _, m := range messages(u) {
			if _, err = next.Add(m); err != nil {
				break
			}
		}
		if err == nil {
			a.steps = next
			return
		}
		a.at = place{full: true, wants: a.wants, out: a.outside}
	}
	t.Fatal("everything was sent, and it did not fit")
}

// Agents that follow, lag, go away and come back to this or another member, which derived other steps, all end
// with what a fresh agent gets, and that is what the record says. Their revision never runs back.
func TestPropertyEveryWayLeadsToTheSameState(t *testing.T) {
	t.Parallel()
	testkit.Check(t, func(t *rapid.T) {
		g := grouptest.NewGroup(t)
		boards := []*board{newBoard(g), newBoard(g)}
		for _, b := range boards {
			b.limit = ringLimit{steps: rapid.IntRange(0, 6).Draw(t, "ring"), bytes: 1 << 20}
			refresh(t, b)
		}
		followers := []*agent{{wants: drawTells(t)}, {wants: drawTells(t)}, {wants: drawTells(t)}}
		for _, id := range []fsm.ServiceID{"ns/s0", "ns/s1", "ns/s2"} {
			g.Apply(t, &fsm.PutService{Service: fsm.Service{ID: id}})
		}
		registers := rapid.IntRange(0, 20).Draw(t, "an agent registers at step")
		for step := range rapid.IntRange(0, 40).Draw(t, "steps") {
			if step == registers {
				g.Apply(t, registered()...)
			}
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 0, 1, 2:
				if _, err := g.Commit(fsm.Proposal{Command: drawCommand(t, g)}); err != nil {
					t.Fatal(err)
				}
			case 3:
				refresh(t, boards[rapid.IntRange(0, 1).Draw(t, "board")])
			default:
				f := followers[rapid.IntRange(0, 2).Draw(t, "follower")]
				if b := boards[rapid.IntRange(0, 1).Draw(t, "to")]; f.on == nil || rapid.Bool().Draw(t, "reconnect") {
					refresh(t, b) // a member waits until it knows as much as the agent
					f.wants = drawTells(t)
					f.connect(b)
				}
				before := f.steps.State.Revision
				f.pull(t)
				if f.steps.State.Revision.Before(before) {
					t.Fatalf("ran back from %s to %s", before, f.steps.State.Revision)
				}
			}
		}
		for _, b := range boards {
			refresh(t, b)
			fresh := map[tells]*agent{}
			for _, wants := range []tells{tellsAddresses, tellsAddressed, tellsAll} {
				f := &agent{wants: wants}
				f.connect(b)
				f.pull(t)
				checkAddresses(t, f.steps.State, g.Read())
				fresh[wants] = f
			}
			checkAll(t, fresh[tellsAll].steps.State, g.Read())
			if some := fresh[tellsAddresses].steps.State; len(some.Services()) > 0 || some.Len() != some.AddressCount() {
				t.Fatalf("who wants addresses only is told %d Services", len(some.Services()))
			}
			addressed := expectedServices(g.Read())
			maps.DeleteFunc(addressed, func(_ string, s desired.Service) bool { return len(s.Addresses) == 0 })
			if have, want := fmt.Sprint(toldServices(fresh[tellsAddressed].steps.State)), fmt.Sprint(addressed); have != want {
				t.Fatalf("who serves no node ports is told\n%s\nwant\n%s", have, want)
			}
			if some := fresh[tellsAddressed].steps.State; len(some.NodeAddresses())+len(some.Policies()) > 0 {
				t.Fatalf("who serves no node ports is told of nodes at %v, and of %d policies", some.NodeAddresses(), len(some.Policies()))
			}
			if c := fresh[tellsAll].steps.State.Config; c == nil != (len(fsm.List[*fsm.NodeConfig](g.Read(), fsm.TableNodeConfigs)) == 0) {
				t.Fatalf("node configuration %v", c)
			}
			for _, f := range followers {
				if f.on != b {
					continue
				}
				f.pull(t)
				if want := fresh[f.wants].steps.State; !sameState(t, f.steps.State, want) {
					t.Fatalf("followed %+v\nfresh    %+v", f.steps.State, want)
				}
			}
		}
	})
}

func sameState(t *rapid.T, a, b desired.State) bool {
	x, err := a.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	y, err := b.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return string(x) == string(y)
}

func refresh(t *rapid.T, b *board) {
	if _, err := b.refresh(); err != nil {
		t.Fatal(err)
	}
}

// registered are the commands by which an agent runs somewhere: steps are kept from then on.
func registered() []fsm.Command {
	return []fsm.Command{&fsm.PutNode{ID: "other"}, &fsm.RegisterBoot{Node: "other", Boot: "b1"}}
}

func furnished(t *testing.T, addresses int) (*grouptest.Group, *board) {
	g := grouptest.NewGroup(t)
	g.Apply(t, append(registered(), &fsm.PutService{Service: fsm.Service{ID: "ns/web"}})...)
	var ports []fsm.Port
	for n := range uint16(8) {
		ports = append(ports, fsm.Port{Protocol: fsm.TCP, Number: 60000 + n})
	}
	for i := range addresses {
		g.Apply(t, &fsm.Allocate{Address: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), Service: "ns/web", Ports: ports})
	}
	b := newBoard(g)
	if _, err := b.refresh(); err != nil {
		t.Fatal(err)
	}
	return g, b
}

// A thousand agents that come back after a restart of the group's members cost no resending: what they have is
// known by its digest.
func TestReturningAgentIsSentOnlyWhatItLacks(t *testing.T) {
	t.Parallel()
	g, b := furnished(t, 100)
	var steps desired.Steps
	pull := func(p place) update {
		t.Helper()
		u, err := b.since(p, "n1")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages(u) {
			if _, err := steps.Add(m); err != nil {
				t.Fatal(err)
			}
		}
		return u
	}
	u := pull(place{full: true, wants: tellsAll})
	if !u.full || len(steps.State.Addresses()) != 100 {
		t.Fatalf("first: full %v, %d items", u.full, len(steps.State.Addresses()))
	}
	g.Apply(t, &fsm.PutNode{ID: "n1"}) // nothing that nodes are told of
	b = newBoard(g)                    // the member restarted
	if _, err := b.refresh(); err != nil {
		t.Fatal(err)
	}
	if u = pull(b.resume(steps.State.Revision, steps.State.Digest[:], tellsAll)); u.full || len(u.changes) != 0 {
		t.Errorf("nothing changed: full %v, %d changes", u.full, len(u.changes))
	}
	g.Apply(t, &fsm.Allocate{Address: netip.MustParseAddr("10.1.0.0"), Service: "ns/web"})
	if _, err := b.refresh(); err != nil {
		t.Fatal(err)
	}
	if u = pull(b.resume(steps.State.Revision, steps.State.Digest[:], tellsAll)); u.full || len(u.changes) != 1 {
		t.Errorf("one change: full %v, %d changes", u.full, len(u.changes))
	}
	if len(steps.State.Addresses()) != 101 {
		t.Errorf("%d items", len(steps.State.Addresses()))
	}
}

// Members derive steps of their own lengths: an agent that comes from another one, between two of ours, is sent
// a little too much rather than everything.
func TestAgentBetweenTwoStepsIsSentADelta(t *testing.T) {
	t.Parallel()
	g, ours := furnished(t, 100)
	allocate := func(address string) {
		g.Apply(t, &fsm.Allocate{Address: netip.MustParseAddr(address), Service: "ns/web"})
	}
	allocate("10.1.0.0")
	theirs := newBoard(g)
	for _, step := range []func(){func() {}, func() { allocate("10.1.0.1") }} {
		step()
		if _, err := theirs.refresh(); err != nil {
			t.Fatal(err)
		}
	}
	var steps desired.Steps
	take := func(u update, err error) update {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages(u) {
			if _, err := steps.Add(m); err != nil {
				t.Fatal(err)
			}
		}
		return u
	}
	take(theirs.since(place{full: true, wants: tellsAll}, "n1"))
	allocate("10.1.0.2")
	if _, err := ours.refresh(); err != nil {
		t.Fatal(err)
	}
	if u := take(ours.since(ours.resume(steps.State.Revision, steps.State.Digest[:], tellsAll), "n1")); u.full {
		t.Error("everything was sent")
	}
	checkAll(t, steps.State, g.Read())
}

// Who needs everything shares one encoding, and a state larger than a message is cut.
func TestWholeIsEncodedOnceAndCut(t *testing.T) {
	t.Parallel()
	g, b := furnished(t, 6000)
	first, err := b.since(place{full: true, wants: tellsAll}, "n1")
	if err != nil {
		t.Fatal(err)
	}
	g.Apply(t, &fsm.Allocate{Address: netip.MustParseAddr("10.9.0.0"), Service: "ns/web"})
	if _, err := b.refresh(); err != nil {
		t.Fatal(err)
	}
	second, err := b.since(place{full: true, wants: tellsAll}, "n2")
	if err != nil {
		t.Fatal(err)
	}
	if len(first.changes) < 2 || len(second.changes) != len(first.changes)+1 || &first.changes[0][0] != &second.changes[0][0] {
		t.Errorf("%d and %d pieces, shared %v", len(first.changes), len(second.changes), &first.changes[0][0] == &second.changes[0][0])
	}
	var steps desired.Steps
	sent := messages(second)
	for i, m := range sent {
		size := 0
		for _, c := range m.GetChanges() {
			size += len(c)
		}
		if size > 2*desired.PieceBytes {
			t.Errorf("a message of %d bytes", size)
		}
		if whole, err := steps.Add(m); err != nil || whole != (i == len(sent)-1) {
			t.Fatalf("message %d: whole %v, %v", i, whole, err)
		}
	}
	if len(steps.State.Addresses()) != 6001 {
		t.Errorf("%d items", len(steps.State.Addresses()))
	}
}

// Everything takes much memory, and is needed seldom: it is let go of, and encoded anew for who comes later.
func TestWholeIsLetGoOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, b := furnished(t, 10)
		kept := func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.inside.trays[tellsAll].whole.pieces != nil
		}
		ask := func(when string) {
			t.Helper()
			fresh := &agent{wants: tellsAll}
			fresh.connect(b)
			fresh.pull(t)
			checkAll(t, fresh.steps.State, g.Read())
			if !kept() {
				t.Errorf("%s nothing is kept for the next one", when)
			}
			time.Sleep(keepWhole)
			synctest.Wait()
			if kept() {
				t.Errorf("%s it is kept for more than a minute", when)
			}
		}
		ask("at first")
		ask("a minute later")
	})
}

// Where no agent runs steps are for nobody. Who asks all the same, before it has registered, is sent everything, and told what comes.
func TestStepsAreKeptOnceAnAgentRegistered(t *testing.T) {
	t.Parallel()
	g := grouptest.NewGroup(t)
	b := newBoard(g)
	told := &agent{wants: tellsAll}
	for i, commands := range [][]fsm.Command{
		{&fsm.PutService{Service: fsm.Service{ID: "ns/web"}}}, {&fsm.Allocate{Address: netip.MustParseAddr("10.9.0.1"), Service: "ns/web"}},
		{&fsm.PutNode{ID: "n1"}}, {&fsm.RegisterBoot{Node: "n1", Boot: "b1"}}, {&fsm.Allocate{Address: netip.MustParseAddr("10.9.0.2"), Service: "ns/web"}},
		{&fsm.DeleteNode{ID: "n1"}}, {&fsm.Allocate{Address: netip.MustParseAddr("10.9.0.3"), Service: "ns/web"}},
	} {
		g.Apply(t, commands...)
		if _, err := b.refresh(); err != nil {
			t.Fatal(err)
		}
		if told.on == nil {
			told.connect(b)
		}
		told.pull(t)
		checkAll(t, told.steps.State, g.Read())
		if kept := len(b.inside.trays[tellsAll].ring); i != 5 && kept > 0 != (i == 4) { // 5 changes nothing that is told
			t.Errorf("after change %d %d steps are kept", i, kept)
		}
	}
}

// A step is held once, however many trays tell the same of it.
func TestStepIsHeldOnceForAllTrays(t *testing.T) {
	t.Parallel()
	g, b := furnished(t, 1)
	g.Apply(t, &fsm.Allocate{Address: netip.MustParseAddr("10.9.0.0"), Service: "ns/web"})
	if _, err := b.refresh(); err != nil {
		t.Fatal(err)
	}
	newest := func(of tells) []byte {
		ring := b.inside.trays[of].ring
		return ring[len(ring)-1].changes[0]
	}
	if &newest(tellsAddressed)[0] != &newest(tellsAll)[0] {
		t.Error("it is held twice")
	}
	if bytes.Equal(newest(tellsAddresses), newest(tellsAll)) {
		t.Error("who wants addresses only is told the Service")
	}
}

// Nodes are not sent to pods of a node that is down while others serve; the last ones are never given up for that.
func TestEndpointsOfDownNodesAreLeftOutWhileOthersServe(t *testing.T) {
	t.Parallel()
	g := grouptest.NewGroup(t)
	on := func(i byte, node fsm.NodeID) fsm.Endpoint {
		return fsm.Endpoint{Address: netip.AddrFrom4([4]byte{10, 0, 0, i}), Node: node, Ready: true}
	}
	g.Apply(t, &fsm.PutNode{ID: "n1"}, &fsm.PutNode{ID: "n2"},
		&fsm.PutService{Service: fsm.Service{ID: "ns/web", Endpoints: []fsm.Endpoint{on(1, "n1"), on(2, "n2")}}},
		&fsm.Allocate{Address: netip.MustParseAddr("192.0.2.1"), Service: "ns/web"})
	told := follow(t, g)
	for i, step := range []struct {
		command fsm.Command
		want    []string
	}{
		{&fsm.PutNode{ID: "n3"}, []string{"n1", "n2"}},
		{&fsm.SetLiveness{Node: "n1", Liveness: fsm.NodeDown}, []string{"n2"}},
		{&fsm.SetLiveness{Node: "n2", Liveness: fsm.NodeDown}, []string{"n1", "n2"}},
		{&fsm.SetLiveness{Node: "n1", Liveness: fsm.AgentDown}, []string{"n1"}},
		{&fsm.SetLiveness{Node: "n2", Liveness: fsm.NodeUp}, []string{"n1", "n2"}},
	} {
		g.Apply(t, step.command)
		if have := told(); !slices.Equal(have, step.want) {
			t.Fatalf("step %d: nodes are sent to endpoints on %v, want %v", i, have, step.want)
		}
	}
}

// Whatever endpoints there are and whichever nodes are down: each frontend leads somewhere in a family for which it did before, and to no node
// that is down if there is another way.
func TestPropertyLastEndpointOfAPortIsNeverGivenUp(t *testing.T) {
	t.Parallel()
	testkit.Check(t, func(t *rapid.T) {
		g := grouptest.NewGroup(t)
		down := map[fsm.NodeID]bool{}
		for _, id := range []fsm.NodeID{"n1", "n2", "n3"} {
			g.Apply(t, &fsm.PutNode{ID: id})
			if down[id] = rapid.Bool().Draw(t, "down"); down[id] {
				g.Apply(t, &fsm.SetLiveness{Node: id, Liveness: fsm.NodeDown})
			}
		}
		all := rapid.SliceOfN(rapid.Custom(drawEndpoint), 0, 5).Draw(t, "endpoints")
		told := source{g.Read(), nil}.reachable(all)
		for _, v6 := range []bool{false, true} {
			for _, front := range []string{"http", "dns"} {
				before, up, now := takers(all, front, v6), 0, takers(told, front, v6)
				for _, e := range before {
					if !down[e.Node] {
						up++
					}
				}
				if len(before) > 0 && len(now) == 0 {
					t.Fatalf("%s (v6: %t) leads nowhere, and %v are there", front, v6, before)
				}
				for _, e := range now {
					if down[e.Node] && up > 0 && len(e.Ports()) == 1 {
						t.Fatalf("%s (v6: %t) leads to %v, whose node is down", front, v6, e)
					}
				}
			}
		}
	})
}

func drawEndpoint(t *rapid.T) fsm.Endpoint {
	e := fsm.Endpoint{
		Address: drawAddress(t), Node: rapid.SampledFrom([]fsm.NodeID{"n1", "n2", "n3"}).Draw(t, "node"),
		Ready: rapid.Bool().Draw(t, "ready"), Serving: rapid.Bool().Draw(t, "serving"), Terminating: rapid.Bool().Draw(t, "terminating"),
		Quiesced: rapid.IntRange(0, 3).Draw(t, "quiesced") == 0, Offer: &fsm.Offer{},
	}
	for _, p := range []fsm.EndpointPort{{Name: "http", Port: fsm.Port{Protocol: fsm.TCP, Number: 8080}}, {Name: "dns", Port: fsm.Port{Protocol: fsm.UDP, Number: 53}}} {
		if rapid.Bool().Draw(t, p.Name) {
			e.Offer.Ports = append(e.Offer.Ports, p)
		}
	}
	return e
}

// takers are the endpoints that may get new connections to a frontend: the ready ones, and those that serve until they are gone.
func takers(endpoints []fsm.Endpoint, front string, v6 bool) (out []fsm.Endpoint) {
	for _, e := range endpoints {
		has := slices.ContainsFunc(e.Ports(), func(p fsm.EndpointPort) bool { return p.Name == front })
		if has && e.Address.Is6() == v6 && !e.Quiesced && (e.Ready || e.Serving && e.Terminating) {
			out = append(out, e)
		}
	}
	return out
}

// follow gives what an agent is told of the endpoints' nodes of the one Service, now.
func follow(t *testing.T, g *grouptest.Group) func() []string {
	t.Helper()
	a, b := &agent{wants: tellsAll}, newBoard(g)
	if _, err := b.refresh(); err != nil {
		t.Fatal(err)
	}
	a.connect(b)
	return func() (out []string) {
		t.Helper()
		if _, err := b.refresh(); err != nil {
			t.Fatal(err)
		}
		a.pull(t)
		for _, e := range a.steps.State.Services()[0].Endpoints {
			out = append(out, e.Node)
		}
		return out
	}
}

// An endpoint that names no node is on the one whose address it has: there it is local, as next hops take it to be, and it leaves with
// that node.
func TestEndpointsWithoutNodeAreWhereTheirAddressIs(t *testing.T) {
	t.Parallel()
	g := grouptest.NewGroup(t)
	ours, theirs := netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("198.51.100.2")
	g.Apply(t, &fsm.PutService{Service: fsm.Service{ID: "ns/web", Endpoints: []fsm.Endpoint{{Address: ours, Ready: true}, {Address: theirs, Node: "n2", Ready: true}}}},
		&fsm.Allocate{Address: netip.MustParseAddr("192.0.2.1"), Service: "ns/web"})
	told := follow(t, g)
	for i, step := range []struct {
		command fsm.Command
		want    []string
	}{
		{&fsm.PutNode{ID: "n2", Addresses: []netip.Addr{theirs}}, []string{"", "n2"}},
		{&fsm.PutNode{ID: "n3", Addresses: []netip.Addr{ours}}, []string{"n3", "n2"}},
		{&fsm.PutNode{ID: "n1", Addresses: []netip.Addr{ours}}, []string{"n1", "n2"}},
		{&fsm.SetLiveness{Node: "n1", Liveness: fsm.NodeDown}, []string{"n2"}},
		{&fsm.SetLiveness{Node: "n1", Liveness: fsm.NodeUp}, []string{"n1", "n2"}},
		{&fsm.DeleteNode{ID: "n1"}, []string{"n3", "n2"}},
		{&fsm.PutNode{ID: "n3", Addresses: []netip.Addr{theirs}}, []string{"", "n2"}},
	} {
		g.Apply(t, step.command)
		if have := told(); !slices.Equal(have, step.want) {
			t.Fatalf("step %d: endpoints are on %q, want %q", i, have, step.want)
		}
	}
}

// K40: an agent is told what endpoints weigh. Those on nodes that are down are not given up for others of weight 0.
// Rule: K40.
func TestAgentsKnowWhatEndpointsWeigh(t *testing.T) {
	t.Parallel()
	g := grouptest.NewGroup(t)
	heavy := fsm.Endpoint{Address: netip.MustParseAddr("10.0.0.1"), Node: "n1", Ready: true, Weight: 7}
	quiesced := fsm.Endpoint{Address: netip.MustParseAddr("10.0.0.2"), Node: "n2", Ready: true, Quiesced: true}
	g.Apply(t, &fsm.PutNode{ID: "n1"}, &fsm.PutNode{ID: "n2"},
		&fsm.PutService{Service: fsm.Service{ID: "ns/web", Endpoints: []fsm.Endpoint{heavy, quiesced}}},
		&fsm.Allocate{Address: netip.MustParseAddr("192.0.2.1"), Service: "ns/web"},
		&fsm.SetLiveness{Node: "n1", Liveness: fsm.NodeDown})
	a, b := &agent{wants: tellsAll}, newBoard(g)
	if _, err := b.refresh(); err != nil {
		t.Fatal(err)
	}
	a.connect(b)
	a.pull(t)
	told := a.steps.State.Services()[0].Endpoints
	if len(told) != 2 || told[0].Weight != 7 || told[0].Quiesced || told[1].Weight != 0 || !told[1].Quiesced {
		t.Errorf("told %+v", told)
	}
}

// K26, K27: an agent is told the zone of its node, and whom endpoints are for.
// Rule: K26, K27.
func TestAgentsKnowTheirZone(t *testing.T) {
	t.Parallel()
	g := grouptest.NewGroup(t)
	g.Apply(t, &fsm.PutNode{ID: "n1"}, &fsm.PutNode{ID: "n2", Zone: "west"},
		&fsm.PutService{Service: fsm.Service{ID: "ns/web", Endpoints: []fsm.Endpoint{
			{Address: netip.MustParseAddr("10.0.0.1"), Ready: true, Offer: &fsm.Offer{Hints: []fsm.Hint{{Node: "n1"}, {Zone: "east"}}}},
		}}},
		&fsm.Allocate{Address: netip.MustParseAddr("192.0.2.1"), Service: "ns/web"})
	a, b := &agent{wants: tellsAll}, newBoard(g)
	for _, zone := range []string{"", "east", "west", ""} {
		g.Apply(t, &fsm.PutNode{ID: "n1", Zone: zone})
		if _, err := b.refresh(); err != nil {
			t.Fatal(err)
		}
		if a.on == nil {
			a.connect(b)
		}
		if a.pull(t); a.steps.State.Zone != zone {
			t.Fatalf("zone %q, want %q", a.steps.State.Zone, zone)
		}
	}
	if have := a.steps.State.Services()[0].Endpoints[0].Hints; !slices.Equal(have, []desired.Hint{{Node: "n1"}, {Zone: "east"}}) {
		t.Errorf("hints %v", have)
	}
	if kept, err := a.steps.State.Marshal(); err != nil {
		t.Error(err)
	} else if again, err := desired.Unmarshal(kept); err != nil || again.Zone != a.steps.State.Zone || again.Digest != a.steps.State.Digest {
		t.Errorf("read anew: %+v, %v", again, err)
	}
}

// A node that an address leads to has to say that it carried out what a Service gave up, also if nothing else is new for
// it: others wait for that.
func TestPortGivenUpIsToBeAcknowledged(t *testing.T) {
	t.Parallel()
	g, b := furnished(t, 1)
	a := netip.AddrFrom4([4]byte{10, 0, 0, 0})
	g.Apply(t, &fsm.SetRoute{Prefix: fsm.HostPrefix(a), Hops: []fsm.HopSpec{{Node: "n1", Address: netip.MustParseAddr("198.51.100.1")}}})
	g.Apply(t, &fsm.Allocate{Address: a, Service: "ns/web"})
	since := g.Read().Revision()
	if _, err := b.refresh(); err != nil {
		t.Fatal(err)
	}
	u, err := b.since(place{}, "n1")
	if err != nil || u.wanted != since {
		t.Errorf("n1 is to acknowledge %s (%v), want %s", u.wanted, err, since)
	}
}

// K50: nodes that are told Services have to say that they carried out what is probed of one, also if nothing else is new for them: what they say of
// its endpoints counts from then on.
// Rule: K50.
func TestProbesAreToBeAcknowledged(t *testing.T) {
	t.Parallel()
	g, b := furnished(t, 1)
	put := func(probe string) {
		t.Helper()
		g.Apply(t, &fsm.PutService{Service: fsm.Service{ID: "ns/probed", UID: "u", Rare: &fsm.Rare{Probe: fsm.Probe{Type: probe}}}})
	}
	put("TCP")
	if _, err := b.refresh(); err != nil {
		t.Fatal(err)
	}
	put("HTTP") // and back: there is nothing to tell
	put("TCP")
	since := g.Read().Revision()
	g.Apply(t, &fsm.PutNode{ID: "n9"})
	if _, err := b.refresh(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		wants tells
		want  fsm.Revision
	}{{tellsAddresses, fsm.Revision{}}, {tellsAddressed, since}, {tellsAll, since}} {
		if u, err := b.since(place{wants: c.wants}, "n1"); err != nil || u.wanted != c.want {
			t.Errorf("who wants %d is to acknowledge %s (%v), want %s", c.wants, u.wanted, err, c.want)
		}
	}
}

// Where changes led to something else than there is, who needs everything is told so once, and all have what there is afterwards.
func TestBoardThatWentWrongStartsOver(t *testing.T) {
	t.Parallel()
	g, b := furnished(t, 10)
	old := &agent{wants: tellsAll}
	old.connect(b)
	old.pull(t)
	b.inside.trays[tellsAll].digest[0] ^= 1
	b.inside.trays[tellsAll].whole = whole{}
	if _, err := b.since(place{full: true, wants: tellsAll}, "n1"); err == nil {
		t.Fatal("it does not tell")
	}
	g.Apply(t, &fsm.Allocate{Address: netip.MustParseAddr("10.9.0.0"), Service: "ns/web"})
	if _, err := b.refresh(); err != nil {
		t.Fatal(err)
	}
	fresh := &agent{wants: tellsAll}
	fresh.connect(b)
	for _, a := range []*agent{old, fresh} {
		a.pull(t)
		checkAll(t, a.steps.State, g.Read())
	}
}

// A step that was not made leaves nothing behind.
func TestStepThatIsGivenUpLeavesNothing(t *testing.T) {
	t.Parallel()
	s, was := newShelf(tellsAll), fsm.Revision{Epoch: 1, Index: 1}
	for index := range fsm.Index(2) {
		s.begin(was, fsm.Revision{Epoch: 1, Index: index + 2})
		if err := s.put("k", []byte("v"), tellsAll); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.push(defaultRing()); err != nil {
		t.Fatal(err)
	}
	var zero desired.Digest
	if have, want := s.trays[0].digest, zero.Plus("k", []byte("v")); have != want || len(s.trays[0].ring) != 1 || s.trays[0].ring[0].before != zero {
		t.Errorf("digest %x, want %x; steps %v", have, want, s.trays[0].ring)
	}
}

// Everything is encoded anew once much must follow it; who had that done takes it, or changes that come quickly would keep him waiting for ever.
func TestWholeIsGoodWhileLittleFollows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		follows    int
		seq        uint64
		has, anyIs bool
	}{
		{desired.PieceBytes - 1, 2, true, true}, {desired.PieceBytes, 2, false, true},
		{1, 3, false, false}, // the ring goes on from a later step
	} {
		tr := &tray{seq: c.seq, ring: []step{{size: c.follows}}, whole: whole{seq: 1, pieces: [][]byte{{1}}, size: 1}}
		if has, anyIs := tr.hasWhole(false), tr.hasWhole(true); has != c.has || anyIs != c.anyIs {
			t.Errorf("%d bytes follow at step %d: %t, and any %t", c.follows, c.seq, has, anyIs)
		}
	}
}
