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

// plainly is what a node announces, and what is on its way out, read off the record without any haste.
func plainly(v *fsm.View, id fsm.NodeID) (paths []bgp.Path, gone map[netip.Prefix]fsm.Revision) {
	gone = map[netip.Prefix]fsm.Revision{}
	node, _ := fsm.Get[*fsm.Node](v, fsm.TableNodes, string(id))
	for _, r := range fsm.List[*fsm.Route](v, fsm.TableRoutes) {
		found := false
		for _, h := range r.NextHops {
			switch {
			case h.Node() == id && h.Withdrawing:
				gone[r.Prefix] = h.Since
			case h.Node() == id && !found && fsm.Announceable(r.Prefix, h, node, v.Group().Settings):
				found = true
				all := Paths(v)
				paths = append(paths, all[slices.IndexFunc(all, func(p bgp.Path) bool { return p.Prefix == r.Prefix && p.NextHop == h.Address() })])
			}
		}
	}
	slices.SortFunc(paths, bgp.Path.Compare)
	return paths, gone
}

// Whatever happens, a node's share is the paths that lead to it, to the peers that it is chosen for; and it is told anew whenever
// that is another one, or a hop of it is newly withdrawn.
func TestPropertySharesAreThePathsOfEachNode(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		g := newGroup()
		for i := 1; i <= 4; i++ {
			service := fsm.ServiceID(fmt.Sprint("a/", i))
			g.apply(&fsm.PutService{Service: fsm.Service{ID: service}}, &fsm.Allocate{Address: vip(i), Service: service, Pool: "p", SharingKey: "k"})
		}
		for n := 1; n <= 3; n++ {
			node := fsm.NodeID(fmt.Sprint("n", n))
			g.apply(&fsm.PutNode{ID: node, Eligible: true}, &fsm.RegisterBoot{Node: node, Boot: "b1"})
		}
		type told struct {
			seq   uint64
			paths []bgp.Path
			peers []bgp.Peer
			gone  map[netip.Prefix]fsm.Revision
		}
		var s Shares
		before := map[fsm.NodeID]told{}
		for range rapid.IntRange(1, 40).Draw(t, "views") {
			for range rapid.IntRange(0, 2).Draw(t, "commands") {
				c := drawCommand(t, g)
				if rapid.IntRange(0, 6).Draw(t, "peer") == 0 {
					c = &fsm.PutPeer{Peer: fsm.Peer{
						Name: "tor", Address: host(254), ASN: 65001, IPv4: true,
						Nodes: fsm.PeerNodes{Speak: rapid.Bool().Draw(t, "speak"), Only: rapid.Bool().Draw(t, "only"), Names: []fsm.NodeID{"n1"}},
					}}
				}
				g.apply(c)
			}
			v := g.Read()
			s.Follow(v)
			for _, id := range []fsm.NodeID{"n1", "n2", "n3"} {
				now := told{seq: s.Seq(id)}
				now.paths, now.gone = plainly(v, id)
				for _, p := range fsm.List[*fsm.Peer](v, fsm.TablePeers) {
					if p.Nodes.Speak && (!p.Nodes.Only || id == "n1") {
						now.peers = append(now.peers, peerOf(p))
					}
				}
				share := s.Of(id)
				if !slices.EqualFunc(share.Peers, now.peers, bgp.Peer.Equal) {
					t.Fatalf("%s has the peers %v, want %v", id, share.Peers, now.peers)
				}
				if len(now.peers) > 0 && !slices.EqualFunc(share.Paths, now.paths, bgp.Path.Equal) || len(now.peers) == 0 && len(share.Paths) > 0 {
					t.Fatalf("%s announces\n%v\nwant\n%v\nto %d peers", id, share.Paths, now.paths, len(now.peers))
				}
				same := slices.EqualFunc(before[id].paths, now.paths, bgp.Path.Equal) && slices.EqualFunc(before[id].peers, now.peers, bgp.Peer.Equal)
				for p, since := range now.gone {
					same = same && before[id].gone[p] == since
				}
				if !same && before[id].seq == now.seq {
					t.Fatalf("%s is not told: %+v became %+v", id, before[id], now)
				}
				before[id] = now
			}
		}
	})
}

// What happens on one node is no news to another one.
func TestOneNodesChangeIsNotToldToOthers(t *testing.T) {
	g := newGroup()
	for i := 1; i <= 2; i++ {
		service, node := fsm.ServiceID(fmt.Sprint("a/", i)), fsm.NodeID(fmt.Sprint("n", i))
		g.apply(&fsm.PutService{Service: fsm.Service{ID: service}}, &fsm.Allocate{Address: vip(i), Service: service, Pool: "p"},
			&fsm.PutNode{ID: node, Eligible: true}, &fsm.RegisterBoot{Node: node, Boot: "b"})
	}
	g.apply(&fsm.SetRoute{Prefix: fsm.HostPrefix(vip(1)), Hops: []fsm.HopSpec{{Node: "n1", Address: host(1)}}})
	var s Shares
	s.Follow(g.Read())
	one, two := s.Seq("n1"), s.Seq("n2")
	g.apply(&fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: "n1", Boot: "b", Upto: g.Read().Revision()}}})
	s.Follow(g.Read())
	if s.Seq("n1") == one || s.Seq("n2") != two {
		t.Errorf("n1 was told %d, then %d; n2 %d, then %d", one, s.Seq("n1"), two, s.Seq("n2"))
	}
}

// Members have no session with a peer of nodes.
func TestMembersLeavePeersOfNodesToThem(t *testing.T) {
	g := newGroup()
	g.apply(&fsm.PutPeer{Peer: fsm.Peer{Name: "tor", Address: host(254), ASN: 65001, IPv4: true, Nodes: fsm.PeerNodes{Speak: true}}})
	g.apply(&fsm.PutPeer{Peer: fsm.Peer{Name: "spine", Address: host(253), ASN: 65001, IPv4: true}})
	peers, _ := Peers(g.Read(), nil)
	if len(peers) != 1 || peers[0].Name != "spine" {
		t.Errorf("members peer with %v", peers)
	}
	g.apply(&fsm.PutPeer{Peer: fsm.Peer{
		Name: "signed", Address: host(252), ASN: 65001, IPv4: true, Nodes: fsm.PeerNodes{Speak: true}, PasswordFrom: "Secret/a/b",
	}})
	g.apply(&fsm.PutPeer{Peer: fsm.Peer{
		Name: "leaf", Interface: "eth1", ASN: 65001, IPv4: true, IPv6: true, Nodes: fsm.PeerNodes{Speak: true, Only: true, Names: []fsm.NodeID{"n1"}},
	}})
	if peers, _ := Peers(g.Read(), nil); len(peers) != 1 {
		t.Errorf("members peer with %v", peers)
	}
	peers, signed, unnumbered := NodePeers(g.Read(), "n1")
	if len(peers) != 1 || peers[0].Name != "tor" || len(signed) != 1 || signed[0].Name != "signed" || signed[0].PasswordFrom != "Secret/a/b" ||
		len(unnumbered) != 1 || unnumbered[0].Name != "leaf" || unnumbered[0].Interface != "eth1" || len(unnumbered[0].Families) != 2 {
		t.Errorf("n1 peers with %v, signed with %v, by interface with %v", peers, signed, unnumbered)
	}
	if _, _, unnumbered := NodePeers(g.Read(), "n2"); len(unnumbered) > 0 {
		t.Errorf("n2 peers with %v", unnumbered)
	}
}

// A node that has peers by interface alone has something to announce to.
func TestNodesAnnounceToPeersByInterfaceAlone(t *testing.T) {
	g := newGroup()
	g.apply(&fsm.PutService{Service: fsm.Service{ID: "a/1"}}, &fsm.Allocate{Address: vip(1), Service: "a/1", Pool: "p"},
		&fsm.PutNode{ID: "n1", Eligible: true}, &fsm.RegisterBoot{Node: "n1", Boot: "b"},
		&fsm.SetRoute{Prefix: fsm.HostPrefix(vip(1)), Hops: []fsm.HopSpec{{Node: "n1", Address: host(1)}}},
		&fsm.PutPeer{Peer: fsm.Peer{Name: "leaf", Interface: "eth1", ASN: 65001, Nodes: fsm.PeerNodes{Speak: true}}})
	g.apply(&fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: "n1", Boot: "b", Upto: g.Read().Revision()}}})
	var s Shares
	s.Follow(g.Read())
	if of := s.Of("n1"); len(of.Unnumbered) != 1 || len(of.Paths) != 1 {
		t.Errorf("n1 announces %v to %v", of.Paths, of.Unnumbered)
	}
}

// Nodes put an aggregate in the place of their addresses all together: at a switch that all of them peer with, and at one of each,
// packets go where the single addresses would lead them, also beside what a node still announces that lost touch. A node whose share is another one is told so.
func TestPropertyNodesAggregateTogether(t *testing.T) {
	aggregates, shadows := 0, 0
	nodes := []fsm.NodeID{"n1", "n2", "n3"}
	testkit.Check(t, func(t *rapid.T) {
		s := newStory(t)
		s.apply(&fsm.PutPeer{Peer: fsm.Peer{Name: "tor", Address: host(254), ASN: 65001, IPv4: true, Nodes: fsm.PeerNodes{Speak: true}}})
		var shares Shares
		seq, told := map[fsm.NodeID]uint64{}, map[fsm.NodeID][]bgp.Path{}
		touch, lost := true, []bgp.Path(nil) // whether n2 has touch, and what its sessions have
		for range rapid.IntRange(1, 25).Draw(t, "views") {
			s.move(t)
			if rapid.IntRange(0, 4).Draw(t, "n2") == 0 {
				touch = !touch
			}
			if touch {
				lost = s.speakAs("n2")
			}
			v := s.Read()
			if _, there := fsm.Get[*fsm.Node](v, fsm.TableNodes, "n2"); !there {
				lost = nil // who removes it says that its sessions are over
			}
			shares.Follow(v)
			var all, others, plain []bgp.Path // plain: those of others without summaries
			for _, id := range nodes {
				of := shares.Of(id)
				paths := slices.Collect(of.Routes(bgp.Routes{}).Paths.All())
				eachWay(func(peer string, to netip.Addr) {
					if have, want := lookup(peer, to, paths, nil), lookup(peer, to, slices.Concat(of.Paths, of.Summaries), nil); !slices.Equal(have, want) {
						t.Fatalf("packets to %s at %s's switch go to %v, and singly to %v, by\n%v", to, id, have, want, paths)
					}
				})
				if seq[id] == shares.Seq(id) && !slices.EqualFunc(paths, told[id], bgp.Path.Equal) {
					t.Fatalf("%s is not told: %v became %v", id, told[id], paths)
				}
				seq[id], told[id] = shares.Seq(id), paths
				all = append(all, paths...)
				if id != "n2" || touch {
					others = append(others, paths...)
					of.Summaries = nil
					plain = slices.AppendSeq(plain, of.Routes(bgp.Routes{}).Paths.All())
				}
				aggregates += len(of.Aggregates)
			}
			eachWay(func(peer string, to netip.Addr) {
				have, want := slices.Compact(lookup(peer, to, all, nil)), apartOf(v).lookup(peer, to)
				if !slices.Equal(have, want) {
					t.Fatalf("packets to %s at %s go to %v, and singly to %v, by\n%v", to, peer, have, want, all)
				}
				want = lookup(peer, to, Paths(v), nil)
				for _, hop := range hops(lookup(peer, to, others, lost)) {
					if len(lookup(peer, to, plain, nil)) > 0 && !serves(Paths(v), to, hop) {
						t.Fatalf("packets to %s at %s go to %s, which does not serve it, by\n%v\nbeside\n%v", to, peer, hop, others, lost)
					}
				}
				for _, hop := range hops(lookup(peer, to, lost, nil)) {
					if len(want) > 0 && !serves(Paths(v), to, hop) {
						shadows++
					}
				}
			})
		}
	})
	if aggregates == 0 || shadows == 0 {
		t.Errorf("%d aggregates and %d packets that a lost node would lead astray: too few to show anything", aggregates, shadows)
	}
}
