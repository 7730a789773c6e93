// SPDX-License-Identifier: Apache-2.0

package fabric_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/sim/fabric"
	"fairlead.io/fairlead/sim/fabric/message"
	"fairlead.io/fairlead/sim/network"
)

// What no real switch would take ends the session, is published, and leaves no path behind.
func TestASwitchRefusesWhatNoSwitchWouldTake(t *testing.T) {
	update := func(change func(*message.Update)) message.Update {
		m := message.Update{Announced: nlri(prefix, 1), Attributes: message.Attributes{
			NextHop: netip.MustParseAddr("192.0.2.11"), ASPath: []uint32{memberASN},
		}}
		change(&m)
		return m
	}
	six := netip.MustParsePrefix("2001:db8::1/128")
	for name, c := range map[string]struct {
		open func(*message.Open)
		say  message.Message
		why  string
	}{
		"as":            {open: func(o *message.Open) { o.ASN = 64999 }, why: "configured as"},
		"hold-time":     {open: func(o *message.Open) { o.Hold = time.Second }, why: "hold time"},
		"no-family":     {open: func(o *message.Open) { o.Families = nil }, why: "families"},
		"send-max":      {open: func(o *message.Open) { o.SendMax = 0 }, why: "ADD-PATH"},
		"second-open":   {say: greeting("a", nil), why: "a session has one"},
		"nothing":       {say: message.Update{}, why: "says nothing"},
		"family":        {open: func(o *message.Open) { o.Families = []message.Family{4} }, say: message.EndOfRIB{Family: 6}, why: "family"},
		"next-hop-none": {say: update(func(m *message.Update) { m.Attributes.NextHop = netip.IPv4Unspecified() }), why: "no unicast"},
		"next-hop-six":  {say: update(func(m *message.Update) { m.Attributes.NextHop = six.Addr() }), why: "another family"},
		"host-bits": {say: update(func(m *message.Update) {
			m.Announced[0].Prefix = netip.MustParsePrefix("203.0.113.10/24")
		}), why: "behind the mask"},
		"twice":      {say: update(func(m *message.Update) { m.Announced = append(m.Announced, m.Announced[0]) }), why: "there twice"},
		"as-path":    {say: update(func(m *message.Update) { m.Attributes.ASPath = nil }), why: "does not begin"},
		"loop":       {say: update(func(m *message.Update) { m.Attributes.ASPath = []uint32{memberASN, switchASN} }), why: "our own AS"},
		"local-pref": {say: update(func(m *message.Update) { m.Attributes.LocalPref = 100 }), why: "local preference"},
		"too-many": {open: func(o *message.Open) { o.SendMax = 1 }, say: update(func(m *message.Update) {
			m.Announced = append(m.Announced, message.NLRI{Prefix: prefix, PathID: 2})
		}), why: "it said that it would send 1"},
		"no-add-path": {open: func(o *message.Open) { o.AddPath, o.SendMax = false, 0 }, say: update(func(*message.Update) {}), why: "path id"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newPeering(fabric.BIRD("switch", switchASN))
			s := l.connect("a", c.open)
			if c.say != nil {
				s.say(c.say)
			}
			l.pass(10 * time.Millisecond)
			if len(l.refused) != 1 || !strings.Contains(l.refused[0].Why, c.why) {
				t.Fatalf("refused %v, not because of %q", l.refused, c.why)
			}
			if !s.ended || l.sw.Established("a") || l.hops(prefix) != nil {
				t.Errorf("ended %t, established %t, next hops %v", s.ended, l.sw.Established("a"), l.hops(prefix))
			}
			if !slices.ContainsFunc(s.heard, func(m message.Message) bool { _, is := m.(message.Notification); return is }) {
				t.Error("no notification")
			}
		})
	}
}

func TestAStrangerAndAWrongPasswordGetNoSession(t *testing.T) {
	l := newPeering(fabric.BIRD("switch", switchASN))
	members = append(members, "d")
	defer func() { members = members[:3] }()
	l.connect("d", nil)
	if len(l.refused) != 1 || !strings.Contains(l.refused[0].Why, "no such neighbour") {
		t.Errorf("refused %v", l.refused)
	}
	s := l.connect("a", func(o *message.Open) { o.Key = "of another password" })
	if !s.ended || l.sw.Established("a") || len(l.refused) != 1 {
		t.Errorf("ended %t, established %t, refused %v", s.ended, l.sw.Established("a"), l.refused)
	}
}

// A switch that loses everything forwards nothing until speakers have told it anew.
func TestASwitchComesBackEmpty(t *testing.T) {
	l := newPeering(fabric.BIRD("switch", switchASN))
	s := l.connect("a", nil)
	s.announce(prefix, 1, netip.MustParseAddr("192.0.2.11"), 0)
	l.pass(10 * time.Millisecond)
	l.sw.Down()
	l.pass(10 * time.Millisecond)
	if !s.ended || l.hops(prefix) != nil || l.sw.Established("a") {
		t.Fatalf("ended %t, next hops %v", s.ended, l.hops(prefix))
	}
	refused := l.network.Dial("a", "switch", fabric.Port, nil)
	l.pass(10 * time.Millisecond)
	if refused.Why() != network.Refused {
		t.Errorf("dialled a switch that is down: %q", refused.Why())
	}
	l.sw.Up()
	l.pass(700 * time.Second)
	if l.hops(prefix) != nil {
		t.Error("it remembers")
	}
	l.connect("a", nil).announce(prefix, 1, netip.MustParseAddr("192.0.2.12"), 0)
	l.pass(10 * time.Millisecond)
	if !slices.Equal(l.hops(prefix), []string{"192.0.2.12"}) {
		t.Errorf("next hops %v", l.hops(prefix))
	}
	l.mustBeClean(t)
}

// A speaker that dials before the switch noticed the loss of its connection takes its place, and its paths stay.
func TestANewConnectionReplacesTheOldOne(t *testing.T) {
	l := newPeering(fabric.BIRD("switch", switchASN))
	s := l.connect("a", nil)
	s.announce(prefix, 1, netip.MustParseAddr("192.0.2.11"), 0)
	l.pass(10 * time.Millisecond)
	s.cut()
	l.connect("a", nil)
	l.pass(5 * time.Second)
	if !s.ended || !l.sw.Established("a") || !slices.Equal(l.hops(prefix), []string{"192.0.2.11"}) {
		t.Errorf("old session ended %t, established %t, next hops %v", s.ended, l.sw.Established("a"), l.hops(prefix))
	}
	l.mustBeClean(t)
}

func TestForwardTakesTheLongestPrefix(t *testing.T) {
	l := newPeering(fabric.BIRD("switch", switchASN))
	s := l.connect("a", nil)
	s.announce(netip.MustParsePrefix("203.0.113.0/24"), 1, netip.MustParseAddr("192.0.2.11"), 0)
	s.announce(prefix, 1, netip.MustParseAddr("192.0.2.12"), 0)
	l.pass(10 * time.Millisecond)
	for to, want := range map[string]string{"203.0.113.10": "192.0.2.12", "203.0.113.9": "192.0.2.11", "198.51.100.1": "invalid IP"} {
		if hop, _ := l.sw.Forward(netip.MustParseAddr(to), 0); hop.String() != want {
			t.Errorf("%s goes to %s, not %s", to, hop, want)
		}
	}
}

// A switch that is slow for a while works off what it has once it is slow no more.
func TestASwitchCatchesUpWhenItsLagEnds(t *testing.T) {
	l := newPeering(fabric.BIRD("switch", switchASN))
	s := l.connect("a", nil)
	l.sw.Lag(3 * time.Second)
	s.announce(prefix, 1, netip.MustParseAddr("192.0.2.11"), 0)
	l.pass(time.Second)
	if l.hops(prefix) != nil {
		t.Fatal("it is not slow")
	}
	l.sw.Lag(-3 * time.Second)
	l.pass(10 * time.Millisecond)
	if !slices.Equal(l.hops(prefix), []string{"192.0.2.11"}) {
		t.Errorf("next hops %v", l.hops(prefix))
	}
	l.mustBeClean(t)
}
