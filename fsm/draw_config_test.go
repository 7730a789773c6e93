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

func (w *history) drawConfig(t *rapid.T) fsm.Command {
	switch rapid.IntRange(0, 9).Draw(t, "verb") {
	case 0:
		return &fsm.DeletePool{Name: among(t, "pool", []fsm.PoolName{"p1", "p2"})}
	case 1, 2:
		ends := append(slices.Clone(vips), oddAddresses...)
		ranges := make([]fsm.Range, rapid.IntRange(0, 2).Draw(t, "ranges"))
		for i := range ranges {
			ranges[i].From = rapid.SampledFrom(ends).Draw(t, "from")
			ranges[i].To = rapid.SampledFrom(append(ends, ranges[i].From, ranges[i].From)).Draw(t, "to")
		}
		return &fsm.PutPool{Pool: fsm.Pool{Name: among(t, "pool", []fsm.PoolName{"p1", "p2"}), Ranges: ranges, Object: drawObjectRef(t)}}
	case 3:
		return &fsm.DeletePeer{Name: among(t, "peer", []fsm.PeerName{"s1", "s2"})}
	case 4:
		return &fsm.PutPeer{Peer: drawPeer(t)}
	case 5:
		return &fsm.PutAdvertisement{Advertisement: fsm.Advertisement{
			Name: among(t, "name", []fsm.AdvertisementName{"a"}),
			Terms: fsm.AdvertisementTerms{
				MED: rapid.SampledFrom([]uint32{0, 0, 7}).Draw(t, "med"), AggregateV4: rapid.SampledFrom([]uint8{0, 0, 28, 32}).Draw(t, "aggregate"),
			},
			Object: drawObjectRef(t),
		}}
	case 6:
		return &fsm.DeleteAdvertisement{Name: "a"}
	case 8:
		return &fsm.PutL2Advertisement{Advertisement: fsm.L2Advertisement{
			Name:  among(t, "name", []fsm.AdvertisementName{"a", "b"}),
			Pools: some(t, "pools", []fsm.PoolName{"p1", "p2"}), Kept: some(t, "kept", []fsm.PoolName{"p1"}),
		}}
	case 9:
		return &fsm.DeleteL2Advertisement{Name: among(t, "name", []fsm.AdvertisementName{"a", "b"})}
	}
	name := rapid.SampledFrom([]string{"", "n1"}).Draw(t, "node config")
	if rapid.Bool().Draw(t, "delete") {
		return &fsm.DeleteNodeConfig{Name: name}
	}
	return &fsm.PutNodeConfig{Config: fsm.NodeConfig{
		Name: name, InTable: rapid.SampledFrom([]uint32{0, 102, 7}).Draw(t, "in"), OutTable: rapid.SampledFrom([]uint32{0, 101, 7}).Draw(t, "out"),
		Object: drawObjectRef(t),
	}}
}

func drawPeer(t *rapid.T) fsm.Peer {
	p := fsm.Peer{
		Name: among(t, "peer", []fsm.PeerName{"s1", "s2"}), ASN: among(t, "asn", []uint32{64512}),
		Port:    rapid.SampledFrom([]uint16{0, 179, 1790}).Draw(t, "port"),
		Nodes:   fsm.PeerNodes{Speak: rapid.IntRange(0, 3).Draw(t, "speak") == 0},
		Options: fsm.PeerOptions{TTLSecurity: rapid.SampledFrom([]uint8{0, 0, 1}).Draw(t, "hops")},
		Object:  drawObjectRef(t),
	}
	if rapid.Bool().Draw(t, "by interface") {
		p.Interface = rapid.SampledFrom([]string{"eth1", "eth1", "eth2"}).Draw(t, "interface")
		p.Nodes.Speak = rapid.IntRange(0, 7).Draw(t, "spoken") > 0
		p.Nodes.Only = rapid.Bool().Draw(t, "only")
		if p.Nodes.Only {
			p.Nodes.Names = some(t, "of nodes", []fsm.NodeID{"n1", "n2"})
		}
		p.MultihopTTL = rapid.SampledFrom([]uint8{0, 0, 0, 0, 1}).Draw(t, "multihop")
		p.PasswordFrom = rapid.SampledFrom([]string{"", "", "", "", "x"}).Draw(t, "password")
	}
	if p.Interface == "" || rapid.IntRange(0, 7).Draw(t, "both") == 0 {
		p.Address = among(t, "address", []netip.Addr{netip.MustParseAddr("203.0.113.254")})
	}
	return p
}

func drawObjectRef(t *rapid.T) fsm.ObjectRef {
	return fsm.ObjectRef{UID: rapid.SampledFrom([]string{"", "", "", "u1"}).Draw(t, "uid")}
}

// Listed addresses of policies, and the ports that are captured and that they become.
var (
	listed  = []netip.Addr{netip.MustParseAddr("198.51.100.11"), netip.MustParseAddr("198.51.100.12"), netip.MustParseAddr("2001:db8::11")}
	targets = []fsm.Port{{Protocol: fsm.TCP, Number: 6432}, {Protocol: fsm.UDP, Number: 6432}, {Protocol: fsm.TCP, Number: 6433}}
)

func drawPolicy(t *rapid.T) fsm.Policy {
	r := fsm.Policy{
		ID: among(t, "policy", policies), UID: rapid.SampledFrom([]string{"u1", "u1", "u1", "u2"}).Draw(t, "uid"),
		Version: rapid.Uint64Range(0, 3).Draw(t, "version"), Number: rapid.SampledFrom([]uint32{0, 0, 1, 2, 3}).Draw(t, "number"),
		Probe:   fsm.Probe{Type: rapid.SampledFrom([]string{"", "None", "TCP", "TCP", "TCP", "TCP", "HTTP"}).Draw(t, "probe")},
		History: fsm.Trail{{What: "the proposer's, to be ignored"}}, Verdicts: []fsm.ProbeVerdict{{Address: listed[0], Port: targets[0], Say: 99, Of: 99}},
		Proxied: drawProxied(t), EveryNode: rapid.Bool().Draw(t, "every node"), Since: fsm.Revision{Epoch: 9},
		Pending: fsm.Pending{Text: rapid.SampledFrom([]string{"", "x"}).Draw(t, "pending")},
	}
	for i, p := range some(t, "ports", targets) {
		r.Captures = append(r.Captures, fsm.Capture{Address: netip.MustParseAddr("169.254.77.1"), Port: fsm.Port{Protocol: p.Protocol, Number: uint16(i)}, Target: p.Number})
	}
	for _, a := range some(t, "backends", listed) {
		b := fsm.PolicyBackend{Address: a, Ready: true}
		if rapid.IntRange(0, 3).Draw(t, "of a pod") == 0 {
			b.Pod, b.HostUID = "shop/web", rapid.SampledFrom([]string{"", "h"}).Draw(t, "static")
		}
		r.Backends = append(r.Backends, b)
	}
	return r
}

func drawVerdict(t *rapid.T) fsm.ProbeVerdict {
	return fsm.ProbeVerdict{
		Address: rapid.SampledFrom(listed).Draw(t, "address"), Port: rapid.SampledFrom(targets).Draw(t, "port"),
		Healthy: rapid.Bool().Draw(t, "healthy"), Say: rapid.Uint32Range(1, 2).Draw(t, "say"), Of: 3,
	}
}

// drawNumbered has policies come and go, on nodes that carry them out and hear of it later.
func (w *history) drawNumbered(t *rapid.T) fsm.Command {
	id := rapid.SampledFrom(nodes[:2]).Draw(t, "node")
	n, known := w.model.nodes[id]
	of := rapid.SampledFrom(policies).Draw(t, "policy")
	verb := rapid.IntRange(0, 9).Draw(t, "verb")
	switch {
	case w.model.format < 2 && verb == 0:
		return &fsm.RaiseFormat{Format: 2}
	case !known:
		return &fsm.PutNode{ID: id, UID: "u1", Version: 3}
	case n.boot == "":
		return &fsm.RegisterBoot{Node: id, Boot: "b1"}
	case !n.carries && verb < 6:
		return &fsm.ReportPolicySupport{Node: id, Boot: n.boot, Carries: true}
	case verb == 0:
		return &fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: id, Boot: n.boot, Upto: w.near(t, "upto", w.model.now)}}}
	case verb == 1:
		return &fsm.RegisterBoot{Node: id, Boot: among(t, "boot", boots)}
	case verb < 5:
		return &fsm.DeletePolicy{ID: of, UID: w.model.policies[of].uid}
	}
	return &fsm.PutPolicy{Policy: fsm.Policy{ID: of, UID: rapid.SampledFrom([]string{"u1", "u2"}).Draw(t, "uid"), Version: 9, Number: rapid.Uint32Range(0, 3).Draw(t, "number")}}
}

func (w *history) drawPlanner(t *rapid.T) fsm.Command {
	hold := among(t, "hold", []fsm.HoldID{"h1", "h2"})
	source := among(t, "source", []string{"k8s"})
	policy := among(t, "policy", []fsm.RegisterID{"c1", "c2"})
	switch rapid.IntRange(0, 36).Draw(t, "verb") {
	case 34, 35, 36:
		return drawRevocation(t)
	case 20, 21, 22, 23:
		return w.drawHost(t)
	case 12, 13, 14, 15:
		return &fsm.PutPolicy{Policy: drawPolicy(t)}
	case 17, 18, 19:
		c := &fsm.SetPolicyHealth{ID: among(t, "policy", policies), UID: rapid.SampledFrom([]string{"u1", "u1", "u1", "u2"}).Draw(t, "uid")}
		for range rapid.IntRange(0, 4).Draw(t, "verdicts") {
			c.Verdicts = append(c.Verdicts, drawVerdict(t))
		}
		return c
	case 24:
		return &fsm.SetTunnels{Settings: drawTunnels(t)}
	case 25, 26:
		return &fsm.PutTunnel{Host: among(t, "host", ends), Underlay: among(t, "underlay", append(slices.Clone(oddAddresses), underlays...))}
	case 27:
		return &fsm.ReleaseTunnel{Host: among(t, "host", ends)}
	case 28:
		return &fsm.FreeTunnel{Host: among(t, "host", ends)}
	case 29:
		return &fsm.ReportTunnels{Node: among(t, "node", nodes), Boot: among(t, "boot", boots), Tunnels: rapid.IntRange(0, 3).Draw(t, "tunnels") > 0}
	case 30, 31:
		return &fsm.NumberNode{ID: among(t, "node", nodes), Number: rapid.Uint32Range(0, 3).Draw(t, "number")}
	case 32, 33:
		return &fsm.ReportPolicySupport{Node: among(t, "node", nodes), Boot: among(t, "boot", boots), Carries: rapid.IntRange(0, 3).Draw(t, "carries") > 0}
	case 16:
		return &fsm.DeletePolicy{ID: among(t, "policy", policies), UID: rapid.SampledFrom([]string{"u1", "u2"}).Draw(t, "uid")}
	case 9:
		return &fsm.PutEnrolment{ID: drawSum(t), Node: among(t, "node", nodes), Outside: rapid.Bool().Draw(t, "outside"), TTL: time.Duration(rapid.IntRange(0, 3).Draw(t, "ttl"))}
	case 10:
		return &fsm.UseEnrolment{ID: drawSum(t), Node: among(t, "node", nodes), Outside: rapid.Bool().Draw(t, "outside")}
	case 11:
		return &fsm.DeleteEnrolment{ID: drawSum(t)}
	case 0, 1:
		return &fsm.PutHold{ID: hold, Of: "Service", Subjects: some(t, "subjects", []string{"a", "b"})}
	case 2:
		return &fsm.ReleaseHold{ID: hold}
	case 3:
		return &fsm.DeleteHold{ID: hold}
	case 4:
		return &fsm.AcceptRewind{Source: source}
	case 5:
		return &fsm.PutRegister{ID: policy, UID: rapid.SampledFrom([]string{"u1", "u2"}).Draw(t, "uid"), Version: rapid.Uint64Range(0, 3).Draw(t, "version")}
	case 6:
		return &fsm.DeleteRegister{ID: policy}
	}
	var versions []fsm.KindVersion
	for _, kind := range some(t, "kinds", []string{"Service", "Node"}) {
		versions = append(versions, fsm.KindVersion{Kind: kind, Version: rapid.Uint64Range(0, 3).Draw(t, "version")})
	}
	return &fsm.ObserveView{Source: source, Cluster: rapid.SampledFrom([]string{"u1", "u1", "u1", "u2"}).Draw(t, "cluster"), Versions: versions}
}

// drawHost draws what is about a host: hosts are called as nodes are, and are others.
func (w *history) drawHost(t *rapid.T) fsm.Command {
	id := fsm.HostID(among(t, "host", nodes[:2]))
	h := w.model.hosts[id]
	boot := rapid.SampledFrom([]fsm.BootID{h.boot, h.boot, "b1", "b2", ""}).Draw(t, "boot")
	switch rapid.IntRange(0, 4).Draw(t, "verb") {
	case 0:
		return &fsm.RemoveHost{ID: id}
	case 1, 2:
		return &fsm.RegisterHost{
			ID: id, Boot: boot, Addresses: rapid.SliceOfN(rapid.SampledFrom(slices.Concat(vips, vips, oddAddresses)), 0, 2).Draw(t, "underlay"),
			Admit: rapid.Bool().Draw(t, "admit"), Tunnels: rapid.Bool().Draw(t, "tunnels"),
		}
	}
	marks := make([]fsm.HostMark, rapid.IntRange(0, 2).Draw(t, "marks"))
	for i := range marks {
		marks[i] = fsm.HostMark{Host: id, Boot: boot, Upto: w.near(t, "upto", h.acknowledged)}
		id = fsm.HostID(among(t, "next host", nodes[:2]))
		h = w.model.hosts[id]
		boot = h.boot
	}
	return &fsm.ReportHosts{Marks: marks}
}

// ends are whose tunnels there are: nodes', and of hosts outside that are called as they are.
var ends = []fsm.TunnelID{"n1", "n2", "n3", fsm.HostTunnel("n1"), fsm.HostTunnel("n2")}

// underlays are where hosts are reached; the last one is in one of the ranges that tunnels may have.
var underlays = []netip.Addr{netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("198.51.100.2"), netip.MustParseAddr("2001:db8:9::1"), netip.MustParseAddr("10.250.0.1")}

func drawProxied(t *rapid.T) (out []fsm.ProxiedPod) {
	for _, pod := range some(t, "proxied", []string{"shop/p1", "shop/p2"}) {
		out = append(out, fsm.ProxiedPod{
			Node: "n1", Pod: pod, UID: rapid.SampledFrom([]string{"u1", "u1", "u2"}).Draw(t, "pod"), Ready: rapid.Bool().Draw(t, "ready"),
			Since: fsm.Revision{Epoch: 1, Index: 1}, // the proposer's, to be ignored
		})
	}
	return out
}

// drawTunnels draws settings with room for two hosts, or six, now and then some that will not do.
func drawTunnels(t *rapid.T) (s fsm.TunnelSettings) {
	if rapid.IntRange(0, 5).Draw(t, "off") == 0 {
		return s
	}
	parse := func(name string, of ...string) (p netip.Prefix) {
		if text := rapid.SampledFrom(of).Draw(t, name); text != "" {
			p = netip.MustParsePrefix(text)
		}
		return p
	}
	s.Range4 = parse("range4", "10.250.0.0/30", "10.250.0.0/29", "10.250.0.0/29", "10.250.0.1/29", "192.0.2.0/24", "fd00:250::/64", "")
	s.Range6 = parse("range6", "", "", "fd00:250::/64", "fd00:250::/126")
	s.Over6 = rapid.IntRange(0, 3).Draw(t, "over6") == 0
	s.Port, s.VNI = among(t, "port", []uint16{7789, 7789, 8472}), among(t, "vni", []uint32{7, 7, 7, 1 << 24})
	s.MTU = rapid.SampledFrom([]uint32{0, 0, 0, 1400, 60}).Draw(t, "mtu")
	return s
}

// drawRevocation draws what is revoked, or taken back: now and then what cannot be.
func drawRevocation(t *rapid.T) fsm.Command {
	of := among(t, "of", append(fsm.Revocable(), "thing"))
	name := rapid.SampledFrom([]string{"n1", "n1", "0a", "0a", "0A", "", strings.Repeat("a", 43), strings.Repeat("b", 254)}).Draw(t, "name")
	if rapid.IntRange(0, 2).Draw(t, "take back") == 0 {
		return &fsm.EndRevocation{Of: of, Name: name}
	}
	return &fsm.Revoke{Of: of, Name: name, Before: rapid.SampledFrom([]int64{0, 0, 0, 1, 2, -1}).Draw(t, "before")}
}

// drawSum draws the id of an enrolment, now and then one that is none.
func drawSum(t *rapid.T) fsm.EnrolmentID {
	return fsm.EnrolmentID(strings.Repeat(rapid.SampledFrom([]string{"0a", "0a", "f1", "f1", "0A"}).Draw(t, "token"), 32))
}

func drawSettings(t *rapid.T) fsm.Settings {
	return fsm.Settings{
		HistoryLimit: rapid.SampledFrom([]uint32{1, 2, 3, 65}).Draw(t, "history limit"),
		GraveLimit:   rapid.SampledFrom([]uint32{1, 2, 3, 1_000_001}).Draw(t, "grave limit"),
		Unsteered:    rapid.IntRange(0, 3).Draw(t, "unsteered") == 3,
	}
}

func (w *history) drawLineage(t *rapid.T) fsm.Lineage {
	if rapid.Bool().Draw(t, "of its own") {
		return fsm.Lineage{}
	}
	return fsm.Lineage{
		Group: among(t, "lineage", []fsm.GroupID{"g1", "g2", ""}), Epoch: rapid.SampledFrom([]fsm.Epoch{0, 1, 1, w.model.now.Epoch, w.model.now.Epoch + 3}).Draw(t, "since"),
		Nonce: rapid.SampledFrom([]string{"", "k3x9", strings.Repeat("k", fsm.MaxNonceBytes+1)}).Draw(t, "nonce"),
	}
}

func (w *history) drawGroup(t *rapid.T) fsm.Command {
	m, settings := w.model, drawSettings(t)
	switch rapid.IntRange(0, 8).Draw(t, "verb") {
	case 0:
		return &fsm.InitGroup{Group: "g2", Format: 1, Settings: settings}
	case 1:
		return &fsm.NewEpoch{
			Group: among(t, "group", []fsm.GroupID{"g1", "g1", "g2"}), Cause: "test",
			Epoch: m.now.Epoch + rapid.SampledFrom([]fsm.Epoch{0, 1, 2}).Draw(t, "epoch"), Lineage: w.drawLineage(t),
		}
	case 2, 3, 4:
		return &fsm.EndQuarantine{Since: w.near(t, "since", m.quarantine)}
	case 5:
		return &fsm.PutSettings{Settings: settings}
	case 6:
		format := rapid.Uint32Range(0, fsm.NewestFormat+1).Draw(t, "format")
		if m.mayRaise(fsm.NewestFormat + 1) {
			format = min(format, fsm.NewestFormat) // to a newer one would rightly stop this release
		}
		return &fsm.RaiseFormat{Format: format}
	}
	back := rapid.IntRange(0, len(w.digests)).Draw(t, "checkpoint")
	if back == len(w.digests) {
		return &fsm.Checkpoint{Index: w.next} // an index that nobody can have a digest of
	}
	at := w.digests[len(w.digests)-1-back]
	if rapid.Bool().Draw(t, "contradicts") { // of a proposer whose record is another one
		at.digest.Lo++
	}
	return &fsm.Checkpoint{Index: at.index, Digest: at.digest}
}
