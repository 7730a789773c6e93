// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/internal/testkit"
)

// voters lists the ids of the voters that the leader sees.
func (g *group) voters() []string {
	var out []string
	for _, p := range g.leader().node.Peers() {
		if p.Voter {
			out = append(out, p.ID)
		}
	}
	slices.Sort(out)
	return out
}

// wipe loses a stopped member's disk: it comes back as another instance.
func (m *member) wipe() {
	m.disk = newDisk()
	m.instance += "x"
}

// only keeps the bootstrap of the given members; the others wait to be joined.
func only(names ...string) func(*member, *Options) {
	return func(m *member, o *Options) {
		if !slices.Contains(names, m.name) {
			o.Bootstrap = nil
			return
		}
		o.Bootstrap.Members = slices.DeleteFunc(o.Bootstrap.Members, func(p Peer) bool { return !slices.Contains(names, p.Name) })
	}
}

func TestNewServerJoinsAndGetsItsVoteOnceCaughtUp(t *testing.T) {
	inBubble(t, testNewServerJoinsAndGetsItsVoteOnceCaughtUp)
}

func testNewServerJoinsAndGetsItsVoteOnceCaughtUp(t *testing.T) {
	g := newGroup(t, "a", "b", "c", "d")
	g.change = only("a", "b", "c")
	for _, name := range []string{"a", "b", "c"} {
		g.start(name)
	}
	defer g.stopAll()
	for i := range 50 {
		mustPropose(t, g.leader(), put(i))
	}
	g.start("d")
	testkit.Until(t, "d votes", func() bool { return slices.Contains(g.voters(), "d-1") })
	g.settle()
	if !has(g.members["d"].state, 49) {
		t.Fatal("d lacks what was committed before it came")
	}
}

// A newcomer that holds entries which came to nothing would be told that it was removed, and give up for good.
func TestLeaderWithoutAMajorityTakesNobodyIn(t *testing.T) {
	inBubble(t, testLeaderWithoutAMajorityTakesNobodyIn)
}

func testLeaderWithoutAMajorityTakesNobodyIn(t *testing.T) {
	g := newGroup(t, "a", "b", "c", "d")
	g.tuning.Heartbeat = time.Second // a leader goes on for so long without a majority
	var asks atomic.Bool
	g.change = func(m *member, o *Options) {
		only("a", "b", "c")(m, o)
		o.Join = func(ctx context.Context, r JoinRequest) error {
			if !asks.Load() {
				return ErrNotLeader
			}
			return g.join(ctx, r)
		}
	}
	g.startAll()
	defer g.stopAll()
	mustPropose(t, g.leader(), put(1))
	leader, d := g.leader(), g.members["d"]
	for _, f := range g.followers() {
		if f != d {
			g.part(leader, f)
		}
	}
	time.Sleep(time.Millisecond) // in a bubble, their last answers are of this very moment
	err := leader.node.Admit(t.Context(), JoinRequest{ServerID: string(d.node.id), Address: d.name})
	if !errors.Is(err, ErrNotLeader) && !errors.Is(err, ErrNotReady) {
		t.Errorf("want ErrNotLeader or ErrNotReady, got %v", err)
	}
	if last := d.node.raft.LastIndex(); last > 0 {
		t.Errorf("it took %d entries", last)
	}
	g.mu.Lock()
	g.connect()
	g.mu.Unlock()
	asks.Store(true)
	testkit.Until(t, "it belongs", func() bool {
		return inConfiguration(g.leader().node.raft.GetConfiguration().Configuration(), d.node.id)
	})
}

func TestLostFolderComesBackAsANewServerAndTheOldOneIsRemoved(t *testing.T) {
	inBubble(t, testLostFolderComesBackAsANewServerAndTheOldOneIsRemoved)
}

func testLostFolderComesBackAsANewServerAndTheOldOneIsRemoved(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.startAll()
	defer g.stopAll()
	mustPropose(t, g.leader(), put(1))
	victim := g.followers()[0]
	victim.stop()
	victim.wipe()
	g.start(victim.name)
	want := []string{ServerID(victim.name, victim.instance)}
	for _, name := range g.names() {
		if name != victim.name {
			want = append(want, ServerID(name, "1"))
		}
	}
	slices.Sort(want)
	testkit.Until(t, fmt.Sprint("voters are ", want), func() bool { return slices.Equal(g.voters(), want) })
	g.settle()
}

// The library sends to an address, not to a server: without a name on its messages an empty newcomer at the old address
// would be taken for the voter that it replaces.
func TestNewcomerIsNotTakenForTheServerWhoseAddressItHas(t *testing.T) {
	inBubble(t, testNewcomerIsNotTakenForTheServerWhoseAddressItHas)
}

func testNewcomerIsNotTakenForTheServerWhoseAddressItHas(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.startAll()
	defer g.stopAll()
	mustPropose(t, g.leader(), put(1))
	victim, other := g.followers()[0], g.followers()[1]
	victim.stop()
	other.stop()
	victim.wipe()
	g.change = func(_ *member, o *Options) { o.Bootstrap, o.Join = nil, nil }
	g.start(victim.name) // one of three voters is left, and a stranger at the address of the second
	for range 50 {
		if n := g.running(victim.name).raft.LastIndex(); n != 0 {
			t.Fatalf("the newcomer took %d entries that were meant for %s-1", n, victim.name)
		}
		if n := g.running(victim.name).raft.CurrentTerm(); n != 0 {
			t.Fatalf("the newcomer took part in term %d", n)
		}
		awaitTick()
	}
}

func TestServerWhoseFormerInstanceStillAnswersHasToWait(t *testing.T) {
	inBubble(t, testServerWhoseFormerInstanceStillAnswersHasToWait)
}

func testServerWhoseFormerInstanceStillAnswersHasToWait(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.startAll()
	defer g.stopAll()
	mustPropose(t, g.leader(), put(1))
	alive := g.followers()[0]
	testkit.Until(t, "the follower answered", func() bool { return g.leader().node.answers(alive.node.id) })
	err := g.leader().node.Admit(context.Background(), JoinRequest{ServerID: ServerID(alive.name, "2"), Address: "elsewhere"})
	if !errors.Is(err, ErrNotReady) {
		t.Fatalf("want ErrNotReady, got %v", err)
	}
}

func TestServerIsNotRetiredAtTheCostOfTheQuorum(t *testing.T) {
	inBubble(t, testServerIsNotRetiredAtTheCostOfTheQuorum)
}

func testServerIsNotRetiredAtTheCostOfTheQuorum(t *testing.T) {
	g := newGroup(t, "a", "b", "c", "d")
	g.startAll()
	defer g.stopAll()
	mustPropose(t, g.leader(), put(1))
	leader := g.leader()
	gone := g.followers()
	gone[0].stop()
	gone[1].stop() // two of four are left: no quorum, whoever is removed
	err := leader.node.Admit(context.Background(), JoinRequest{ServerID: ServerID(gone[0].name, "2"), Address: gone[0].name})
	if err == nil {
		t.Fatal("a member was removed from a group that had no quorum")
	}
}

func TestAddressOfAnotherMemberIsRefused(t *testing.T) {
	inBubble(t, testAddressOfAnotherMemberIsRefused)
}

func testAddressOfAnotherMemberIsRefused(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.startAll()
	defer g.stopAll()
	err := g.leader().node.Admit(context.Background(), JoinRequest{ServerID: "z-1", Address: "b"})
	if !errors.Is(err, ErrNotReady) {
		t.Fatalf("want ErrNotReady, got %v", err)
	}
}

func TestMemberThatMovedIsReachedAtItsNewAddress(t *testing.T) {
	inBubble(t, testMemberThatMovedIsReachedAtItsNewAddress)
}

func testMemberThatMovedIsReachedAtItsNewAddress(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.tuning.Stabilization = time.Hour // who has no vote gets none by itself
	g.startAll()
	defer g.stopAll()
	mustPropose(t, g.leader(), put(1))
	leader, id := g.leader().node, g.followers()[0].node.id
	move := func(address string) {
		if err := leader.Admit(t.Context(), JoinRequest{ServerID: string(id), Address: address, Last: 1}); err != nil {
			t.Fatal(err)
		}
		if s, err := leader.server(string(id)); err != nil || s.Address != raft.ServerAddress(address) {
			t.Errorf("it is at %s, %v; want %s", s.Address, err, address)
		}
	}
	move("elsewhere")
	if err := leader.Demote(t.Context(), string(id), false); err != nil {
		t.Fatal(err)
	}
	move("a third place")
}

func TestRemovedMemberEndsAndCannotComeBack(t *testing.T) {
	inBubble(t, testRemovedMemberEndsAndCannotComeBack)
}

func testRemovedMemberEndsAndCannotComeBack(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.startAll()
	defer g.stopAll()
	mustPropose(t, g.leader(), put(1))
	g.settle() // an empty server could come back as a new one
	victim := g.followers()[0]
	if victim.node.Status().Former {
		t.Error("it calls itself a former member while it is one")
	}
	if err := g.leader().node.Remove(context.Background(), string(victim.node.id), false); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, victim, ErrRemoved)
	if !victim.node.Status().Former {
		t.Error("it does not call itself a former member")
	}
	victim.stop()
	if err := victim.open(); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, victim, ErrRemoved)
	mustPropose(t, g.leader(), put(2))
}

// Who is new holds configurations of before it was taken in.
func TestANewServerIsNoFormerOne(t *testing.T) {
	with := raft.Configuration{Servers: []raft.Server{{ID: "a"}, {ID: "b"}}}
	without := raft.Configuration{Servers: with.Servers[:1]}
	a := &adapter{self: "b"}
	for i, step := range []struct {
		committed, newest raft.Configuration
		want              bool
	}{
		{raft.Configuration{}, raft.Configuration{}, false},
		{without, without, false},
		{without, with, false},
		{with, with, false},
		{with, without, true},
		{without, without, true},
		{without, with, false}, // taken in again
	} {
		a.mu.Lock()
		a.configureLocked(step.committed, uint64(i))
		a.mu.Unlock()
		if got := a.belongedBefore(step.newest); got != step.want {
			t.Errorf("%d: it belonged before: %v", i, got)
		}
	}
}

func TestMemberRemovedWhileAwayLearnsOfIt(t *testing.T) {
	inBubble(t, testMemberRemovedWhileAwayLearnsOfIt)
}

func testMemberRemovedWhileAwayLearnsOfIt(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.startAll()
	defer g.stopAll()
	mustPropose(t, g.leader(), put(1))
	g.settle() // an empty server could come back as a new one
	victim := g.followers()[0]
	id := string(victim.node.id)
	victim.stop()
	if err := g.leader().node.Remove(context.Background(), id, false); err != nil {
		t.Fatal(err)
	}
	if err := victim.open(); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, victim, ErrRemoved)
	if !victim.node.Status().Former {
		t.Error("it was told, and does not call itself a former member")
	}
}

func TestLeaderThatRemovesItselfEnds(t *testing.T) { inBubble(t, testLeaderThatRemovesItselfEnds) }

func testLeaderThatRemovesItselfEnds(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.change = func(_ *member, o *Options) { o.Join = nil } // it notices by itself
	g.startAll()
	defer g.stopAll()
	mustPropose(t, g.leader(), put(1))
	leader := g.leader()
	if err := leader.node.Remove(context.Background(), string(leader.node.id), false); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, leader, ErrRemoved)
	mustPropose(t, g.leader(), put(2))
}

func TestConfigurationIndexRisesWithEveryChange(t *testing.T) {
	inBubble(t, testConfigurationIndexRisesWithEveryChange)
}

func testConfigurationIndexRisesWithEveryChange(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.startAll()
	defer g.stopAll()
	g.settle()
	before := g.leader().node.ConfigurationIndex()
	if before == 0 {
		t.Fatal("a founded group has no configuration")
	}
	if err := g.leader().node.Demote(context.Background(), g.followers()[0].node.Status().ServerID, false); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "every member knows of the change", func() bool {
		for _, name := range g.names() {
			if g.running(name).ConfigurationIndex() <= before {
				return false
			}
		}
		return true
	})
}

func TestUnknownServerIsNamed(t *testing.T) { inBubble(t, testUnknownServerIsNamed) }

func testUnknownServerIsNamed(t *testing.T) {
	g := newGroup(t, "a")
	g.startAll()
	defer g.stopAll()
	n := g.leader().node
	for what, err := range map[string]error{
		"remove": n.Remove(context.Background(), "x-1", false), "promote": n.Promote(context.Background(), "x-1"),
		"transfer": n.Transfer(context.Background(), "x-1"),
	} {
		if !errors.Is(err, ErrUnknownServer) {
			t.Errorf("%s: want ErrUnknownServer, got %v", what, err)
		}
	}
}

func TestTransferHandsTheLeadershipOver(t *testing.T) {
	inBubble(t, testTransferHandsTheLeadershipOver)
}

func testTransferHandsTheLeadershipOver(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.startAll()
	defer g.stopAll()
	mustPropose(t, g.leader(), put(1))
	testkit.Until(t, "leadership is where it was asked to be", func() bool {
		leader := g.leader()
		if leader.name == "c" {
			return true
		}
		err := leader.node.Transfer(context.Background(), "c-1")
		if err != nil {
			t.Logf("transfer: %v", err)
		}
		return g.leader().name == "c"
	})
	mustPropose(t, g.leader(), put(2))
}

// Of two followers that were sent the same the library takes the first of the configuration, dead or not.
func TestLeadershipIsNotHandedToTheDead(t *testing.T) {
	inBubble(t, testLeadershipIsNotHandedToTheDead)
}

func testLeadershipIsNotHandedToTheDead(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.tuning.Heartbeat = 300 * time.Millisecond // a busy machine must not move the leadership by itself
	g.begin(1)
	dead := g.followers()[0]
	dead.stop()
	leader := g.leader()
	testkit.Until(t, "its silence is noticed", func() bool { return !leader.node.answers(raft.ServerID(ServerID(dead.name, "1"))) })
	if err := leader.node.Transfer(t.Context(), ""); err != nil {
		t.Fatalf("one follower lives: %v", err)
	}
	testkit.Until(t, "the other one leads", func() bool { return g.leader() != leader })
}

// A dead voter is also the likelier one to be among those that answered lately for a while: whoever answered last goes first.
func TestOfEvenVotersTheOneHeardLastLeads(t *testing.T) {
	inBubble(t, testOfEvenVotersTheOneHeardLastLeads)
}

func testOfEvenVotersTheOneHeardLastLeads(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.tuning.Heartbeat = 2 * time.Second // so that the dead one's answers count for long
	g.begin(1)
	leader, others := g.leader(), g.followers()
	others[0].stop()
	at := time.Now()
	testkit.Until(t, "the living one answered since", func() bool {
		p, ok := leader.node.seen.seen(others[1].node.id, leader.node.raft.CurrentTerm())
		return ok && p.at.After(at)
	})
	if s, err := leader.node.successor(""); err != nil || s.ID != others[1].node.id {
		t.Errorf("successor: %v, %v; want %s", s.ID, err, others[1].node.id)
	}
}

func TestWithoutAnotherVoterNobodyTakesTheLeadership(t *testing.T) {
	inBubble(t, testWithoutAnotherVoterNobodyTakesTheLeadership)
}

func testWithoutAnotherVoterNobodyTakesTheLeadership(t *testing.T) {
	g := newGroup(t, "a")
	g.startAll()
	defer g.stopAll()
	if err := g.leader().node.Transfer(t.Context(), ""); !errors.Is(err, ErrNotReady) {
		t.Errorf("want ErrNotReady, got %v", err)
	}
}

// A follower whose disk was put back to an earlier state, under its own name, is expelled by the leader that knows
// what it had.
func TestRolledBackMemberIsExpelledAndEnds(t *testing.T) {
	inBubble(t, testRolledBackMemberIsExpelledAndEnds)
}

func testRolledBackMemberIsExpelledAndEnds(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.begin(1)
	victim := g.followers()[0]
	victim.stop()
	old := copyDisk(t, victim.disk)
	g.start(victim.name)
	for i := range 20 {
		mustPropose(t, g.leader(), put(i))
	}
	g.settle()
	victim.stop()
	// The follower's newest entries are known to the leader of this term only; should there be an election, the next
	// leader has to learn them again.
	testkit.Until(t, "the rolled back member is expelled", func() bool {
		g.start(victim.name) // as it should be
		leader := g.leader()
		testkit.Until(t, "the leader knows how far its follower is", func() bool {
			p, ok := leader.node.seen.seen(victim.node.id, leader.node.raft.CurrentTerm())
			return leader.node.LeadingTerm() == 0 || ok && p.matched && p.lastLog >= leader.node.raft.LastIndex()
		})
		victim.stop()
		whole := victim.disk
		victim.disk = copyDisk(t, old)
		g.start(victim.name)
		testkit.Until(t, "it is noticed, or the leadership moves", func() bool {
			return isClosed(victim.ended) || leader.node.LeadingTerm() == 0
		})
		expelled := isClosed(victim.ended)
		victim.stop()
		victim.disk = whole
		return expelled
	})
	if !errors.Is(victim.err, ErrRemoved) && !errors.Is(victim.err, ErrRolledBack) {
		t.Fatalf("it ended with %v", victim.err)
	}
	mustPropose(t, g.leader(), put(99))
}

// copyDisk is a backup of a disk.
func copyDisk(t *testing.T, d *memDisk) *memDisk {
	t.Helper()
	out := newDisk()
	first, _ := d.entries.FirstIndex()
	last, _ := d.entries.LastIndex()
	for i := first; i > 0 && i <= last; i++ {
		var l raft.Log
		if err := d.entries.GetLog(i, &l); err != nil {
			t.Fatal(err)
		}
		if err := out.entries.StoreLog(&l); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"CurrentTerm", "LastVoteTerm", "LastVoteCand"} {
		if v, err := d.entries.Get([]byte(key)); err == nil {
			_ = out.entries.Set([]byte(key), v) // in memory
		}
	}
	return out
}
