// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// lookup is where a switch that has some paths, and ones that rank behind these, sends packets to an address: by the longest prefix
// first, then by rank. It tells hops with their attributes; the switch's name is that of its BGPPeer.
func lookup(peer string, to netip.Addr, paths, demoted []bgp.Path) []string {
	longest, front := -1, false
	var out []string
	for rank, of := range [][]bgp.Path{paths, demoted} {
		for _, p := range of {
			sent, ok := p.To(peer)
			if !ok || !p.Prefix.Contains(to) || p.Prefix.Bits() < longest || p.Prefix.Bits() == longest && front && rank == 1 {
				continue
			}
			if p.Prefix.Bits() > longest {
				out = nil
			}
			longest, front = p.Prefix.Bits(), rank == 0
			sent = sent.Normal()
			out = append(out, fmt.Sprint(sent.NextHop, sent.MED, sent.LocalPref, sent.Communities, sent.LargeCommunities, sent.Weight))
		}
	}
	slices.Sort(out)
	return out
}

func hops(ways []string) (out []string) {
	for _, w := range ways {
		hop, _, _ := strings.Cut(w, " ")
		out = append(out, hop)
	}
	return out
}

// serves tells whether a node is a next hop of an address.
func serves(singles []bgp.Path, of netip.Addr, hop string) bool {
	return slices.ContainsFunc(singles, func(p bgp.Path) bool { return p.Prefix.Addr() == of && p.NextHop.String() == hop })
}

// eachWay visits what a test looks at: all addresses, and one beside each end, at a switch that advertisements name and at others.
func eachWay(do func(peer string, to netip.Addr)) {
	for _, peer := range []string{"s1", "s2", "another"} {
		for i := 0; i <= 5; i++ {
			do(peer, vip(i))
		}
	}
}

// apart is what a view has to be announced where nothing stands for anything: single addresses, and for each peer the prefixes beside them.
type apart struct {
	singles []bgp.Path
	beside  map[string][]bgp.Path
}

func apartOf(v *fsm.View) apart {
	a := apart{Paths(v), map[string][]bgp.Path{}}
	for _, peer := range []string{"s1", "s2", "another"} {
		a.beside[peer] = modelSummaries(v, fsm.PeerName(peer))
	}
	return a
}

func (a apart) lookup(peer string, to netip.Addr) []string {
	return lookup(peer, to, slices.Concat(a.singles, a.beside[peer]), nil)
}

// story is a group with two members, one of which may lose touch.
type story struct {
	group
	rollup Rollup
	paths  []bgp.Path // of the member that is in touch
	lost   []bgp.Path // of the other one: what its sessions have
	touch  bool
}

func newStory(t *rapid.T) *story {
	s := &story{group: newGroup(), touch: true}
	s.apply(&fsm.ReportMember{Server: "m2-x", Name: "m2", Format: fsm.NewestFormat, Run: "r"})
	for i := 1; i <= 4; i++ {
		service := fsm.ServiceID(fmt.Sprint("a/", i))
		s.apply(&fsm.PutService{Service: fsm.Service{ID: service}}, &fsm.Allocate{Address: vip(i), Service: service, Pool: "p", SharingKey: "k"})
	}
	for n := 1; n <= 3; n++ {
		node := fsm.NodeID(fmt.Sprint("n", n))
		s.apply(&fsm.PutNode{ID: node, Eligible: true}, &fsm.RegisterBoot{Node: node, Boot: "b1"})
	}
	ad := fsm.Advertisement{Name: "a"}
	ad.Terms.AggregateV4 = rapid.SampledFrom([]uint8{30, 30, 31, 29}).Draw(t, "aggregate")
	s.apply(&fsm.PutAdvertisement{Advertisement: ad})
	return s
}

// calm has all addresses wanted at the same nodes, which acknowledge that, and ends what is on its way out.
func (s *story) calm(t *rapid.T) {
	n := rapid.IntRange(1, 3).Draw(t, "nodes")
	for i := 1; i <= 4; i++ {
		c := &fsm.SetRoute{Prefix: fsm.HostPrefix(vip(i))}
		for n := range n {
			c.Hops = append(c.Hops, fsm.HopSpec{Node: fsm.NodeID(fmt.Sprint("n", n+1)), Address: host(n + 1)})
		}
		s.apply(c)
	}
	s.speak()
	for n := 1; n <= 3; n++ {
		s.apply(&fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: fsm.NodeID(fmt.Sprint("n", n)), Boot: "b1", Upto: s.Read().Revision()}}})
	}
	for _, r := range fsm.List[*fsm.Route](s.Read(), fsm.TableRoutes) {
		for _, h := range r.NextHops {
			if h.Withdrawing {
				s.apply(&fsm.FinishWithdrawal{Prefix: r.Prefix, Node: h.Node(), Address: h.Address(), Since: h.Since, Excused: []fsm.ServerID{"m2-x"}, NodeExcused: true})
			}
		}
	}
}

// speak has the member that may lose touch announce what the record says, and report so, unless it has lost it.
func (s *story) speak() {
	if !s.touch {
		return
	}
	var r Rollup
	v := s.Read()
	announced, _, _ := r.Follow(v)
	s.lost = slices.Collect(announced.All())
	s.apply(&fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{{Server: "m2-x", Run: "r", Upto: v.Revision(), Withdrawn: v.Revision()}}})
}

// speakAs has a node that peers itself announce its share, and report so.
func (s *story) speakAs(id fsm.NodeID) (paths []bgp.Path) {
	var shares Shares
	v := s.Read()
	shares.Follow(v)
	n, ok := fsm.Get[*fsm.Node](v, fsm.TableNodes, string(id))
	if ok && n.Boot != "" {
		s.apply(&fsm.ReportSpeakers{Marks: []fsm.SpeakerMark{{Node: id, Boot: n.Boot, Speaks: true, Announced: v.Revision(), Withdrawn: v.Revision()}}})
	}
	return slices.Collect(shares.Of(id).Routes(bgp.Routes{}).Paths.All())
}

// move is one thing that happens.
func (s *story) move(t *rapid.T) {
	switch rapid.IntRange(0, 5).Draw(t, "move") {
	case 0, 1:
		s.calm(t)
	case 2:
		s.touch = !s.touch
	default:
		c := drawCommand(t, s.group)
		if f, ok := c.(*fsm.FinishWithdrawal); ok {
			s.speak()
			f.Excused, f.NodeExcused = []fsm.ServerID{"m2-x"}, true
		}
		s.apply(c)
	}
	s.speak()
}

// Whatever happens, each packet goes where the single addresses would lead it: with all aggregates at a switch, at every step from
// one view to the next, and beside what a member still announces that lost touch.
func TestPropertyAggregatesChangeNoWay(t *testing.T) {
	drawn, shadows, beside := 0, 0, 0
	missing := func() string {
		if drawn == 0 || shadows == 0 || beside == 0 {
			return fmt.Sprintf("%d aggregates, %d summaries and %d packets that a lost member would lead elsewhere: too few to show anything", drawn, beside, shadows)
		}
		return ""
	}
	testkit.CheckUntil(t, missing, func(t *rapid.T) {
		s := newStory(t)
		before := apart{}
		for range rapid.IntRange(1, 25).Draw(t, "views") {
			s.move(t)
			v := s.Read()
			singles := Paths(v)
			followed, touched, whole := s.rollup.Follow(v)
			var fresh Rollup
			if want, _, _ := fresh.Follow(v); !followed.Equal(want) {
				t.Fatalf("paths\n%+v\nwant\n%+v", followed, want)
			}
			paths := slices.Collect(followed.All())
			after := apartOf(v)
			if s.rollup.Stale(v) || !s.rollup.Singles().Equal(bgp.NewPaths(singles...)) {
				t.Fatal("it is not of the view that it followed")
			}
			was, is := perPrefix(s.paths), perPrefix(paths)
			for _, p := range slices.Concat(s.paths, paths) {
				if !whole && !slices.EqualFunc(was[p.Prefix], is[p.Prefix], bgp.Path.Equal) && !slices.Contains(touched, p.Prefix) {
					t.Fatalf("%s changed from %v to %v, and was not named", p.Prefix, was[p.Prefix], is[p.Prefix])
				}
				if !p.Prefix.IsSingleIP() {
					drawn++
				}
			}
			beside += len(after.beside["s1"])
			eachWay(func(peer string, to netip.Addr) {
				have, want := lookup(peer, to, paths, nil), after.lookup(peer, to)
				if !slices.Equal(have, want) {
					t.Fatalf("packets to %s at %s go to %v, and singly to %v, by\n%v", to, peer, have, want, paths)
				}
				want = lookup(peer, to, singles, nil)
				for _, hop := range hops(lookup(peer, to, paths, s.lost)) {
					if len(want) > 0 && !serves(singles, to, hop) {
						t.Fatalf("packets to %s at %s go to %s, which does not serve it, by\n%v\nbeside\n%v", to, peer, hop, paths, s.lost)
					}
				}
				for _, hop := range hops(lookup(peer, to, s.lost, nil)) {
					if len(want) > 0 && !serves(singles, to, hop) {
						shadows++
					}
				}
			})
			walk(t, s.paths, paths, before, after)
			s.paths, before = paths, after
		}
	})
}

// walk takes the steps from some paths to others one by one. An address that was announced and is has a way at each of them, to a
// node that it was announced by, or is.
func walk(t *rapid.T, from, upto []bgp.Path, before, after apart) {
	normal, err := bgp.Desired{Paths: bgp.NewPaths(from...)}.Normal(65000)
	if err != nil {
		t.Fatal(err)
	}
	table := slices.Collect(normal.Paths.All())
	steps, err := bgp.Plan(65000, bgp.Desired{Paths: bgp.NewPaths(upto...)}, bgp.Observed{Paths: table})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		table = slices.DeleteFunc(slices.Clone(table), func(p bgp.Path) bool { return p.Prefix == step.Path.Prefix && p.PathID == step.Path.PathID })
		if step.Action == bgp.AddPath {
			table = append(table, step.Path)
		}
		eachWay(func(peer string, to netip.Addr) {
			was, is := hops(before.lookup(peer, to)), hops(after.lookup(peer, to))
			now := hops(lookup(peer, to, table, nil))
			if len(was) > 0 && len(is) > 0 && len(now) == 0 {
				t.Fatalf("no way to %s at %s after %v, from\n%v\nto\n%v", to, peer, step, from, upto)
			}
			for _, hop := range now {
				if !slices.Contains(was, hop) && !slices.Contains(is, hop) {
					t.Fatalf("packets to %s at %s go to %s after %v, from\n%v\nto\n%v", to, peer, hop, step, from, upto)
				}
			}
		})
	}
}

// A pool that is used in part has the prefixes of just those of its blocks that are used whole: of each other one some address would
// draw traffic that nobody serves. What is no part of such a block is announced address by address.
func TestPropertyPoolThatIsUsedInPartHasPrefixesOfItsFullBlocks(t *testing.T) {
	full, holes := 0, 0
	testkit.Check(t, func(t *rapid.T) {
		g := newGroup()
		g.apply(&fsm.PutNode{ID: "n1", Eligible: true}, &fsm.RegisterBoot{Node: "n1", Boot: "b"})
		base := netip.MustParseAddr("198.51.100.16")
		bits := rapid.IntRange(28, 31).Draw(t, "bits")
		ad := fsm.Advertisement{Name: "a", Pools: []fsm.PoolName{"p"}}
		ad.Terms.AggregateV4 = uint8(bits)
		g.apply(&fsm.PutAdvertisement{Advertisement: ad})
		used := [16]bool{}
		for i, a := 0, base; i < 16; i, a = i+1, a.Next() {
			if used[i] = rapid.IntRange(0, 7).Draw(t, "used") > 0; !used[i] {
				continue
			}
			id := fsm.ServiceID(fmt.Sprint("a/", i))
			g.apply(&fsm.PutService{Service: fsm.Service{ID: id}}, &fsm.Allocate{Address: a, Service: id, Pool: "p"},
				&fsm.SetRoute{Prefix: fsm.HostPrefix(a), Hops: []fsm.HopSpec{{Node: "n1", Address: host(1)}}})
		}
		g.apply(&fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: "n1", Boot: "b", Upto: g.Read().Revision()}}})

		var want []string
		size := 1 << (32 - bits)
		for from := 0; from < 16; from += size {
			n := 0
			for i := from; i < from+size; i++ {
				if used[i] {
					n++
				}
			}
			if n == size {
				full++
				want = append(want, fmt.Sprintf("198.51.100.%d/%d", 16+from, bits))
				continue
			}
			for i := from; i < from+size; i++ {
				if used[i] {
					holes++
					want = append(want, fmt.Sprintf("198.51.100.%d/32", 16+i))
				}
			}
		}
		var r Rollup
		paths, _, _ := r.Follow(g.Read())
		var have []string
		for p := range paths.All() {
			have = append(have, p.Prefix.String())
		}
		slices.Sort(have)
		slices.Sort(want)
		if !slices.Equal(have, want) {
			t.Fatalf("announced are %v, want %v", have, want)
		}
	})
	if full == 0 || holes == 0 {
		t.Errorf("%d full blocks and %d addresses in others: too few to show anything", full, holes)
	}
}
