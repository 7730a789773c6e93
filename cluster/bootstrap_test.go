// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/internal/testkit"
)

// awaitTick lets the members of a test that waits for nothing to happen get on for a moment.
func awaitTick() { time.Sleep(10 * time.Millisecond) }

func TestGroupIsFoundedOnceEveryListedMemberConfirms(t *testing.T) {
	inBubble(t, testGroupIsFoundedOnceEveryListedMemberConfirms)
}

func testGroupIsFoundedOnceEveryListedMemberConfirms(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.start("a")
	g.start("b")
	defer g.stopAll()
	for range 50 { // c is missing
		for _, name := range []string{"a", "b"} {
			if len(g.running(name).Peers()) > 0 {
				t.Fatal("a group was founded without c")
			}
		}
		awaitTick()
	}
	g.start("c")
	g.leader()
	if got := g.voters(); !slices.Equal(got, []string{"a-1", "b-1", "c-1"}) {
		t.Fatalf("voters are %v", got)
	}
	testkit.Until(t, "the group's id is committed", func() bool {
		id, _, _ := g.members["c"].state.Identity()
		return id == "g1"
	})
}

func TestWithoutTokenNobodyFoundsAGroup(t *testing.T) {
	inBubble(t, testWithoutTokenNobodyFoundsAGroup)
}

func testWithoutTokenNobodyFoundsAGroup(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.change = func(_ *member, o *Options) { o.Bootstrap = nil }
	g.startAll()
	defer g.stopAll()
	for range 50 {
		for _, name := range g.names() {
			if len(g.running(name).Peers()) > 0 {
				t.Fatal("a group was founded")
			}
		}
		awaitTick()
	}
}

func TestMembersToldDifferentThingsFoundNothing(t *testing.T) {
	for name, differ := range map[string]func(*Options){
		"token":  func(o *Options) { o.Bootstrap.Token = "other" },
		"list":   func(o *Options) { o.Bootstrap.Members[0].Address = "elsewhere" }, // a's
		"absent": func(o *Options) { o.Bootstrap = nil },
	} {
		runInBubble(t, name, func(t *testing.T) {
			g := newGroup(t, "a", "b", "c")
			g.change = func(m *member, o *Options) {
				if m.name == "b" {
					differ(o)
				}
			}
			g.startAll()
			defer g.stopAll()
			founder := g.running("a")
			_, err := g.running("b").Confirm(founder.o.Bootstrap.request())
			if !errors.Is(err, ErrBootstrapMismatch) {
				t.Fatalf("want ErrBootstrapMismatch, got %v", err)
			}
			for range 30 {
				if len(founder.Peers()) > 0 {
					t.Fatal("a group was founded")
				}
				awaitTick()
			}
		})
	}
}

// The founder lost its folder and still has the token: it must find the group that exists, not make a second one.
func TestFounderThatLostItsFolderJoinsTheGroupThatExists(t *testing.T) {
	inBubble(t, testFounderThatLostItsFolderJoinsTheGroupThatExists)
}

func testFounderThatLostItsFolderJoinsTheGroupThatExists(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.startAll()
	defer g.stopAll()
	mustPropose(t, g.leader(), put(1))
	g.members["a"].stop()
	g.members["a"].wipe()
	g.start("a")
	testkit.Until(t, "a is back as a new server", func() bool { return slices.Contains(g.voters(), "a-1x") })
	g.settle()
	if !has(g.members["a"].state, 1) {
		t.Fatal("a is in another group")
	}
}

// It finds the group also while another first member is off, wherever that one is in the list.
func TestFounderThatLostItsFolderJoinsWhileAnotherMemberIsOff(t *testing.T) {
	for _, off := range []string{"b", "e"} {
		runInBubble(t, off, func(t *testing.T) {
			g := newGroup(t, "a", "b", "c", "d", "e")
			g.begin(1)
			g.members[off].stop()
			g.members["a"].stop()
			g.members["a"].wipe()
			mustPropose(t, g.leader(), put(2))
			g.start("a")
			testkit.Until(t, "a is back as a new server", func() bool { return slices.Contains(g.voters(), "a-1x") })
			if g.settle(); !has(g.members["a"].state, 2) {
				t.Fatal("a is in another group")
			}
		})
	}
}

// A founder that was killed between keeping its first term and writing its first entry founds the group after all.
func TestInterruptedFoundingIsTakenUpAgain(t *testing.T) {
	inBubble(t, testInterruptedFoundingIsTakenUpAgain)
}

func testInterruptedFoundingIsTakenUpAgain(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	if err := g.members["a"].disk.entries.Set([]byte("CurrentTerm"), binary.BigEndian.AppendUint64(nil, 1)); err != nil {
		t.Fatal(err)
	}
	g.startAll()
	defer g.stopAll()
	mustPropose(t, g.leader(), put(1))
	if got := g.voters(); len(got) != 3 {
		t.Fatalf("voters are %v", got)
	}
}

// A founder that was killed right behind its first entry is the group, and nobody founds a second one.
func TestFoundingThatWasCutOffAfterItsEntryGoesOn(t *testing.T) {
	inBubble(t, testFoundingThatWasCutOffAfterItsEntryGoesOn)
}

func testFoundingThatWasCutOffAfterItsEntryGoesOn(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	d := g.members["a"].disk
	_, wire := raft.NewInmemTransport("a")
	o := Options{Name: "a", Instance: "1", Log: g.log, Tuning: g.tuning.withDefaults()}
	var c raft.Configuration
	for _, name := range g.names() {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(name + "-1"), Address: raft.ServerAddress(name)})
	}
	// Through the guard, as the member itself writes it.
	s := guardOf(d)
	if err := raft.BootstrapCluster(o.raftConfig(nil), s.Log, s.Stable, s.Snapshots, wire, c); err != nil {
		t.Fatal(err)
	}
	g.begin(1)
}

func TestMemberThatHoldsAnythingSaysSoWhateverTheToken(t *testing.T) {
	inBubble(t, testMemberThatHoldsAnythingSaysSoWhateverTheToken)
}

func testMemberThatHoldsAnythingSaysSoWhateverTheToken(t *testing.T) {
	g := newGroup(t, "a")
	g.startAll()
	defer g.stopAll()
	mustPropose(t, g.leader(), put(1))
	c, err := g.leader().node.Confirm(ConfirmRequest{Token: "anything"})
	if err != nil || c.Empty {
		t.Fatalf("%+v, %v", c, err)
	}
}

func TestBadBootstrapIsRefusedBeforeAnythingStarts(t *testing.T) {
	confirm := func(context.Context, Peer, ConfirmRequest) (Confirmation, error) { return Confirmation{}, nil }
	a, b := Peer{Name: "a", Address: "a:1"}, Peer{Name: "b", Address: "b:1"}
	for name, boot := range map[string]*Bootstrap{
		"no-token":   {Members: []Peer{a}},
		"not-listed": {Token: "t", Members: []Peer{b}},
		"twice":      {Token: "t", Members: []Peer{a, a}, Confirm: confirm},
		"no-address": {Token: "t", Members: []Peer{{Name: "a"}}},
		"no-way":     {Token: "t", Members: []Peer{a, b}},
		"elsewhere":  {Token: "t", Members: []Peer{{Name: "a", Address: "a:2"}}},
	} {
		if err := boot.validate("a", "a:1"); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
