// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
	"fairlead.io/fairlead/internal/testkit"
)

// toldPeer and toldAdvertisement are what a test knows of a peer and of an advertisement that it made.
type toldPeer struct {
	v4, v6, ofNodes bool
}

type toldAdvertisement struct {
	pools []fsm.PoolName
	peers []fsm.PeerName
	only  []fsm.NodeID // nil: all
}

// A hop is announced just where somebody is sent it: a peer that takes its family, that the advertisements about it do not leave out, and that
// has a session with a speaker which has written it. A member that never told of its sessions is believed for all peers.
func TestPropertyHopsAreAnnouncedToSomebody(t *testing.T) {
	names := []fsm.PeerName{"s1", "s2", "s3"}
	testkit.Check(t, func(t *rapid.T) {
		s := fsmtest.New(t, "g")
		address := rapid.SampledFrom([]netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}).Draw(t, "address")
		pool := rapid.SampledFrom([]fsm.PoolName{"p1", "p2"}).Draw(t, "pool")
		fsmtest.Tell(t, s, &fsm.PutNode{ID: "n1", UID: "u1"}, &fsm.RegisterBoot{Node: "n1", Boot: "b1"}, &fsm.PutService{Service: fsm.Service{ID: "shop/a", UID: "u1"}},
			&fsm.PutPool{Pool: fsm.Pool{Name: pool, Ranges: []fsm.Range{{From: address, To: address}}}}, &fsm.Allocate{Address: address, Service: "shop/a", Pool: pool},
			&fsm.SetRoute{Prefix: fsm.HostPrefix(address), Hops: []fsm.HopSpec{{Node: "n1", Address: address.Next()}}})
		upto := s.Read().Revision()
		fsmtest.Tell(t, s, &fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: "n1", Boot: "b1", Upto: upto}}})
		written := s.Read().Revision()
		peers := map[fsm.PeerName]toldPeer{}
		for i, name := range some(t, "peers", names) {
			p := toldPeer{rapid.Bool().Draw(t, "IPv4"), rapid.Bool().Draw(t, "IPv6"), rapid.IntRange(0, 2).Draw(t, "nodes peer") == 0}
			fsmtest.Tell(t, s, &fsm.PutPeer{Peer: fsm.Peer{
				Name: name, ASN: 64512, Address: netip.MustParseAddr(fmt.Sprintf("203.0.113.%d", i+1)), IPv4: p.v4, IPv6: p.v6, Nodes: fsm.PeerNodes{Speak: p.ofNodes},
			}})
			if !p.v4 && !p.v6 {
				p.v4 = true // that of its address
			}
			peers[name] = p
		}
		var ads []toldAdvertisement
		for i := range rapid.IntRange(0, 2).Draw(t, "advertisements") {
			ad := toldAdvertisement{pools: some(t, "of pools", []fsm.PoolName{"p1", "p2"}), peers: some(t, "to peers", names)}
			made := fsm.Advertisement{Name: fsm.AdvertisementName(fmt.Sprint("a", i)), Pools: ad.pools, Peers: ad.peers}
			if rapid.IntRange(0, 2).Draw(t, "only nodes") == 0 {
				ad.only = append([]fsm.NodeID{}, some(t, "nodes", []fsm.NodeID{"n1", "n2"})...)
				made.Terms.OnlyNodes, made.Terms.Nodes = true, ad.only
			}
			fsmtest.Tell(t, s, &fsm.PutAdvertisement{Advertisement: made})
			ads = append(ads, ad)
		}

		due := map[fsm.PeerName]bool{} // who is to be sent the hop
		for name, p := range peers {
			takes := p.v4
			if !address.Is4() {
				takes = p.v6
			}
			due[name] = takes && sends(ads, pool, name)
		}
		heard, anything := false, len(peers) == 0
		for _, p := range peers {
			anything = anything || !p.ofNodes
		}
		if rapid.Bool().Draw(t, "the node speaks") {
			mark := fsm.SpeakerMark{Node: "n1", Boot: "b1", Speaks: true, Announced: written}
			if rapid.IntRange(0, 3).Draw(t, "it tells of its sessions") > 0 {
				mark.Sessions.Told = true
				for _, peer := range slices.Sorted(slices.Values(some(t, "its sessions", names))) {
					mark.Sessions.Open = append(mark.Sessions.Open, drawReach(t, peer))
				}
			}
			fsmtest.Tell(t, s, &fsm.ReportSpeakers{Marks: []fsm.SpeakerMark{mark}})
			for name, p := range peers {
				heard = heard || p.ofNodes && due[name] && (!mark.Sessions.Told || slices.ContainsFunc(mark.Sessions.Open, func(r fsm.Reach) bool { return r.Peer == name && r.Takes(address) }))
			}
		}
		var announcers []string
		for _, name := range []string{"m1", "m2"} {
			server := fsm.ServerID(name + "-x")
			fsmtest.Tell(t, s, &fsm.ReportMember{Server: server, Name: name, Format: fsm.NewestFormat, Run: "r"})
			reaches := true
			if rapid.IntRange(0, 3).Draw(t, name+" tells of its sessions") > 0 {
				reaches = false
				said := fsm.MemberSessions{Server: server, Run: "r"}
				for _, peer := range slices.Sorted(slices.Values(some(t, "sessions of "+name, names))) {
					r := drawReach(t, peer)
					said.Open = append(said.Open, r)
					takes := r.IPv4
					if !address.Is4() {
						takes = r.IPv6
					}
					reaches = reaches || takes && due[peer] && !peers[peer].ofNodes
				}
				fsmtest.Tell(t, s, &fsm.ReportSessions{Members: []fsm.MemberSessions{said}})
			}
			if rapid.Bool().Draw(t, name+" has written it") {
				fsmtest.Tell(t, s, &fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{{Server: server, Run: "r", Upto: written}}})
				if reaches && anything {
					announcers = append(announcers, name)
				}
			}
		}

		v := s.Read()
		r, _ := fsm.Get[*fsm.Route](v, fsm.TableRoutes, fsm.HostPrefix(address).String())
		want := fsm.HopAcknowledged
		if heard || len(announcers) > 0 {
			want = fsm.HopAnnounced
		}
		if got := v.HopState(r, r.NextHops[0]); got != want {
			t.Fatalf("the hop is %s, want %s", got, want)
		}
		var got []string
		for _, m := range v.Announcers(r, r.NextHops[0]) {
			got = append(got, m.Name)
		}
		if !slices.Equal(got, announcers) {
			t.Fatalf("announced by %v, want %v", got, announcers)
		}
	})
}

func drawReach(t *rapid.T, peer fsm.PeerName) fsm.Reach {
	return fsm.Reach{Peer: peer, IPv4: rapid.Bool().Draw(t, "takes IPv4"), IPv6: rapid.Bool().Draw(t, "takes IPv6")}
}

// sends tells whether a peer is sent an address of a pool by way of n1. Where no advertisement that is about it chooses the node, all count;
// where none is about it, everybody is sent it.
func sends(ads []toldAdvertisement, pool fsm.PoolName, to fsm.PeerName) bool {
	var about, choosing []toldAdvertisement
	for _, ad := range ads {
		if len(ad.pools) == 0 || slices.Contains(ad.pools, pool) {
			about = append(about, ad)
			if ad.only == nil || slices.Contains(ad.only, "n1") {
				choosing = append(choosing, ad)
			}
		}
	}
	if len(choosing) == 0 {
		choosing = about
	}
	for _, ad := range choosing {
		if len(ad.peers) == 0 || slices.Contains(ad.peers, to) {
			return true
		}
	}
	return len(about) == 0
}

// What a node says of its sessions holds until it says something else of them, over its boots, too.
func TestSessionsOfNodesStay(t *testing.T) {
	s := fsm.New()
	open := fsm.Sessions{Told: true, Open: []fsm.Reach{{Peer: "tor", IPv4: true}}}
	fsmtest.Tell(t, s, &fsm.InitGroup{Group: "g", Format: fsm.NewestFormat}, &fsm.PutNode{ID: "n1"}, &fsm.RegisterBoot{Node: "n1", Boot: "b1"},
		&fsm.ReportSpeakers{Marks: []fsm.SpeakerMark{{Node: "n1", Boot: "b1", Speaks: true, Sessions: open}}})
	for _, command := range []fsm.Command{
		&fsm.ReportSpeakers{Marks: []fsm.SpeakerMark{{Node: "n1", Boot: "b1", Speaks: true, Announced: s.Read().Revision()}}},
		&fsm.RegisterBoot{Node: "n1", Boot: "b2"},
		&fsm.ReportSpeakers{Marks: []fsm.SpeakerMark{{Node: "n1", Boot: "b2", Speaks: false}}},
	} {
		fsmtest.Tell(t, s, command)
		if n, _ := fsm.Get[*fsm.Node](s.Read(), fsm.TableNodes, "n1"); !n.Speaking.Sessions.Equal(open) {
			t.Errorf("after %T it has %+v", command, n.Speaking.Sessions)
		}
	}
}
