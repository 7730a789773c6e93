// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// What records share says for each of them what it said before, however many have been seen, and what is changed for one is so for
// no other.
func TestPropertyWhatRecordsShareSaysTheSame(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		var a alike
		type taken struct {
			got  []NextHop
			want string
		}
		says := func(list []NextHop) (out string) {
			for _, h := range list {
				out += fmt.Sprint(*h.Hop, h.Since, h.Withdrawing)
			}
			return out
		}
		address := rapid.SampledFrom([]netip.Addr{netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("198.51.100.2")})
		var all []taken
		for range rapid.IntRange(1, 30).Draw(t, "lists") {
			list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) NextHop {
				return NextHop{
					Hop:         &Hop{Node: NodeID(rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node")), Address: address.Draw(t, "address")},
					Since:       Revision{Epoch: 1, Index: Index(rapid.IntRange(1, 2).Draw(t, "since"))},
					Withdrawing: rapid.Bool().Draw(t, "withdrawing"),
				}
			}), 0, 3).Draw(t, "hops")
			slices.SortFunc(list, compareHops)
			list = slices.CompactFunc(list, func(x, y NextHop) bool { return compareHops(x, y) == 0 })
			want := says(list)
			got := a.sameHops(list)
			_ = append(got, NextHop{Hop: &Hop{Node: "other"}}) // as whoever goes on from a record may
			all = append(all, taken{got, want})
			turned := merge(got, []HopSpec{{"n1", address.Draw(t, "stays")}, {"n2", address.Draw(t, "comes")}}, Revision{Epoch: 1, Index: 3})
			want = says(turned)
			all = append(all, taken{a.sameHops(turned), want})
		}
		for _, l := range all {
			if got := says(l.got); got != l.want {
				t.Fatalf("hops are %s, were %s", got, l.want)
			}
		}
	})
}

// The same goes for what endpoints offer.
func TestPropertyWhatEndpointsShareSaysTheSame(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		var a alike
		texts := rapid.SampledFrom([]string{"", "a", "b"})
		for range rapid.IntRange(1, 30).Draw(t, "endpoints") {
			o := &Offer{}
			for range rapid.IntRange(0, portsAtMost+1).Draw(t, "ports") {
				o.Ports = append(o.Ports, EndpointPort{Name: texts.Draw(t, "port")})
			}
			for range rapid.IntRange(0, 2).Draw(t, "hints") {
				o.Hints = append(o.Hints, Hint{Node: NodeID(texts.Draw(t, "for node")), Zone: texts.Draw(t, "for zone")})
			}
			list, want := []Endpoint{{Offer: o}}, fmt.Sprint(*o)
			if a.sameEndpoints(list); fmt.Sprint(*list[0].Offer) != want {
				t.Fatalf("it offers %v, and offered %s", *list[0].Offer, want)
			}
		}
	})
}

// And for what Services own of addresses.
func TestPropertyWhatAllocationsShareSaysTheSame(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		var a alike
		var all []*Claim
		var want []string
		keep := func(c *Claim, says string) { all, want = append(all, c), append(want, says) }
		texts := rapid.SampledFrom([]string{"", "a", "b"})
		for i := range rapid.IntRange(1, 30).Draw(t, "allocations") {
			c := Claim{Pool: PoolName(texts.Draw(t, "pool")), SharingKey: texts.Draw(t, "sharing key"), Ports: make([]Port, 0, 8)}
			for n := range rapid.IntRange(0, 6).Draw(t, "ports") {
				c.Ports = append(c.Ports, Port{Protocol: rapid.SampledFrom([]Protocol{0, UDP}).Draw(t, "protocol"), Number: uint16(n)})
			}
			says := fmt.Sprint(c)
			got := a.sameClaim(c)
			keep(got, says)
			on := *got // as whoever goes on from a record may
			on.Ports = append(on.Ports, Port{SCTP, uint16(i)})
			keep(&on, fmt.Sprint(on))
		}
		for i, c := range all {
			if got := fmt.Sprint(*c); got != want[i] {
				t.Fatalf("a Service owns %s, and owned %s", got, want[i])
			}
		}
	})
}

func TestRecordsOfOneEntryShareTheirNextHops(t *testing.T) {
	var a alike
	hops := func() []NextHop {
		return []NextHop{{Hop: &Hop{Node: NodeID([]byte("n1"))}}, {Hop: &Hop{Node: NodeID([]byte("n2"))}}}
	}
	first, second := a.sameHops(hops()), a.sameHops(hops())
	if unsafe.SliceData(first) != unsafe.SliceData(second) {
		t.Error("equal next hops are there twice")
	}
	later := hops()
	later[0].Since.Index++
	if a.sameHops(later)[0].Hop != first[0].Hop {
		t.Error("a hop is there twice, since it came to be wanted at two times")
	}
	offer := func() *Offer { return &Offer{Ports: []EndpointPort{{Name: "http"}, {Name: "https"}}} }
	endpoints := []Endpoint{{Node: NodeID([]byte("n1")), Offer: offer()}, {Node: NodeID([]byte("n1")), Offer: offer()}}
	a.sameEndpoints(endpoints)
	if endpoints[0].Offer != endpoints[1].Offer {
		t.Error("equal ports are there twice")
	}
	if unsafe.StringData(string(endpoints[0].Node)) != unsafe.StringData(string(first[0].Node())) {
		t.Error("a node's name is there twice")
	}
}

// Records of a snapshot share what they have in common, as those do that commands made.
func TestRecordsOfASnapshotShareWhatIsAlike(t *testing.T) {
	s, index := New(), Index(0)
	apply := func(cs ...Command) {
		t.Helper()
		index++
		for _, o := range s.ApplyEntries([]LogEntry{entry(t, s, index, cs...)})[0] {
			if o.Reject != Accepted {
				t.Fatal(o.Err())
			}
		}
	}
	apply(&InitGroup{Group: "g", Format: NewestFormat})
	for i := range 3 {
		a, id := netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), ServiceID(fmt.Sprint("shop/", i))
		endpoints := []Endpoint{{Address: a, Node: "n1", Offer: &Offer{Ports: []EndpointPort{{Name: "http"}}}}}
		apply(&PutService{Service: Service{ID: id, UID: "u", Endpoints: endpoints}}, &Allocate{Address: a, Service: id, Pool: "p"})
	}
	hops := []HopSpec{{Node: "n1", Address: netip.MustParseAddr("198.51.100.1")}}
	for _, last := range [][]byte{{0, 1}, {2}} { // the last one in an entry of its own
		var cs []Command
		for _, i := range last {
			cs = append(cs, &SetRoute{Prefix: HostPrefix(netip.AddrFrom4([4]byte{192, 0, 2, i})), Hops: hops})
		}
		apply(cs...)
	}
	again := restored(t, s)
	for _, r := range List[*Allocation](s.Read(), TableAllocations) {
		if r.Claim != List[*Allocation](s.Read(), TableAllocations)[0].Claim {
			t.Error("equal claims that were made are there twice")
		}
	}
	services, routes := List[*Service](again.Read(), TableServices), List[*Route](again.Read(), TableRoutes)
	owned := List[*Allocation](again.Read(), TableAllocations)
	word := func(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }
	for what, shared := range map[string]bool{
		"ports":               services[0].Endpoints[0].Offer == services[1].Endpoints[0].Offer,
		"names of nodes":      word(string(services[0].Endpoints[0].Node), string(services[1].Endpoints[0].Node)),
		"next hops":           unsafe.SliceData(routes[0].NextHops) == unsafe.SliceData(routes[1].NextHops),
		"hops":                routes[0].NextHops[0].Hop == routes[2].NextHops[0].Hop,
		"claims":              owned[0].Claim == owned[1].Claim,
		"causes of steps":     services[0].History[0].Cause == routes[1].History[0].Cause,
		"history of Services": word(services[0].History[0].What, services[1].History[0].What),
		"history of routes":   word(routes[0].History[0].What, routes[1].History[0].What),
	} {
		if !shared {
			t.Errorf("equal %s are there twice", what)
		}
	}
}

// What a withdrawal leaves of a route's next hops is shared again: in a cluster that lives long, most routes have seen one.
func TestRoutesShareWhatWithdrawalsLeave(t *testing.T) {
	s, index := New(), Index(0)
	each := func(about func(netip.Addr) Command) {
		t.Helper()
		index++
		cs := []Command{about(netip.MustParseAddr("192.0.2.1")), about(netip.MustParseAddr("192.0.2.2"))}
		for _, o := range s.ApplyEntries([]LogEntry{entry(t, s, index, cs...)})[0] {
			if o.Reject != Accepted {
				t.Fatal(o.Err())
			}
		}
	}
	index++
	s.ApplyEntries([]LogEntry{entry(t, s, index, &InitGroup{Group: "g", Format: NewestFormat})})
	stays, goes := HopSpec{"n1", netip.MustParseAddr("198.51.100.1")}, HopSpec{"n2", netip.MustParseAddr("198.51.100.2")}
	id := func(a netip.Addr) ServiceID { return ServiceID("shop/" + a.String()) }
	each(func(a netip.Addr) Command { return &PutService{Service: Service{ID: id(a), UID: "u"}} })
	each(func(a netip.Addr) Command { return &Allocate{Address: a, Service: id(a)} })
	each(func(a netip.Addr) Command { return &SetRoute{Prefix: HostPrefix(a), Hops: []HopSpec{stays, goes}} })
	each(func(a netip.Addr) Command { return &SetRoute{Prefix: HostPrefix(a), Hops: []HopSpec{stays}} })
	withdrawn := Revision{1, index}
	each(func(a netip.Addr) Command {
		return &FinishWithdrawal{Prefix: HostPrefix(a), Node: goes.Node, Address: goes.Address, Since: withdrawn}
	})
	routes := List[*Route](s.Read(), TableRoutes)
	if len(routes[0].NextHops) != 1 || unsafe.SliceData(routes[0].NextHops) != unsafe.SliceData(routes[1].NextHops) {
		t.Errorf("%v and %v are left, want one list of one hop", routes[0].NextHops, routes[1].NextHops)
	}
}

func TestWhatRecordsShareIsBounded(t *testing.T) {
	var a alike
	for i := range 3 * alikeAtMost {
		word(&a, fmt.Sprint(i))
		a.sameHops([]NextHop{{Hop: &Hop{Node: NodeID(fmt.Sprint(i))}}})
		a.sameClaim(Claim{SharingKey: fmt.Sprint(i)})
	}
	for what, many := range map[string]int{"words": len(a.words), "hops": len(a.hops), "lists of hops": len(a.lists), "claims": len(a.claims)} {
		if many > alikeAtMost {
			t.Errorf("%d %s are kept, at most %d shall be", many, what, alikeAtMost)
		}
	}
}
