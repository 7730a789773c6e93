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

// group is a record that a test writes to.
type group struct{ *fsm.State }

func newGroup() group {
	g := group{fsm.New()}
	g.apply(&fsm.InitGroup{Group: "g1", Format: fsm.NewestFormat})
	return g
}

func (g group) apply(commands ...fsm.Command) {
	var proposals []fsm.Proposal
	for _, c := range commands {
		proposals = append(proposals, fsm.Proposal{Command: c})
	}
	_, epoch, _ := g.Identity()
	data, err := fsm.EncodeEntry(epoch, proposals)
	if err != nil {
		panic(err) // a test that proposes what cannot be encoded
	}
	g.ApplyEntries([]fsm.LogEntry{{Index: g.Applied() + 1, Term: 1, Data: data}})
}

// vip 1 to vip 4 are all addresses of a prefix of 30 bits.
func vip(i int) netip.Addr  { return netip.AddrFrom4([4]byte{203, 0, 113, byte(i + 3)}) }
func host(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}) }

// drawCommand favours what a few routes on a few nodes go through.
func drawCommand(t *rapid.T, g group) fsm.Command {
	i, n := rapid.IntRange(1, 4).Draw(t, "service"), rapid.IntRange(1, 3).Draw(t, "node")
	service, node := fsm.ServiceID(fmt.Sprint("a/", i)), fsm.NodeID(fmt.Sprint("n", n))
	address := vip(rapid.IntRange(1, 4).Draw(t, "address"))
	boot := fsm.BootID(rapid.SampledFrom([]string{"b1", "b1", "b1", "b1", "b1", "b1", "b1", "b2"}).Draw(t, "boot"))
	switch rapid.IntRange(0, 14).Draw(t, "command") {
	case 0:
		return drawService(t, service)
	case 1, 2:
		return &fsm.Allocate{Address: address, Service: service, Pool: fsm.PoolName(rapid.SampledFrom([]string{"p", "q", ""}).Draw(t, "pool")), SharingKey: "k"}
	case 3:
		return &fsm.ReleaseAllocation{Address: address, Service: service}
	case 4:
		return &fsm.FreeAllocation{Address: address, Service: service}
	case 5, 6, 7:
		c := &fsm.SetRoute{Prefix: fsm.HostPrefix(address)}
		for n := range 3 {
			if rapid.Bool().Draw(t, "hop") {
				c.Hops = append(c.Hops, fsm.HopSpec{Node: fsm.NodeID(fmt.Sprint("n", n+1)), Address: host(rapid.IntRange(1, 2).Draw(t, "at"))})
			}
		}
		return c
	case 8:
		for _, r := range fsm.List[*fsm.Route](g.Read(), fsm.TableRoutes) {
			for _, h := range r.NextHops {
				if h.Withdrawing {
					return &fsm.FinishWithdrawal{Prefix: r.Prefix, Node: h.Node(), Address: h.Address(), Since: h.Since}
				}
			}
		}
		return &fsm.PutNode{ID: node, Eligible: true}
	case 9:
		return &fsm.RegisterBoot{Node: node, Boot: boot}
	case 10, 11:
		m := fsm.AppliedMark{Node: node, Boot: boot, Upto: g.Read().Revision()}
		if rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
			m.Failed = []netip.Prefix{fsm.HostPrefix(address)}
		}
		return &fsm.Acknowledge{Marks: []fsm.AppliedMark{m}}
	case 12:
		return drawAdvertisement(t)
	case 13: // K40: nothing but weights changes
		if old, ok := fsm.Get[*fsm.Service](g.Read(), fsm.TableServices, string(service)); ok {
			s := *old
			s.Endpoints = slices.Clone(old.Endpoints)
			for i := range s.Endpoints {
				s.Endpoints[i].Weight, s.Endpoints[i].Quiesced = rapid.Uint16Range(0, 3).Draw(t, "weight"), rapid.IntRange(0, 3).Draw(t, "quiesced") == 0
			}
			return &fsm.PutService{Service: s}
		}
	}
	return rapid.SampledFrom([]fsm.Command{
		&fsm.DeleteAdvertisement{Name: "a"}, &fsm.DeleteNode{ID: node}, &fsm.PutNode{ID: node},
		&fsm.PutSettings{Settings: fsm.Settings{Unsteered: true}}, &fsm.PutSettings{},
	}).Draw(t, "rare")
}

func perPrefix(paths []bgp.Path) map[netip.Prefix][]bgp.Path {
	out := map[netip.Prefix][]bgp.Path{}
	for _, p := range paths {
		out[p.Prefix] = append(out[p.Prefix], p)
	}
	return out
}

func TestPropertyFollowerHasThePathsOfTheRecord(t *testing.T) {
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
		for i := 1; i <= 4; i++ {
			g.apply(&fsm.SetRoute{Prefix: fsm.HostPrefix(vip(i)), Hops: []fsm.HopSpec{{Node: "n1", Address: host(1)}, {Node: "n2", Address: host(2)}}})
		}
		g.apply(&fsm.Acknowledge{Marks: []fsm.AppliedMark{{Node: "n1", Boot: "b1", Upto: g.Read().Revision()}}})
		if rapid.Bool().Draw(t, "advertised") {
			weighted := rapid.Bool().Draw(t, "weighted")
			g.apply(&fsm.PutAdvertisement{Advertisement: fsm.Advertisement{
				Name: "a", Pools: []fsm.PoolName{"p"}, Communities: []uint32{1}, Terms: fsm.AdvertisementTerms{Weighted: weighted},
			}})
		}
		var f Follower
		before := map[netip.Prefix][]bgp.Path{}
		for range rapid.IntRange(1, 60).Draw(t, "views") {
			for range rapid.IntRange(0, 2).Draw(t, "commands") {
				g.apply(drawCommand(t, g))
			}
			paths, touched, whole := f.Follow(g.Read())
			if want := Paths(g.Read()); !paths.Equal(bgp.NewPaths(want...)) {
				t.Fatalf("paths\n%+v\nwant\n%+v", paths, want)
			}
			now := perPrefix(slices.Collect(paths.All()))
			for i := 1; i <= 4; i++ {
				p := fsm.HostPrefix(vip(i))
				if !whole && !slices.EqualFunc(before[p], now[p], bgp.Path.Equal) && !slices.Contains(touched, p) {
					t.Fatalf("%s changed from %v to %v, and was not named", p, before[p], now[p])
				}
			}
			before = now
		}
	})
}

// One endpoint among 5,000 Services with two next hops each.
func BenchmarkFollowOneChange(b *testing.B) {
	g := newGroup()
	g.apply(&fsm.PutSettings{Settings: fsm.Settings{Unsteered: true}})
	hops := func(i int) []fsm.HopSpec {
		return []fsm.HopSpec{{Node: "n1", Address: host(1 + i%2)}, {Node: "n2", Address: host(3)}}
	}
	prefix := func(i int) netip.Prefix {
		return fsm.HostPrefix(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
	}
	for i := range 5000 {
		service := fsm.ServiceID(fmt.Sprint("a/", i))
		g.apply(&fsm.PutService{Service: fsm.Service{ID: service}}, &fsm.Allocate{Address: prefix(i).Addr(), Service: service},
			&fsm.SetRoute{Prefix: prefix(i), Hops: hops(i)})
	}
	var f Follower
	f.Follow(g.Read())
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		g.apply(&fsm.SetRoute{Prefix: prefix(2500), Hops: hops(i)})
		b.StartTimer()
		f.Follow(g.Read())
	}
}
