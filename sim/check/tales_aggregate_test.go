// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"fmt"
	"net/netip"
	"time"

	"fairlead.io/fairlead/sim/event"
)

// The two addresses of a prefix that may stand for them.
const vip0, pair = "203.0.113.0", "203.0.113.0/31"

func aggregateTales() []tale {
	return []tale{
		fine("S8", "announced-together-and-apart", func(s *story) {
			publishPair(s)
			s.wait(5 * time.Second)
			s.flow(vip0, "n1", "web-n1")
			s.flow(vip1, "n2", "shop-n2")
			apart(s)
			s.wait(5 * time.Second)
		}),
		breaks("S8", "prefix-stays-when-an-address-leads-elsewhere", func(s *story) {
			publishPair(s)
			s.serve("shop", "n2")
			s.commit(s.hops(vip1, "n2"))
			s.wait(3 * time.Second)
		}),
		fine("S8", "prefix-goes-when-an-address-leads-elsewhere", func(s *story) {
			publishPair(s)
			s.serve("shop", "n2")
			s.commit(s.hops(vip1, "n2"))
			apart(s)
			s.forward(vip1, "n2")
			s.wait(5 * time.Second)
		}),
		breaks("S8", "prefix-of-an-address-that-nobody-has", func(s *story) {
			s.steer("n1", vip1, true)
			s.publish("web", vip0, "n1")
			s.forwardPair(s.members(), "n1")
			s.wait(3 * time.Second)
		}),
		breaks("S8", "address-of-a-prefix-left-out", func(s *story) {
			publishPair(s)
			s.forward(vip0, "n1", "n2")
			s.forwardPair(s.members())
			s.wait(3 * time.Second)
		}),
		breaks("S8", "lost-member-shadows-the-prefix", func(s *story) {
			shadowed(s)
			s.wait(8 * time.Second)
		}),
		fine("S8", "lost-member-shadows-the-prefix-in-time", func(s *story) {
			shadowed(s)
			s.wait(4 * time.Second)
		}),
		breaks("S9", "prefix-before-the-rules-of-all", func(s *story) {
			s.steer("n1", vip0, true)
			s.forwardPair(s.members(), "n1")
		}),
		fine("S9", "prefix-after-the-rules-of-all", func(s *story) {
			s.steer("n1", vip0, true)
			s.steer("n1", vip1, true)
			s.forwardPair(s.members(), "n1")
		}),
		breaks("S9", "rules-go-while-the-prefix-stays", func(s *story) {
			publishPair(s)
			s.steer("n1", vip1, false)
		}),
		fine("L1", "prefix-as-asked-for", func(s *story) {
			publishPair(s)
			s.asksFor(31)
			s.wait(35 * time.Second)
		}),
		breaks("L1", "prefix-asked-for-and-not-announced", func(s *story) {
			publishPair(s)
			apart(s)
			s.asksFor(31)
			s.wait(35 * time.Second)
		}),
		breaks("L1", "prefix-announced-beside-its-addresses", func(s *story) {
			publishPair(s)
			s.forward(vip1, "n1", "n2")
			s.asksFor(31)
			s.wait(35 * time.Second)
		}),
		breaks("L1", "prefix-announced-that-nobody-asks-for", func(s *story) {
			publishPair(s)
			s.asksFor(30)
			s.wait(35 * time.Second)
		}),
		breaks("L1", "prefix-announced-that-is-not-asked-for-any-more", func(s *story) {
			publishPair(s)
			s.asksFor(0)
			s.wait(35 * time.Second)
		}),
	}
}

// forwardPair has the switch forward the prefix of the pair to nodes, which members announce.
func (s *story) forwardPair(members []string, nodes ...string) {
	f := event.Forwarding{Switch: "sw", Prefix: netip.MustParsePrefix(pair)}
	for _, n := range nodes {
		f.NextHops = append(f.NextHops, host(n))
		for _, m := range members {
			f.Paths = append(f.Paths, event.Path{Member: m, NextHop: host(n), Best: true})
		}
	}
	s.say(f)
}

// publishPair brings two Services to the switch, whose addresses are announced as one prefix in the end.
func publishPair(s *story) {
	s.publish("web", vip0, "n1", "n2")
	s.publish("shop", vip1, "n1", "n2")
	s.forwardPair(s.members(), "n1", "n2")
	s.forward(vip0)
	s.forward(vip1)
}

// apart has the addresses of the pair be announced one by one again.
func apart(s *story) {
	s.forward(vip0, "n1", "n2")
	s.forward(vip1, "n1", "n2")
	s.forwardPair(s.members())
}

// asksFor has users ask for prefixes of a length, and then ends all trouble.
func (s *story) asksFor(bits int) {
	s.object("BGPAdvertisement", "all", "create", "user", fmt.Sprintf(`{"spec":{"aggregationLength":%d}}`, bits))
	s.say(event.Calm{})
}

// shadowed has m3, which is cut off, announce an address that the others announce together with another one, and where it led once.
func shadowed(s *story) {
	publishPair(s)
	apart(s)
	s.say(event.FaultBegan{ID: 1, Fault: "cut", On: []string{"m3"}}, event.Contact{Process: "m3", Life: 1})
	s.out["m3"] = true
	s.serve("web", "n2")
	s.serve("shop", "n2")
	s.commit(s.hops(vip0, "n2"), s.hops(vip1, "n2"))
	s.forwardPair(s.members(), "n2")
	s.forward(vip0)
	s.forwardBy(vip1, []string{"m3"}, "n1")
}
