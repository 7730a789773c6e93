// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
)

// Few names and few addresses, so that everything collides with something.
var (
	vips = []netip.Addr{
		netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8::1"),
	}
	oddAddresses = []netip.Addr{
		{}, netip.MustParseAddr("::ffff:192.0.2.1"), netip.MustParseAddr("2001:db8::1%eth0"),
	}
	services = []fsm.ServiceID{"shop/a", "shop/b", "shop/c"}
	nodes    = []fsm.NodeID{"n1", "n2", "n3", "n4"}
	servers  = []fsm.ServerID{"m1-x", "m2-x", "m3-x", "m3-y"}
	runs     = []string{"r1", "r2"}
	boots    = []fsm.BootID{"b1", "b2"}
	ports    = []fsm.Port{{Protocol: fsm.TCP, Number: 80}, {Protocol: fsm.UDP, Number: 80}, {Protocol: fsm.TCP, Number: 443}}
	lbs      = []fsm.BalancerID{"o1", "o2", "o3"}
	drivers  = []string{"ns/d1", "ns/d2"}
	policies = []fsm.PolicyID{"BalancingPolicy/a", "BalancingPolicy/b", "LocalRedirectPolicy/a"}
	bindings = []fsm.BindingID{"x1", "x2", "x3", "x4"}
	backends = []string{"", "203.0.113.1:80", "203.0.113.2:80"}
)

// among draws one of a few, and now and then the zero value.
func among[T any](t *rapid.T, name string, of []T) T {
	if rapid.IntRange(0, 19).Draw(t, name+" missing") == 19 {
		var none T
		return none
	}
	return rapid.SampledFrom(of).Draw(t, name)
}

func some[T comparable](t *rapid.T, name string, of []T) []T {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(of), 0, len(of), rapid.ID).Draw(t, name)
}

func drawVIP(t *rapid.T) netip.Addr {
	if rapid.IntRange(0, 14).Draw(t, "odd address") == 14 {
		return rapid.SampledFrom(oddAddresses).Draw(t, "address")
	}
	return rapid.SampledFrom(vips).Draw(t, "vip")
}

// near draws a revision at or beside the one that counts.
func (w *history) near(t *rapid.T, name string, current rev) rev {
	now := rev{Epoch: w.model.now.Epoch, Index: w.next}
	return rapid.SampledFrom([]rev{
		current, current, current, current, current, now, {},
		{Epoch: current.Epoch, Index: current.Index - 1}, {Epoch: current.Epoch, Index: current.Index + 1},
		{Epoch: current.Epoch + 1, Index: current.Index}, {Epoch: now.Epoch, Index: now.Index - 1},
	}).Draw(t, name)
}

// draw makes a command of any kind, or mostly of a few nouns, so that long histories of one thing come about.
func (w *history) draw(t *rapid.T) fsm.Command {
	addresses := []func(*rapid.T) fsm.Command{w.drawService, w.drawAddress, w.drawAddress, w.drawRoute, w.drawLease}
	ports := []func(*rapid.T) fsm.Command{w.drawService, w.drawPort, w.drawPort, w.drawPort, w.drawPort, w.drawRoute, w.drawNode, w.drawHeard, w.drawMember}
	nodes := []func(*rapid.T) fsm.Command{w.drawNode, w.drawNode, w.drawRoute, w.drawMember}
	backends := []func(*rapid.T) fsm.Command{w.drawBalancer, w.drawBinding, w.drawBinding, w.drawOperation, w.drawOperation, w.drawOperation}
	balancers := []func(*rapid.T) fsm.Command{w.drawBalancer, w.drawBalancer, w.drawBinding, w.drawOnBalancer, w.drawOnBalancer, w.drawFinish, w.drawFinish}
	rest := []func(*rapid.T) fsm.Command{w.drawConfig, w.drawPlanner, w.drawGroup}
	about := map[string][]func(*rapid.T) fsm.Command{
		"addresses": addresses, "ports": ports, "nodes": nodes, "backends": backends, "balancers": balancers, "rest": rest,
		"numbers": {w.drawPlanner, w.drawNumbered},
		"all":     slices.Concat(addresses, nodes, backends, rest),
	}[w.about]
	return rapid.SampledFrom(about).Draw(t, "noun")(t)
}

func (w *history) drawService(t *rapid.T) fsm.Command {
	id := among(t, "service", services)
	uid := rapid.SampledFrom([]string{"u1", "u1", "u2"}).Draw(t, "uid")
	switch rapid.IntRange(0, 11).Draw(t, "verb") {
	case 10, 11:
		c := &fsm.JudgeService{ID: id, UID: uid}
		for range rapid.IntRange(0, 4).Draw(t, "verdicts") {
			v := drawVerdict(t)
			v.Port = rapid.SampledFrom([]fsm.Port{{}, {}, {}, v.Port}).Draw(t, "port")
			c.Verdicts = append(c.Verdicts, v)
		}
		return c
	case 8:
		return &fsm.EndMove{Service: id}
	case 9:
		return &fsm.BeginMove{Service: id, Node: among(t, "to", nodes)}
	case 0, 1:
		return &fsm.DeleteService{ID: id, UID: uid}
	case 2:
		return drawDrain(t, fsm.DrainService, string(id))
	}
	var endpoints []fsm.Endpoint
	for range rapid.IntRange(0, 3).Draw(t, "endpoints") {
		endpoints = append(endpoints, fsm.Endpoint{
			Address: drawVerdict(t).Address, Ready: rapid.Bool().Draw(t, "ready"), Failing: rapid.IntRange(0, 3).Draw(t, "failing") == 0,
			Offer: &fsm.Offer{Ports: rapid.SampledFrom([][]fsm.EndpointPort{{{Port: ports[0]}}, {{Port: ports[0]}}, {{Port: ports[0]}}, {{Port: ports[1]}}, nil}).Draw(t, "endpoint's ports")},
		})
	}
	probe := fsm.Probe{
		Type: rapid.SampledFrom([]string{"", "None", "TCP", "TCP", "TCP", "TCP", "HTTP"}).Draw(t, "probe"),
		Port: rapid.SampledFrom([]uint16{0, 0, 0, 0, 8080}).Draw(t, "probed port"),
	}
	return &fsm.PutService{Service: fsm.Service{
		Endpoints: endpoints, Rare: &fsm.Rare{Probe: probe, Verdicts: []fsm.ProbeVerdict{drawVerdict(t)}, ProbedSince: fsm.Revision{Epoch: 9}, ByOthers: rapid.SampledFrom([][]netip.Addr{nil, nil, nil, {netip.MustParseAddr("198.51.100.7")}}).Draw(t, "by others")}, // the proposer's, to be ignored
		ID: id, UID: uid, Version: rapid.Uint64Range(0, 3).Draw(t, "version"), Deleting: rapid.Bool().Draw(t, "deleting"),
		AllNodes: rapid.IntRange(0, 3).Draw(t, "all nodes") == 0, Local: rapid.Bool().Draw(t, "local"),
		NodePortsIPv4: rapid.IntRange(0, 3).Draw(t, "node ports") == 0, NodePortsIPv6: rapid.IntRange(0, 3).Draw(t, "node ports of IPv6") == 0,
		ClusterIPs: rapid.SampledFrom([][]netip.Addr{nil, nil, nil, {netip.MustParseAddr("10.96.0.7")}}).Draw(t, "cluster IPs"),
		History:    fsm.Trail{{What: "the proposer's, to be ignored"}},
	}}
}

// drawDrain begins or ends a drain, now and then of a kind that has none.
func drawDrain(t *rapid.T, of fsm.DrainOf, name string) fsm.Command {
	of = rapid.SampledFrom([]fsm.DrainOf{of, of, of, fsm.DrainNode, fsm.DrainService, fsm.DrainMember, "pool"}).Draw(t, "of")
	if rapid.Bool().Draw(t, "end") {
		return &fsm.EndDrain{Of: of, Name: name}
	}
	return &fsm.BeginDrain{Of: of, Name: name}
}

func (w *history) drawAddress(t *rapid.T) fsm.Command {
	address, service := drawVIP(t), among(t, "service", services)
	switch rapid.IntRange(0, 3).Draw(t, "verb") {
	case 0:
		return &fsm.ReleaseAllocation{Address: address, Service: service}
	case 1:
		return &fsm.FreeAllocation{Address: address, Service: service}
	}
	c := fsm.Allocate{
		Address: address, Service: service, Ports: some(t, "ports", ports),
		SharingKey: rapid.SampledFrom([]string{"", "k1", "k1", "k2"}).Draw(t, "sharing key"),
	}
	if rapid.IntRange(0, 3).Draw(t, "adopt") == 0 {
		return &fsm.AdoptAllocation{Allocation: c}
	}
	return &c
}

// drawPort has a few services come to share one address, and change what they have of it.
func (w *history) drawPort(t *rapid.T) fsm.Command {
	switch service := rapid.SampledFrom(services).Draw(t, "service"); rapid.IntRange(0, 9).Draw(t, "verb") {
	case 0:
		return &fsm.ReleaseAllocation{Address: vips[0], Service: service}
	case 1:
		return &fsm.FreeAllocation{Address: vips[0], Service: service}
	case 2:
		return &fsm.PutService{Service: fsm.Service{ID: service, UID: "u1", Version: 3}}
	case 3:
		return &fsm.SetRoute{Prefix: fsm.HostPrefix(vips[0]), Hops: []fsm.HopSpec{{Node: among(t, "node", nodes[:2]), Address: netip.MustParseAddr("198.51.100.1")}}}
	default:
		return &fsm.Allocate{Address: vips[0], Service: service, Ports: some(t, "ports", ports), SharingKey: "k1"}
	}
}

// drawHeard has a node that is there carry out all that there is.
func (w *history) drawHeard(t *rapid.T) fsm.Command {
	id := rapid.SampledFrom(nodes[:2]).Draw(t, "node")
	n, known := w.model.nodes[id]
	switch {
	case !known:
		return &fsm.PutNode{ID: id, UID: "u1", Version: 3}
	case n.boot == "":
		return &fsm.RegisterBoot{Node: id, Boot: "b1"}
	}
	mark := fsm.AppliedMark{Node: id, Boot: n.boot, Upto: w.model.now}
	if rapid.IntRange(0, 3).Draw(t, "failed") == 0 {
		mark.Failed = []netip.Prefix{fsm.HostPrefix(vips[0])}
	}
	return &fsm.Acknowledge{Marks: []fsm.AppliedMark{mark}}
}

func (w *history) drawHop(t *rapid.T) fsm.HopSpec {
	return fsm.HopSpec{Node: among(t, "node", nodes), Address: rapid.SampledFrom([]netip.Addr{
		netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("198.51.100.2"), netip.MustParseAddr("2001:db8:1::1"),
	}).Draw(t, "hop address")}
}

func (w *history) drawRoute(t *rapid.T) fsm.Command {
	vip := drawVIP(t)
	prefix := netip.PrefixFrom(vip, vip.BitLen())
	if rapid.IntRange(0, 1).Draw(t, "withdrawal") == 0 {
		spec := w.drawHop(t)
		since := w.model.routes[prefix][spec].since
		known := w.model.routes[prefix]
		if rapid.IntRange(0, 3).Draw(t, "any hop") == 3 {
			known = nil
		}
		for s, h := range known { // mostly of one that is there, whichever comes first by name
			if since == (rev{}) || string(s.Node)+s.Address.String() < string(spec.Node)+spec.Address.String() {
				spec, since = s, h.since
			}
		}
		return &fsm.FinishWithdrawal{
			Prefix: prefix, Node: spec.Node, Address: spec.Address, Since: w.near(t, "since", since),
			Excused: some(t, "excused", servers), NodeExcused: rapid.IntRange(0, 4).Draw(t, "node excused") == 0,
		}
	}
	if rapid.IntRange(0, 19).Draw(t, "wide") == 19 {
		prefix = netip.PrefixFrom(vip, 8)
	}
	hops := make([]fsm.HopSpec, rapid.IntRange(0, 3).Draw(t, "hops"))
	for i := range hops {
		hops[i] = w.drawHop(t)
	}
	return &fsm.SetRoute{Prefix: prefix, Hops: hops}
}

func (w *history) drawLease(t *rapid.T) fsm.Command {
	vip := drawVIP(t)
	if rapid.Bool().Draw(t, "end") {
		return &fsm.EndLease{VIP: vip, Fence: w.near(t, "fence", w.model.leases[vip].fence), Word: fsm.Word(rapid.IntRange(0, 3).Draw(t, "word"))}
	}
	return &fsm.GrantLease{
		VIP: vip, Holder: among(t, "holder", nodes),
		Term: rapid.SampledFrom([]time.Duration{0, time.Second, time.Second, time.Second}).Draw(t, "term"),
		Keep: rapid.Bool().Draw(t, "keep"),
	}
}

// drawOpen draws sessions, which may be out of order.
func drawOpen(t *rapid.T) (open []fsm.Reach) {
	for range rapid.IntRange(0, 2).Draw(t, "open") {
		open = append(open, drawReach(t, rapid.SampledFrom([]fsm.PeerName{"s1", "s2"}).Draw(t, "peer")))
	}
	return open
}

func drawSessions(t *rapid.T) fsm.Sessions {
	if !rapid.Bool().Draw(t, "tells of its sessions") {
		return fsm.Sessions{}
	}
	return fsm.Sessions{Told: true, Open: drawOpen(t)}
}

func (w *history) drawNode(t *rapid.T) fsm.Command {
	id := among(t, "node", nodes)
	n := w.model.nodes[id]
	boot := rapid.SampledFrom([]fsm.BootID{n.boot, n.boot, n.boot, "b1", "b2", ""}).Draw(t, "boot")
	switch rapid.IntRange(0, 10).Draw(t, "verb") {
	case 10:
		return &fsm.BeginMove{Service: among(t, "service", services), Node: id}
	case 7:
		return drawDrain(t, fsm.DrainNode, string(id))
	case 8, 9:
		return &fsm.ReportSpeakers{Marks: []fsm.SpeakerMark{{
			Node: id, Boot: boot, Speaks: rapid.IntRange(0, 3).Draw(t, "speaks") > 0,
			Announced: w.near(t, "announced", n.announced), Withdrawn: w.near(t, "withdrawn", n.withdrawn), Sessions: drawSessions(t),
		}}}
	case 0, 1:
		return &fsm.PutNode{
			ID: id, UID: rapid.SampledFrom([]string{"u1", "u1", "u2"}).Draw(t, "uid"),
			Version: rapid.Uint64Range(0, 3).Draw(t, "version"), Eligible: rapid.Bool().Draw(t, "eligible"),
			Zone: rapid.SampledFrom([]string{"", "z1", "z2"}).Draw(t, "zone"), Leaving: rapid.IntRange(0, 3).Draw(t, "leaving") == 3,
			Others: rapid.SampledFrom([][]netip.Addr{nil, nil, {netip.MustParseAddr("198.51.100.7")}}).Draw(t, "others"),
		}
	case 2:
		return &fsm.DeleteNode{ID: id}
	case 3:
		return &fsm.RegisterBoot{Node: id, Boot: among(t, "boot", boots)}
	case 4:
		return &fsm.SetLiveness{Node: id, Boot: boot, Liveness: rapid.SampledFrom([]fsm.Liveness{
			fsm.NodeUp, fsm.AgentDown, fsm.NodeDown, 3,
		}).Draw(t, "liveness")}
	}
	marks := make([]fsm.AppliedMark, rapid.IntRange(0, 2).Draw(t, "marks"))
	for i := range marks {
		marks[i] = fsm.AppliedMark{Node: id, Boot: boot, Upto: w.near(t, "upto", n.acknowledged)}
		if rapid.Bool().Draw(t, "failed") {
			marks[i].Failed = []netip.Prefix{netip.PrefixFrom(vips[0], 32)}
		}
		id = among(t, "next node", nodes)
		n = w.model.nodes[id]
		boot = n.boot
	}
	return &fsm.Acknowledge{Marks: marks}
}

func (w *history) drawMember(t *rapid.T) fsm.Command {
	id := among(t, "server", servers)
	s := w.model.members[id]
	name, _, _ := strings.Cut(string(id), "-")
	switch rapid.IntRange(0, 12).Draw(t, "verb") {
	case 11, 12:
		return w.drawAbsences(t)
	case 0:
		return &fsm.RemoveMember{Server: id}
	case 9, 10:
		c := &fsm.ReportSessions{}
		for range rapid.IntRange(0, 2).Draw(t, "members") {
			said := fsm.MemberSessions{Server: id, Run: rapid.SampledFrom([]string{s.run, s.run, s.run, "r1", "r2"}).Draw(t, "run")}
			said.Open = drawOpen(t)
			c.Members = append(c.Members, said)
			id = among(t, "next server", servers)
			s = w.model.members[id]
		}
		return c
	case 6, 7:
		return drawDrain(t, fsm.DrainMember, name)
	case 8:
		return &fsm.StepAside{Name: name, Since: w.near(t, "since", w.model.drains[mDrain{fsm.DrainMember, name}])}
	case 1, 2:
		return &fsm.ReportMember{
			Server: id, Name: name, Run: among(t, "run", runs), Format: rapid.SampledFrom([]uint32{0, 1, 2, 2, 2, 3}).Draw(t, "format"),
		}
	}
	marks := make([]fsm.AnnouncedMark, rapid.IntRange(0, 2).Draw(t, "marks"))
	for i := range marks {
		run := rapid.SampledFrom([]string{s.run, s.run, s.run, "r1", "r2"}).Draw(t, "run")
		marks[i] = fsm.AnnouncedMark{Server: id, Run: run, Upto: w.near(t, "upto", s.announced)}
		if rapid.Bool().Draw(t, "says what it withdrew") {
			marks[i].Withdrawn = w.near(t, "withdrawn", s.withdrawn)
		}
		id = among(t, "next server", servers)
		s = w.model.members[id]
	}
	return &fsm.ReportAnnounced{Marks: marks}
}

// drawAbsences draws what leaders counted of members and nodes, mostly of those that are meant.
func (w *history) drawAbsences(t *rapid.T) fsm.Command {
	c := &fsm.ReportAbsences{}
	away := rapid.Custom(func(t *rapid.T) fsm.Absence {
		return fsm.Absence{
			For:   time.Duration(rapid.IntRange(-1, 3).Draw(t, "minutes")) * time.Minute,
			Holds: time.Duration(rapid.IntRange(0, 2).Draw(t, "holds")) * time.Minute,
		}
	})
	for range rapid.IntRange(0, 2).Draw(t, "members") {
		id := among(t, "server", servers)
		run := rapid.SampledFrom([]string{w.model.members[id].run, w.model.members[id].run, "r1", "r2"}).Draw(t, "run")
		c.Members = append(c.Members, fsm.MemberAbsence{Server: id, Run: run, Absence: away.Draw(t, "away")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "nodes") {
		id := among(t, "node", nodes)
		boot := rapid.SampledFrom([]fsm.BootID{w.model.nodes[id].boot, w.model.nodes[id].boot, "b1", ""}).Draw(t, "boot")
		c.Nodes = append(c.Nodes, fsm.NodeAbsence{Node: id, Boot: boot, Absence: away.Draw(t, "away")})
	}
	return c
}
