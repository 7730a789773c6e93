// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

func subset[T any](t *rapid.T, what string, of ...T) (out []T) {
	for _, one := range of {
		if rapid.Bool().Draw(t, what) {
			out = append(out, one)
		}
	}
	return out
}

func drawAdvertisement(t *rapid.T) *fsm.PutAdvertisement {
	return &fsm.PutAdvertisement{Advertisement: fsm.Advertisement{
		Name:        fsm.AdvertisementName(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")),
		Pools:       subset[fsm.PoolName](t, "pool", "p", "q"),
		Peers:       subset[fsm.PeerName](t, "peer", "s1", "s2"),
		Communities: subset[uint32](t, "community", 1, 2),
		LocalPref:   rapid.SampledFrom([]uint32{0, bgp.DemotedLocalPref, 200}).Draw(t, "preference"),
		Terms: fsm.AdvertisementTerms{
			MED:              rapid.Uint32Range(0, 3).Draw(t, "med"),
			LargeCommunities: subset(t, "large", fsm.LargeCommunity{Global: 1}, fsm.LargeCommunity{Global: 2}),
			OnlyNodes:        rapid.Bool().Draw(t, "only nodes"),
			Nodes:            subset[fsm.NodeID](t, "node", "n1", "n2"),
			OnlyServices:     rapid.Bool().Draw(t, "only services"),
			Weighted:         rapid.Bool().Draw(t, "weighted"),
			AggregateV4:      rapid.SampledFrom([]uint8{0, 30, 31}).Draw(t, "aggregate"),
			Fallback:         rapid.IntRange(0, 2).Draw(t, "fallback") == 0,
		},
	}}
}

// drawService draws a Service that some advertisements choose.
func drawService(t *rapid.T, id fsm.ServiceID) *fsm.PutService {
	s := fsm.Service{ID: id, Rare: &fsm.Rare{Advertisements: subset[fsm.AdvertisementName](t, "chosen by", "a", "b", "c")}}
	for i := range rapid.IntRange(0, 3).Draw(t, "endpoints") {
		s.Endpoints = append(s.Endpoints, fsm.Endpoint{
			Address: host(100 + i), Node: fsm.NodeID(fmt.Sprint("n", rapid.IntRange(1, 3).Draw(t, "on"))), Ready: rapid.Bool().Draw(t, "ready"),
			Weight: rapid.Uint16Range(0, 3).Draw(t, "weight"), Quiesced: rapid.IntRange(0, 3).Draw(t, "quiesced") == 0,
		})
	}
	return &fsm.PutService{Service: s}
}

// modelWeight is how much a next hop weighs.
func modelWeight(ads []*fsm.Advertisement, owners []modelOwner, ready map[fsm.NodeID]uint32, node fsm.NodeID) uint32 {
	by, choosing := 0, 0 // advertisements about the address that say so: of all, and of those that choose the node
	any := false
	for _, ad := range modelCounting(ads, owners) {
		if !modelAbout(ad, owners) {
			continue
		}
		chooses := !ad.Terms.OnlyNodes || slices.Contains(ad.Terms.Nodes, node)
		any = any || chooses
		if ad.Terms.Weighted {
			by++
			if chooses {
				choosing++
			}
		}
	}
	switch {
	case any && choosing == 0, !any && by == 0:
		return 0
	}
	return max(1, ready[node])
}

// modelOwner is a Service that has the address: of which pool, and which advertisements choose it.
type modelOwner struct {
	pool   fsm.PoolName
	chosen []fsm.AdvertisementName
}

// modelAbout asks it of each owner by itself: one is enough.
func modelAbout(ad *fsm.Advertisement, owners []modelOwner) bool {
	for _, o := range owners {
		if (len(ad.Pools) == 0 || slices.Contains(ad.Pools, o.pool)) && (!ad.Terms.OnlyServices || slices.Contains(o.chosen, ad.Name)) {
			return true
		}
	}
	return false
}

// modelCounting leaves out of the advertisements those that are about an address for want of another one that is.
func modelCounting(ads []*fsm.Advertisement, owners []modelOwner) (out []*fsm.Advertisement) {
	proper := false
	for _, ad := range ads {
		proper = proper || modelAbout(ad, owners) && !ad.Terms.Fallback
	}
	for _, ad := range ads {
		if !proper || !ad.Terms.Fallback {
			out = append(out, ad)
		}
	}
	return out
}

// model is what one peer is to be told of one next hop, in words; empty if nothing. It asks of each advertisement by itself.
func model(ads []*fsm.Advertisement, owners []modelOwner, node fsm.NodeID, peer fsm.PeerName) string {
	isAbout := func(ad *fsm.Advertisement) bool { return modelAbout(ad, owners) }
	hasNode := func(ad *fsm.Advertisement) bool { return !ad.Terms.OnlyNodes || slices.Contains(ad.Terms.Nodes, node) }
	someNode, some, sent := false, false, false
	ads = modelCounting(ads, owners)
	for _, ad := range ads {
		some = some || isAbout(ad)
		someNode = someNode || isAbout(ad) && hasNode(ad)
	}
	var say []*fsm.Advertisement // of those that go to the peer, the ones with the longest prefix
	for _, ad := range ads {
		if !isAbout(ad) || someNode && !hasNode(ad) || len(ad.Peers) > 0 && !slices.Contains(ad.Peers, peer) {
			continue
		}
		sent = true
		if len(say) > 0 && bitsOf(ad) > bitsOf(say[0]) {
			say = nil
		}
		if len(say) == 0 || bitsOf(ad) == bitsOf(say[0]) {
			say = append(say, ad)
		}
	}
	communities, large := map[uint32]bool{}, map[uint32]bool{}
	pref, med := uint32(0), uint32(0)
	for _, ad := range say {
		for _, c := range ad.Communities {
			communities[c] = true
		}
		for _, c := range ad.Terms.LargeCommunities {
			large[c.Global] = true
		}
		if ad.LocalPref != 0 {
			pref = max(pref, ad.LocalPref, 2)
		}
		if m := ad.Terms.MED; m > 0 && (med == 0 || m < med) {
			med = m
		}
	}
	if some && !sent {
		return ""
	}
	return fmt.Sprint(communities[1], communities[2], large[1], large[2], pref, med)
}

func bitsOf(ad *fsm.Advertisement) uint8 {
	if ad.Terms.AggregateV4 == 0 {
		return 32
	}
	return ad.Terms.AggregateV4
}

// modelSummaries are the paths of prefixes that a peer is to be sent beside those of their addresses, off the record: of each length that
// an advertisement wants beside another one that wants a longer prefix, by the nodes that it has.
func modelSummaries(v *fsm.View, peer fsm.PeerName) (out []bgp.Path) {
	type way struct {
		block netip.Prefix
		hop   netip.Addr
	}
	under := map[way]map[*fsm.Advertisement]bool{}
	for _, r := range fsm.List[*fsm.Route](v, fsm.TableRoutes) {
		var owners []modelOwner
		for _, al := range v.Owners(r.Prefix.Addr().String()) {
			s, ok := fsm.Get[*fsm.Service](v, fsm.TableServices, string(al.Service))
			if !ok {
				s = &fsm.Service{}
			}
			owners = append(owners, modelOwner{al.Pool(), s.Advertisements()})
		}
		for _, h := range r.NextHops {
			node, _ := fsm.Get[*fsm.Node](v, fsm.TableNodes, string(h.Node()))
			if !fsm.Announceable(r.Prefix, h, node, v.Group().Settings) {
				continue
			}
			var about, has, sent []*fsm.Advertisement
			for _, ad := range modelCounting(fsm.List[*fsm.Advertisement](v, fsm.TableAdvertisements), owners) {
				if !modelAbout(ad, owners) {
					continue
				}
				about = append(about, ad)
				if !ad.Terms.OnlyNodes || slices.Contains(ad.Terms.Nodes, h.Node()) {
					has = append(has, ad)
				}
			}
			if len(has) == 0 {
				has = about
			}
			most := uint8(0)
			for _, ad := range has {
				if len(ad.Peers) == 0 || slices.Contains(ad.Peers, peer) {
					sent, most = append(sent, ad), max(most, bitsOf(ad))
				}
			}
			for _, ad := range sent {
				if at := (way{netip.PrefixFrom(r.Prefix.Addr(), int(bitsOf(ad))).Masked(), h.Address()}); bitsOf(ad) < most {
					if under[at] == nil {
						under[at] = map[*fsm.Advertisement]bool{}
					}
					under[at][ad] = true
				}
			}
		}
	}
	for at, ads := range under {
		p := bgp.Path{Prefix: at.block, NextHop: at.hop}
		for ad := range ads {
			for _, c := range ad.Communities {
				p.Communities = append(p.Communities, bgp.Community(c))
			}
			for _, c := range ad.Terms.LargeCommunities {
				p.LargeCommunities = append(p.LargeCommunities, bgp.LargeCommunity(c))
			}
			if ad.LocalPref != 0 {
				p.LocalPref = max(p.LocalPref, ad.LocalPref, 2)
			}
			if m := ad.Terms.MED; m > 0 && (p.MED == 0 || m < p.MED) {
				p.MED = m
			}
		}
		out = append(out, p)
	}
	return out
}

func told(p bgp.Path, peer string) string {
	p, sent := p.To(peer)
	if !sent {
		return ""
	}
	has := func(c uint32) bool { return slices.Contains(p.Communities, bgp.Community(c)) }
	hasLarge := func(c uint32) bool { return slices.Contains(p.LargeCommunities, bgp.LargeCommunity{Global: c}) }
	return fmt.Sprint(has(1), has(2), hasLarge(1), hasLarge(2), p.LocalPref, p.MED)
}

func TestPropertyEachPeerIsToldWhatAdvertisementsSay(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		g := newGroup()
		g.apply(&fsm.PutSettings{Settings: fsm.Settings{Unsteered: true}},
			&fsm.PutNode{ID: "n1", Eligible: true}, &fsm.PutNode{ID: "n2", Eligible: true})
		ready := map[fsm.NodeID]uint32{}
		var owners []modelOwner
		for i := range rapid.IntRange(1, 2).Draw(t, "services") {
			put := drawService(t, fsm.ServiceID(fmt.Sprint("a/", i)))
			pool := rapid.SampledFrom([]fsm.PoolName{"p", "p", "q", ""}).Draw(t, "pool") // none: named in spec.externalIPs
			g.apply(put, &fsm.Allocate{Address: vip(1), Service: put.Service.ID, Pool: pool, SharingKey: "k"})
			owners = append(owners, modelOwner{pool, put.Service.Advertisements()})
			for _, e := range put.Service.Endpoints {
				if e.Ready {
					switch { // K40
					case e.Quiesced:
					case e.Weight == 0:
						ready[e.Node]++
					default:
						ready[e.Node] += uint32(e.Weight)
					}
				}
			}
		}
		g.apply(&fsm.SetRoute{Prefix: fsm.HostPrefix(vip(1)), Hops: []fsm.HopSpec{{Node: "n1", Address: host(1)}, {Node: "n2", Address: host(2)}}})
		for range rapid.IntRange(0, 3).Draw(t, "advertisements") {
			g.apply(drawAdvertisement(t))
		}
		paths := Paths(g.Read())
		if len(paths) != 2 {
			t.Fatalf("%v", paths)
		}
		ads := fsm.List[*fsm.Advertisement](g.Read(), fsm.TableAdvertisements)
		for i, node := range []fsm.NodeID{"n1", "n2"} {
			for _, peer := range []fsm.PeerName{"s1", "s2", "s3"} {
				if want, have := model(ads, owners, node, peer), told(paths[i], string(peer)); have != want {
					t.Fatalf("%s is told %q of %s, want %q: %+v", peer, have, node, want, paths[i])
				}
			}
			if want := modelWeight(ads, owners, ready, node); paths[i].Weight != want {
				t.Fatalf("%s weighs %d, want %d", node, paths[i].Weight, want)
			}
			if err := paths[i].Validate(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A peer that comes, goes or is changed changes no path: who is named is known by name.
func TestPropertyPeersChangeNoPath(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		g := newGroup()
		g.apply(&fsm.PutSettings{Settings: fsm.Settings{Unsteered: true}}, &fsm.PutService{Service: fsm.Service{ID: "a/1"}},
			&fsm.Allocate{Address: vip(1), Service: "a/1", Pool: "p"}, &fsm.PutNode{ID: "n1", Eligible: true},
			&fsm.SetRoute{Prefix: fsm.HostPrefix(vip(1)), Hops: []fsm.HopSpec{{Node: "n1", Address: host(1)}}}, drawAdvertisement(t))
		before := Paths(g.Read())
		g.apply(&fsm.PutPeer{Peer: fsm.Peer{Name: "s1", Address: host(9), ASN: 1, SendMax: rapid.Uint8().Draw(t, "send max")}})
		if after := Paths(g.Read()); !slices.EqualFunc(before, after, bgp.Path.Equal) {
			t.Fatalf("%v became %v", before, after)
		}
	})
}
