// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/derive"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/api"
	"fairlead.io/fairlead/k8s/convert"
)

// some draws one of several values and gives it as a field has it.
func some[T any](t *rapid.T, what string, of ...T) *T {
	one := rapid.SampledFrom(of).Draw(t, what)
	return &one
}

func drawTime(t *rapid.T) *metav1.Duration {
	return &metav1.Duration{Duration: rapid.SampledFrom([]time.Duration{
		0, 1500 * time.Millisecond, time.Second, 2 * time.Second, 3 * time.Second, 31 * time.Second, 4095 * time.Second, 65535 * time.Second, 1 << 24 * time.Second,
	}).Draw(t, "time")}
}

// peerLimits take parts of a BGPPeer to the limits of BGP, or beyond.
var peerLimits = []func(*rapid.T, *api.BGPPeerSpec){
	func(t *rapid.T, p *api.BGPPeerSpec) {
		p.PeerAddress = rapid.SampledFrom([]string{
			"192.0.2.2", "169.254.255.1", "127.0.0.1", "2001:db8::1", "::ffff:192.0.2.1", "255.255.255.255", "224.0.0.1", "0.0.0.0", "fe80::1",
		}).Draw(t, "address")
	},
	func(t *rapid.T, p *api.BGPPeerSpec) { p.Mode, p.Interface, p.PeerAddress = "node", "eth1", "" },
	func(t *rapid.T, p *api.BGPPeerSpec) { p.MyASN = *some[uint32](t, "own AS", 0, 1, 64513, 1<<32-1) },
	func(t *rapid.T, p *api.BGPPeerSpec) { p.PeerASN = *some[uint32](t, "AS", 0, 1, 64512, 1<<32-1) },
	func(t *rapid.T, p *api.BGPPeerSpec) {
		p.LocalASN = *some[uint32](t, "AS of the session", 1, 64513, 1<<32-1)
	},
	func(t *rapid.T, p *api.BGPPeerSpec) { p.HoldTime = drawTime(t) },
	func(t *rapid.T, p *api.BGPPeerSpec) { p.KeepaliveTime = drawTime(t) },
	func(t *rapid.T, p *api.BGPPeerSpec) { p.ConnectTime = drawTime(t) },
	func(t *rapid.T, p *api.BGPPeerSpec) { p.RestartTime = drawTime(t) },
	func(t *rapid.T, p *api.BGPPeerSpec) { p.StaleTime = drawTime(t) },
	func(t *rapid.T, p *api.BGPPeerSpec) { p.Restart = *some(t, "restart", "plain", "none") },
	func(t *rapid.T, p *api.BGPPeerSpec) { p.PeerPort = some[int32](t, "port", 0, 179, 1790, 65536) },
	func(t *rapid.T, p *api.BGPPeerSpec) { p.TTLSecurity = some[int32](t, "TTL security", 1, 255, 256) },
	func(t *rapid.T, p *api.BGPPeerSpec) { p.SendMax = some[int32](t, "send max", 1, 255, 256) },
	func(t *rapid.T, p *api.BGPPeerSpec) { p.Password = strings.Repeat("x", *some(t, "bytes", 80, 81)) },
	func(t *rapid.T, p *api.BGPPeerSpec) { p.EBGPMultiHop = true },
	func(t *rapid.T, p *api.BGPPeerSpec) { p.DisableMP = true },
	func(t *rapid.T, p *api.BGPPeerSpec) { p.KeepOnNotification = true },
	func(t *rapid.T, p *api.BGPPeerSpec) { p.Mode = "node" },
}

// drawPeer draws a BGPPeer with a few parts at limits: of those that are wrong in many ways none is accepted.
func drawPeer(t *rapid.T, name string) *api.BGPPeer {
	o := &api.BGPPeer{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: api.BGPPeerSpec{MyASN: 64512, PeerASN: 64513, PeerAddress: "192.0.2.1"}}
	for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(peerLimits)-1), 0, 3).Draw(t, "limits of "+name) {
		peerLimits[i](t, &o.Spec)
	}
	return o
}

// drawAdvertisement does so for a BGPAdvertisement.
func drawAdvertisement(t *rapid.T) *api.BGPAdvertisement {
	spec := api.BGPAdvertisementSpec{
		LocalPref: rapid.SampledFrom([]uint32{0, 1, 2, 1<<32 - 1}).Draw(t, "local preference"),
		Weights:   rapid.SampledFrom([]string{"", "readyEndpoints"}).Draw(t, "weights"),
		Peers:     rapid.SampledFrom([][]string{nil, {"a"}}).Draw(t, "peers"),
	}
	switch rapid.IntRange(0, 3).Draw(t, "limit") {
	case 1:
		spec.MED = some[int64](t, "med", -1, 0, 999_999_999, 1_000_000_000)
	case 2:
		spec.AggregationLength = some[int32](t, "aggregate", 0, 19, 20, 32, 33)
	case 3:
		spec.Communities = []string{*some(t, "community", "no-export", "65536:1", "large:1:2:3", "large:4294967295:1:1")}
		for i := range rapid.SampledFrom([]int{0, 127, 128}).Draw(t, "communities") {
			spec.Communities = append(spec.Communities, fmt.Sprintf("65000:%d", i))
		}
	}
	return &api.BGPAdvertisement{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: spec}
}

// accepted is what the sources show of objects that conversion accepts.
func accepted(peers []*api.BGPPeer, advertisement *api.BGPAdvertisement) *world.World {
	w := &world.World{}
	for _, o := range peers {
		if p, problems := convert.Peer(o); convert.Usable(problems) {
			w.Peers = append(w.Peers, &p)
		}
	}
	if a, problems := convert.Advertisement(advertisement); convert.Usable(problems) {
		w.Advertisements = append(w.Advertisements, &a)
	}
	w.Sort()
	return w
}

// spoken are the peers of members, and those of a node that peers.
func spoken(v *fsm.View) [][]bgp.Peer {
	password := bgp.Secret(strings.Repeat("x", bgp.MaxPasswordBytes))
	members, _ := derive.Peers(v, func(bgp.Peer, string) (bgp.Secret, bool) { return password, true })
	nodes, signed, unnumbered := derive.NodePeers(v, "n1")
	for _, p := range signed {
		p.Password = password
		nodes = append(nodes, p.Peer)
	}
	for _, p := range unnumbered {
		p.Address = netip.MustParseAddr("fe80::1").WithZone(p.Interface)
		nodes = append(nodes, p.Peer)
	}
	return [][]bgp.Peer{members, nodes}
}

// What would be left out is told to whoever wrote it: nobody looks for it in the logs of members.
func TestPropertySpeakersLeaveOutNothingThatConversionAccepts(t *testing.T) {
	vip := netip.MustParseAddr("203.0.113.1")
	testkit.Check(t, func(rt *rapid.T) {
		state := fsm.New()
		apply := applyTo(t, state)
		apply(&fsm.InitGroup{Group: "g", Format: fsm.NewestFormat}, &fsm.PutSettings{Settings: fsm.Settings{Unsteered: true}},
			&fsm.PutService{Service: fsm.Service{ID: "shop/web"}}, &fsm.Allocate{Address: vip, Service: "shop/web", Pool: "p"}, &fsm.PutNode{ID: "n1", Eligible: true},
			&fsm.SetRoute{Prefix: fsm.HostPrefix(vip), Hops: []fsm.HopSpec{{Node: "n1", Address: netip.MustParseAddr("198.51.100.1")}}})
		w := accepted([]*api.BGPPeer{drawPeer(rt, "a"), drawPeer(rt, "b")}, drawAdvertisement(rt))
		for range 3 {
			out := leader.Plan(leader.Input{Views: []leader.Admitted{{World: w, Complete: true}}, Record: state.Read()})
			for _, p := range slices.Concat(out.Urgent, out.Bulk) {
				switch p.Command.(type) {
				case *fsm.PutPeer, *fsm.PutAdvertisement: // the rest is about the Service
					apply(p.Command)
				}
			}
		}
		paths := bgp.NewPaths(derive.Paths(state.Read())...)
		if paths.Len() != 1 {
			rt.Fatalf("%d paths", paths.Len())
		}
		for _, peers := range spoken(state.Read()) {
			if _, err := (bgp.Desired{Paths: paths, Peers: peers}).Normal(64512); err != nil {
				rt.Fatal(err)
			}
		}
	})
}
