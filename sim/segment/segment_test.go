// SPDX-License-Identifier: Apache-2.0

package segment_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/network"
	"fairlead.io/fairlead/sim/segment"
	"fairlead.io/fairlead/sim/segment/message"
)

var (
	own, vip, host = netip.MustParseAddr("172.16.0.1"), netip.MustParseAddr("172.16.255.1"), netip.MustParseAddr("172.16.254.1")
	all            = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
)

// lan is a node n1 with a link lan1, a host beside it that asks for the node's address and vip, and a process on the node.
type lan struct {
	*engine.World
	t       *testing.T
	machine *segment.Machine
	mac     [6]byte
	heard   [][]byte // by the process
	changes int
	seen    []event.Event
	port    *network.Conn
}

func newLAN(t *testing.T) *lan {
	w := &lan{World: engine.New(1), t: t}
	n := network.New(w.World, network.Options{})
	s := segment.New(w.World, "lan1", netip.MustParsePrefix("172.16.0.0/16"))
	w.machine = segment.NewMachine(n, "n1")
	w.machine.Join(s, netip.PrefixFrom(own, 16))
	h := segment.NewHost(s, host, func() []netip.Addr { return []netip.Addr{own, vip} })
	w.Hear(func(e event.Stamped) {
		switch e.Event.(type) {
		case event.Claim, event.Refused, event.Carrier:
			w.seen = append(w.seen, e.Event)
		}
	})
	n.Dial("n1", "n1", message.Port, []byte(message.List)).Handle(func(b []byte) {
		links, err := message.Decode(b)
		if err != nil || len(links) != 1 || links[0].Name != "lan1" || !links[0].Up {
			t.Fatalf("links %v, %v", links, err)
		}
		w.mac = links[0].MAC
	}, nil)
	n.Dial("n1", "n1", message.Port, []byte(message.Watch)).Handle(func([]byte) { w.changes++ }, nil)
	w.port = n.Dial("n1", "n1", message.Port, []byte(message.Of("lan1")))
	w.port.Handle(func(b []byte) { w.heard = append(w.heard, b) }, nil)
	w.pass(time.Millisecond)
	h.Start()
	return w
}

func (w *lan) pass(d time.Duration) {
	if err := w.Run(w.Now() + d); err != nil {
		w.t.Fatal(err)
	}
}

// arp is a packet as RFC 826 has it.
func arp(to, from [6]byte, op byte, source netip.Addr, target [6]byte, wanted netip.Addr) []byte {
	f := slices.Concat(to[:], from[:], []byte{8, 6, 0, 1, 8, 0, 6, 4, 0, op}, from[:], source.AsSlice(), target[:])
	return append(f, wanted.AsSlice()...)
}

// What is asked is heard by processes, the kernel answers for the node alone, and what a node claims is seen on the wire.
func TestClaimsAreSeen(t *testing.T) {
	w := newLAN(t)
	w.pass(segment.AskEvery)
	asked := 0
	for _, f := range w.heard {
		if [6]byte(f) == all && netip.AddrFrom4([4]byte(f[38:])) == vip {
			asked++
			w.port.Send(arp([6]byte(f[6:]), w.mac, 2, vip, [6]byte(f[6:]), host))
		}
	}
	w.port.Send(arp(all, w.mac, 1, vip, [6]byte{}, vip))
	w.port.Send(arp(all, w.mac, 1, own, [6]byte{}, host)) // a question
	before := len(w.heard)
	w.pass(time.Millisecond)
	want := []event.Event{event.Claim{Node: "n1", Segment: "lan1", Address: vip, Asked: true}, event.Claim{Node: "n1", Segment: "lan1", Address: vip}}
	if asked != 1 || !slices.Equal(w.seen, want) {
		t.Errorf("asked %d times, seen %v", asked, w.seen)
	}
	if len(w.heard) != before+1 || netip.AddrFrom4([4]byte(w.heard[before][28:])) != host {
		t.Errorf("the host does not answer: %v", w.heard[before:])
	}
}

func TestNothingPassesASpoiltLink(t *testing.T) {
	for name, spoil := range map[string]func(*segment.Link) func(){"cut": (*segment.Link).Cut, "mute": (*segment.Link).Mute} {
		t.Run(name, func(t *testing.T) {
			w := newLAN(t)
			w.pass(time.Second)
			heal := spoil(w.machine.Links()[0])
			heard := len(w.heard)
			w.port.Send(arp(all, w.mac, 1, vip, [6]byte{}, vip))
			w.pass(3 * time.Second)
			want := []event.Event{event.Carrier{Node: "n1", Segment: "lan1", Up: name == "mute"}}
			if len(w.heard) != heard || !slices.Equal(w.seen, want) || w.changes != 2 {
				t.Errorf("heard %v, seen %v, told %d times", w.heard[heard:], w.seen, w.changes)
			}
			heal()
			w.pass(2 * time.Second)
			if len(w.heard) == heard || w.changes != 3 {
				t.Errorf("after it nothing is heard; told %d times", w.changes)
			}
		})
	}
}

func TestWhatNoAgentShouldSendIsRefused(t *testing.T) {
	w := newLAN(t)
	for name, frame := range map[string][]byte{
		"short":           {1, 2, 3},
		"of another":      arp(all, [6]byte{2, 9}, 1, vip, [6]byte{}, vip),
		"for the node":    arp(all, w.mac, 2, own, [6]byte{}, host),
		"no such request": arp(all, w.mac, 3, vip, [6]byte{}, vip),
	} {
		w.seen = nil
		w.port.Send(frame)
		w.pass(time.Millisecond)
		if _, refused := append(w.seen, event.Calm{})[0].(event.Refused); !refused {
			t.Errorf("%s: %v", name, w.seen)
		}
	}
}

func TestWithoutPowerProcessesAreForgotten(t *testing.T) {
	w := newLAN(t)
	w.machine.Power(false)
	w.machine.Power(true)
	heard := len(w.heard)
	w.pass(2 * time.Second)
	if len(w.heard) != heard {
		t.Error("a process hears what comes to the next boot")
	}
}
