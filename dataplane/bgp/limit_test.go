// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

var limited = netip.MustParsePrefix("203.0.113.1/32")

// genWays draws paths of one prefix by different next hops, some of which not all peers are sent.
func genWays() *rapid.Generator[[]Path] {
	return rapid.Custom(func(t *rapid.T) (out []Path) {
		for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(1, 12), 0, 9, rapid.ID).Draw(t, "hops") {
			p := Path{Prefix: limited, NextHop: netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), MED: rapid.SampledFrom([]uint32{0, 0, 1}).Draw(t, "med")}
			if rapid.IntRange(0, 3).Draw(t, "choosy") == 0 {
				p.Withheld = rapid.Bool().Draw(t, "withheld")
				for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 2, rapid.ID).Draw(t, "peers") {
					p.Terms = append(p.Terms, Terms{Peer: name, MED: rapid.SampledFrom([]uint32{0, 2}).Draw(t, "their med"), Communities: []Community{7}})
				}
			}
			out = append(out, p.Normal())
		}
		return out
	})
}

// genLimits draws three peers, and for how many paths of a prefix each is.
func genLimits() *rapid.Generator[[]Peer] {
	return rapid.Custom(func(t *rapid.T) (out []Peer) {
		for i, name := range []string{"a", "b", "c"} {
			out = append(out, Peer{
				Name: name, Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(101 + i)}), RemoteASN: 65001,
				SendMax: rapid.SampledFrom([]uint8{1, 2, 3, 64}).Draw(t, "send max"),
			})
		}
		return out
	})
}

// receive gives what a peer is told of paths, as text.
func receive(name string, paths []Path) (out []string) {
	for _, p := range paths {
		if p, sent := p.To(name); sent {
			out = append(out, fmt.Sprint(p.NextHop, " ", p.MED, p.Communities))
		}
	}
	slices.Sort(out)
	return out
}

// Each peer that can be told several paths is told as many as its limit of those that it would be told, under the same attributes, and none
// that is worse than one that it is not told. Which those are does not depend on the order of paths, and one path more takes the place of
// one at most. A peer that is told the best path alone is told the one that its speaker has for the best.
func TestPropertyPeersAreSentTheBestPathsUpToTheirLimits(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		peers, paths := genLimits().Draw(t, "peers"), genWays().Draw(t, "paths")
		l := limitsOf(peers)
		some := l.of(paths)
		for _, peer := range peers {
			all, got := receive(peer.Name, paths), receive(peer.Name, some)
			if most := int(peer.SendMax); most > 1 && len(got) != min(most, len(all)) || len(all) > 0 && len(got) == 0 {
				t.Fatalf("%s is sent %v of %v, with a limit of %d", peer.Name, got, all, most)
			}
			for _, one := range got {
				if !slices.Contains(all, one) {
					t.Fatalf("%s is sent %s, and would be sent %v", peer.Name, one, all)
				}
			}
			if worst, best := worstOf(peer.Name, some), bestLeftOut(peer.Name, paths, some); best < worst {
				t.Fatalf("%s is sent one of MED %d, and not one of MED %d", peer.Name, worst, best)
			}
		}
		again := l.of(rapid.Permutation(paths).Draw(t, "order"))
		if one, other := NewPaths(some...), NewPaths(again...); !one.Equal(other) {
			t.Fatalf("%v, and in another order %v", one, other)
		}
		if len(paths) > 0 {
			fewer := l.of(paths[1:])
			for _, peer := range peers {
				if lost := without(receive(peer.Name, fewer), receive(peer.Name, some)); peer.SendMax > 1 && len(lost) > 1 {
					t.Fatalf("for %v %s is not sent %v any more", paths[0], peer.Name, lost)
				}
			}
		}
	})
}

func worstOf(name string, paths []Path) (worst uint32) {
	for _, p := range paths {
		if p, sent := p.To(name); sent {
			worst = max(worst, p.MED)
		}
	}
	return worst
}

func bestLeftOut(name string, all, some []Path) uint32 {
	best := uint32(1 << 31)
	for _, p := range all {
		p, sent := p.To(name)
		there := slices.ContainsFunc(some, func(q Path) bool { q, sent := q.To(name); return sent && q.NextHop == p.NextHop })
		if sent && !there {
			best = min(best, p.MED)
		}
	}
	return best
}

func without(list, others []string) (out []string) {
	for _, one := range list {
		if !slices.Contains(others, one) {
			out = append(out, one)
		}
	}
	return out
}

// Of paths that everybody is sent, some are left out for some peers: the one that a speaker has for the best is sent to all of them.
func TestPropertyTheBestPathIsSentToAll(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		peers, paths := genLimits().Draw(t, "peers"), genWays().Draw(t, "paths")
		for i := range paths {
			paths[i].Withheld, paths[i].Terms = false, nil
		}
		list := AssignPathIDs(limitsOf(peers).of(paths))
		if len(list) == 0 {
			return
		}
		best := slices.MinFunc(list, func(a, b Path) int {
			if by := Prefer(a, b); by != 0 {
				return by
			}
			return int(int64(a.PathID) - int64(b.PathID))
		})
		for _, peer := range peers {
			if _, sent := best.To(peer.Name); !sent {
				t.Fatalf("%s is not sent the best path of %v", peer.Name, list)
			}
		}
	})
}

// Whatever paths come and go, a peer that is told several has never more than its limit on the way, and one that has some before and after is
// never without.
func TestPropertyAnExchangeKeepsLimits(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		peers := genLimits().Draw(t, "peers")
		l := limitsOf(peers)
		draw := func(what string) []Path {
			paths := genWays().Draw(t, what)
			for i := range paths {
				paths[i].Withheld, paths[i].Terms = false, nil // who is left out by hand may see a gap: see trade
			}
			return AssignPathIDs(l.of(paths))
		}
		table := draw("before")
		after := draw("after")
		steps := planPaths(nil, NewPaths(after...), table, l)
		before := map[string]bool{}
		for _, p := range peers {
			before[p.Name] = len(receive(p.Name, table)) > 0 && len(receive(p.Name, after)) > 0
		}
		for _, step := range steps {
			table = slices.DeleteFunc(slices.Clone(table), func(p Path) bool { return p.PathID == step.Path.PathID })
			if step.Action == AddPath {
				table = append(table, step.Path)
			}
			for _, p := range peers {
				if n := len(receive(p.Name, table)); p.SendMax > 1 && n > int(p.SendMax) || before[p.Name] && n == 0 {
					t.Fatalf("%s of %s (%d) leaves %s, whose limit is %d, with %d", step.Action, step.Path, step.Path.PathID, p.Name, p.SendMax, n)
				}
			}
		}
		if got, want := NewPaths(table...), NewPaths(after...); !got.Equal(want) {
			t.Fatalf("the steps end with %v, not %v", got, want)
		}
	})
}
