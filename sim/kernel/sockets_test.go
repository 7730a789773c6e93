// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/kernel"
	"fairlead.io/fairlead/sim/kernel/message"
)

var (
	dialled = message.Place{Address: netip.MustParseAddr("10.96.0.1"), Port: 80, Protocol: 6}
	byName  = message.Place{Address: netip.MustParseAddr("10.96.0.1"), Port: 53, Protocol: 17}
)

func slot(set, index uint32, at string, id uint32) message.Slot {
	return message.Slot{Key: message.SlotKey{Set: set, Index: index}, At: netip.MustParseAddrPort(at), ID: id}
}

func used(at message.Place, set, count uint32) message.PlaceRow {
	return message.PlaceRow{At: at, First: message.Choice{Rule: 7, Set: set, Count: count, Verdict: 1}}
}

func sockets(s message.Sockets) message.Request { return message.Request{Sockets: &s} }

// No row may name what is not there, nor a set change that a row names: programs run between any two writes.
func TestTablesAtSocketsRefuseRowsThatLeadNowhere(t *testing.T) {
	two := sockets(message.Sockets{PutSlots: []message.Slot{slot(1, 0, "10.244.0.1:80", 4), slot(1, 1, "10.244.0.2:80", 5)}})
	row := sockets(message.Sockets{PutPlaces: []message.PlaceRow{used(dialled, 1, 2)}})
	limited := used(dialled, 1, 2)
	limited.First.Limited = true
	nobodys := used(dialled, 1, 2)
	nobodys.First.Rule = 0
	for name, c := range map[string]struct {
		before []message.Request
		ask    message.Request
		why    string
	}{
		"place-before-slots":  {nil, row, "which lacks 0"},
		"half-a-set":          {[]message.Request{two}, sockets(message.Sockets{PutPlaces: []message.PlaceRow{used(dialled, 1, 3)}}), "which lacks 2"},
		"no-slots":            {nil, sockets(message.Sockets{PutPlaces: []message.PlaceRow{used(dialled, 1, 0)}}), "leads to no slot"},
		"slot-in-use-goes":    {[]message.Request{two, row}, sockets(message.Sockets{DropSlots: []message.SlotKey{{Set: 1, Index: 1}}}), "in use"},
		"slot-in-use-changes": {[]message.Request{two, row}, sockets(message.Sockets{PutSlots: []message.Slot{slot(1, 1, "10.244.0.3:80", 6)}}), "in use"},
		"other-family": {[]message.Request{sockets(message.Sockets{PutSlots: []message.Slot{slot(1, 0, "[fd00::1]:80", 4)}})},
			sockets(message.Sockets{PutPlaces: []message.PlaceRow{used(dialled, 1, 1)}}), "another family"},
		"not-remembered": {[]message.Request{two}, sockets(message.Sockets{PutPlaces: []message.PlaceRow{used(byName, 1, 2)}}), "not found by that"},
		"nobody-counts":  {[]message.Request{two}, sockets(message.Sockets{PutPlaces: []message.PlaceRow{limited}}), "nobody counts"},
		"nobodys":        {[]message.Request{two}, sockets(message.Sockets{PutPlaces: []message.PlaceRow{nobodys}}), "nobody's"},
		"window-in-use": {[]message.Request{two, sockets(message.Sockets{PutWindows: []message.Place{dialled}}), sockets(message.Sockets{PutPlaces: []message.PlaceRow{limited}})},
			sockets(message.Sockets{DropWindows: []message.Place{dialled}}), "are limited"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newOneNode(t, 1)
			for _, r := range c.before {
				if a := l.ask(r); a.Error != "" {
					t.Fatalf("before: %s %v", a.Error, l.refused)
				}
			}
			if a := l.ask(c.ask); a.Error != "EINVAL" || len(l.refused) != 1 || !strings.Contains(l.refused[0], c.why) {
				t.Errorf("%q, refused %v, want %q", a.Error, l.refused, c.why)
			}
		})
	}
}

// What a place gives is told when it changes, and tables outlive their process, but not a boot.
func TestTablesAtSocketsTellAnswersAndGoWithABoot(t *testing.T) {
	l := newOneNode(t, 1)
	var told []string
	l.world.Hear(func(e event.Stamped) {
		switch e := e.Event.(type) {
		case event.Resolves:
			told = append(told, strings.Join(append([]string{e.Address.String(), e.Way.Verdict}, e.Way.Backends...), " "))
		case event.Programs:
			told = append(told, map[bool]string{true: "attached", false: "not attached"}[e.Attached])
		}
	})
	for _, s := range []message.Sockets{
		{PutSlots: []message.Slot{slot(1, 0, "10.244.0.1:80", 4), slot(2, 0, "10.244.0.1:80", 4)}},
		{PutPlaces: []message.PlaceRow{used(dialled, 1, 1)}},
		{PutPlaces: []message.PlaceRow{used(dialled, 2, 1)}}, // the same
		{Attach: true},
		{Attach: true},
		{DropSlots: []message.SlotKey{{Set: 1}}},
	} {
		if a := l.ask(sockets(s)); a.Error != "" {
			t.Fatalf("%+v: %s", s, a.Error)
		}
	}
	if want := []string{"10.96.0.1 use 10.244.0.1:80", "attached"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	l.conn.Reset()
	l.conn = l.dial("n1")
	have := l.ask(sockets(message.Sockets{Read: true})).Sockets
	want := &message.Sockets{PutPlaces: []message.PlaceRow{used(dialled, 2, 1)}, PutSlots: []message.Slot{slot(2, 0, "10.244.0.1:80", 4)}}
	if !reflect.DeepEqual(have, want) {
		t.Errorf("read %+v, want %+v", have, want)
	}
	l.node.Down()
	l.node.Up()
	l.conn.Reset()
	l.conn = l.dial("n1")
	if have := l.ask(sockets(message.Sockets{Read: true})).Sockets; !reflect.DeepEqual(have, &message.Sockets{}) {
		t.Errorf("after a boot there is %+v", have)
	}
}

// A table that is full takes some rows of a call, and none that would be one too many.
func TestFullTablesTakeAPart(t *testing.T) {
	l := newOneNode(t, 3)
	heal := l.node.Fail(kernel.Fault{Errno: "E2BIG", Share: 1, Sockets: true})
	parts := map[int]bool{}
	for set := range uint32(20) {
		var all []message.Slot
		for i := range uint32(4) {
			all = append(all, slot(set+1, i, "10.244.0.1:80", 4))
		}
		if a := l.ask(sockets(message.Sockets{PutSlots: all})); a.Error != "E2BIG" {
			t.Fatalf("%q", a.Error)
		}
		n := 0
		for _, s := range l.ask(sockets(message.Sockets{Read: true})).Sockets.PutSlots {
			if s.Key.Set == set+1 {
				n++
			}
		}
		parts[n] = true
	}
	if len(parts) < 3 {
		t.Errorf("of 4 rows were taken, at one time or another: %v", parts)
	}
	if a := l.ask(sockets(message.Sockets{DropSlots: []message.SlotKey{{Set: 1}}})); a.Error != "" {
		t.Errorf("a full table keeps its rows: %s", a.Error)
	}
	heal()
	if a := l.ask(sockets(message.Sockets{PutSlots: []message.Slot{slot(99, 0, "10.244.0.1:80", 4)}})); a.Error != "" {
		t.Errorf("it takes nothing any more: %s", a.Error)
	}
	for i := range uint32(message.RoomFor(0).Places / 64) {
		var some []message.Place
		for j := range uint32(64) {
			some = append(some, message.Place{Address: dialled.Address, Port: uint16(64*i + j), Protocol: 6})
		}
		l.ask(sockets(message.Sockets{PutWindows: some}))
	}
	if a := l.ask(sockets(message.Sockets{PutWindows: []message.Place{byName}})); a.Error != "E2BIG" {
		t.Errorf("one row more than there is room for: %q", a.Error)
	}
}
