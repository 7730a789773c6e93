// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/internal/testkit"
)

// floors gives each member a floor in a folder of its own, and the way to ask others for it.
type floors struct {
	*group
	dir   string
	older map[string]bool // members that know of no such question
}

func newFloors(t *testing.T, g *group) *floors {
	f := &floors{group: g, dir: t.TempDir(), older: map[string]bool{}}
	change := g.change
	g.change = func(m *member, o *Options) {
		if change != nil {
			change(m, o)
		}
		o.Floor = store.OpenFloor(f.dir, ServerID(m.name, m.instance), "boot")
		last, _ := m.disk.entries.LastIndex() // in memory
		_, kept := m.disk.entries.Get([]byte("CurrentTerm"))
		o.Fresh = last == 0 && kept != nil
		o.Recall = func(_ context.Context, p Peer) (Known, error) {
			n := f.running(p.Name)
			switch {
			case n == nil:
				return Known{}, errors.New("connection refused")
			case f.older[p.Name]:
				return Known{}, nil
			default:
				return n.Remembers(ServerID(m.name, m.instance)), nil
			}
		}
	}
	return f
}

// boot loses the floor of a member that does not run, as a boot of its machine does.
func (f *floors) boot(m *member) {
	if err := os.Remove(filepath.Join(f.dir, ServerID(m.name, m.instance)+".floor")); err != nil {
		f.t.Fatal(err)
	}
}

// roll starts a group of three, stops c, copies b's disk, has a and b alone commit more, and stops b with its disk of before.
func roll(t *testing.T) (f *floors, a, b, c *member) {
	f = newFloors(t, newGroup(t, "a", "b", "c"))
	f.startAll()
	t.Cleanup(f.stopAll)
	mustPropose(t, f.leader(), put(1))
	f.settle()
	a = f.leader()
	b, c = f.followers()[0], f.followers()[1]
	c.stop()
	b.stop()
	old := copyDisk(t, b.disk)
	f.start(b.name)
	for i := range 20 {
		mustPropose(t, f.leader(), put(i))
	}
	f.settle()
	b.stop()
	b.disk = old
	return f, a, b, c
}

// Of three members one was down for a while, another one crashes, and the third gets an older disk: without its floor it would lead or vote,
// and what the other two had acknowledged would be gone.
func TestRolledBackDiskBesideACrashLosesNothing(t *testing.T) {
	inBubble(t, testRolledBackDiskBesideACrashLosesNothing)
}

func testRolledBackDiskBesideACrashLosesNothing(t *testing.T) {
	f, a, b, c := roll(t)
	a.stop()
	err := b.open()
	if err == nil {
		f.start(c.name)
		next := f.leader()
		mustPropose(t, next, put(99))
		t.Fatalf("a folder from before starts, and %s leads with it: has what was acknowledged: %v", next.name, has(next.state, 19))
	}
	if !errors.Is(err, ErrRolledBack) || !strings.Contains(err.Error(), "move it away") {
		t.Fatalf("want ErrRolledBack with what to do, got %v", err)
	}
	f.start(c.name)
	f.start(a.name)
	f.leader()
	f.settle()
	if !has(c.state, 19) {
		t.Error("what was acknowledged is lost")
	}
}

// Where its machine booted, too, the floor is gone: the others know what it acknowledged.
func TestOthersRememberWhatARolledBackDiskForgot(t *testing.T) {
	inBubble(t, testOthersRememberWhatARolledBackDiskForgot)
}

func testOthersRememberWhatARolledBackDiskForgot(t *testing.T) {
	f, a, b, _ := roll(t)
	f.boot(b)
	f.start(b.name)
	testkit.Until(t, "it ends", func() bool { return isClosed(b.ended) })
	if !errors.Is(b.err, ErrRolledBack) || !strings.Contains(b.err.Error(), "says "+a.name) {
		t.Fatalf("it ended with %v", b.err)
	}
	b.stop()
	a.stop()
	if err := b.open(); !errors.Is(err, ErrRolledBack) { // with nobody there to ask
		t.Errorf("started again: %v", err)
	}
}

// A member whose machine booted takes part once enough others said what they know of it, and not before; in a group of three in which one is
// down one other has to do, after a while.
func TestBootedMemberAsksBeforeItTakesPart(t *testing.T) {
	inBubble(t, testBootedMemberAsksBeforeItTakesPart)
}

func testBootedMemberAsksBeforeItTakesPart(t *testing.T) {
	f := newFloors(t, newGroup(t, "a", "b", "c"))
	f.startAll()
	defer f.stopAll()
	mustPropose(t, f.leader(), put(1))
	f.settle()
	booted, other, down := f.followers()[0], f.leader(), f.followers()[1]
	booted.stop()
	down.stop()
	f.boot(booted)
	began := time.Now()
	f.start(booted.name)
	for time.Since(began) < recallWithin-time.Second {
		time.Sleep(50 * time.Millisecond)
		if !booted.node.seen.mute.Load() || booted.node.raft.LastIndex() > booted.node.found.Last || other.node.LeadingTerm() > 0 && time.Since(began) > time.Second {
			t.Fatalf("after %s it takes part, with one that did not answer", time.Since(began))
		}
	}
	mustPropose(t, f.leader(), put(2))
	f.settle()
	down.stop()
	f.start(down.name)
	f.settle()

	booted.stop()
	f.boot(booted)
	began = time.Now()
	f.start(booted.name)
	testkit.Until(t, "it takes part", func() bool { return !booted.node.seen.mute.Load() })
	if took := time.Since(began); took > recallWithin/2 {
		t.Errorf("all answered, and it waited for %s", took)
	}
	f.settle()
}

// rollFive has five members of which three have entry 19: the leader, which dies, back, whose disk is put back as its machine boots, and holder, which
// has no say for now. The others were down for a while, and did not hear that back acknowledged anything. All but the leader and back run.
func rollFive(t *testing.T) (f *floors, back, holder *member, others []*member) {
	f = newFloors(t, newGroup(t, "a", "b", "c", "d", "e"))
	f.startAll()
	t.Cleanup(f.stopAll)
	mustPropose(t, f.leader(), put(1))
	f.settle()
	leader := f.leader()
	followers := f.followers()
	back, holder, others = followers[0], followers[1], followers[2:]
	for _, m := range others {
		m.stop()
	}
	back.stop()
	old := copyDisk(t, back.disk)
	f.start(back.name)
	for i := range 20 {
		mustPropose(t, f.leader(), put(i))
	}
	f.settle()
	for _, m := range []*member{back, leader, holder} {
		m.stop()
	}
	back.disk = old
	f.boot(back)
	f.start(holder.name)
	holder.node.seen.mute.Store(true)
	for _, m := range others {
		f.start(m.name)
	}
	return f, back, holder, others
}

// heard waits until a member has heard from the others.
func heard(t *testing.T, m *member) {
	t.Helper()
	testkit.Until(t, "it has heard from the others", func() bool { return !m.node.seen.mute.Load() })
}

// Nobody leads without an entry that was committed with a member which forgot it, though nobody is there who heard that it acknowledged it.
func TestRolledBackDiskInFiveLosesNothing(t *testing.T) {
	inBubble(t, testRolledBackDiskInFiveLosesNothing)
}

func testRolledBackDiskInFiveLosesNothing(t *testing.T) {
	f, back, holder, others := rollFive(t)
	for range 2 { // it remembers nothing of the first time
		f.start(back.name)
		heard(t, back)
		for deadline := time.Now().Add(atLeastWithin / 2); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			for _, m := range append(others, back) {
				if m.node.LeadingTerm() > 0 {
					t.Fatalf("%s leads, and has what was acknowledged: %v", m.name, has(m.state, 19))
				}
			}
		}
		back.stop()
	}
	f.start(back.name)
	heard(t, back)
	holder.node.seen.mute.Store(false)
	mustPropose(t, f.leader(), put(99))
	f.settle()
	if !has(f.leader().state, 19) || !has(back.state, 19) {
		t.Error("what was acknowledged is lost")
	}
	if err := back.node.seen.suffices(store.Position{}); err != nil {
		t.Errorf("its bound has not ended: %v", err)
	}
}

// A floor that cannot be kept any more may be too low for the folder that is there: the others are asked.
func TestAFloorThatCannotBeKeptIsNotBelieved(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, a, b, _ := roll(t)
		low := store.OpenFloor(f.dir, ServerID(b.name, b.instance), "boot")
		if err := low.Forget(); err != nil {
			t.Fatal(err)
		}
		low = store.OpenFloor(f.dir, ServerID(b.name, b.instance), "boot")
		low.Hold(store.Promises{Term: 1})
		if err := errors.Join(low.Begin(), low.Close(), os.Mkdir(filepath.Join(f.dir, ServerID(b.name, b.instance)+".floor.new"), 0o700)); err != nil {
			t.Fatal(err)
		}
		if err := b.open(); err == nil {
			testkit.Until(t, "it ends", func() bool { return isClosed(b.ended) })
		}
		if !errors.Is(b.err, ErrRolledBack) || !strings.Contains(b.err.Error(), "says "+a.name) {
			t.Errorf("it ended with %v", b.err)
		}
	})
}

// Who holds more than the others, and is gone for good, does not keep them from leading for ever.
func TestWhoHeldMoreIsNotWaitedForForEver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, back, holder, _ := rollFive(t)
		f.start(back.name)
		heard(t, back)
		holder.stop()
		began := time.Now()
		mustPropose(t, f.leader(), put(99))
		if took := time.Since(began); took < atLeastWithin-recallCall {
			t.Errorf("somebody leads after %s", took)
		}
	})
}

// A leader that heard of entries in an earlier term counts a follower without them no more, whatever that one thinks of itself.
func TestLeaderDoesNotCountARolledBackFollower(t *testing.T) {
	inBubble(t, testLeaderDoesNotCountARolledBackFollower)
}

func testLeaderDoesNotCountARolledBackFollower(t *testing.T) {
	f, a, b, c := roll(t)
	f.boot(b)
	f.older[a.name], f.older[c.name] = true, true
	f.start(c.name)
	f.leader()
	f.settle()
	// Terms go by: a remembers b of an earlier one.
	if a.node.LeadingTerm() > 0 {
		term := a.node.raft.CurrentTerm()
		if err := a.node.Transfer(t.Context(), string(c.node.id)); err != nil {
			t.Fatal(err)
		}
		testkit.Until(t, "another term", func() bool { return f.leader().node.LeadingTerm() > term })
	}
	if f.leader() == c {
		if err := c.node.Transfer(t.Context(), string(a.node.id)); err != nil {
			t.Fatal(err)
		}
		testkit.Until(t, "a leads again", func() bool { return a.node.LeadingTerm() > 0 })
	}
	f.start(b.name)
	testkit.Until(t, "it ends", func() bool { return isClosed(b.ended) })
	if !errors.Is(b.err, ErrRolledBack) && !errors.Is(b.err, ErrRemoved) {
		t.Errorf("it ended with %v", b.err)
	}
	if why := a.node.seen.distrusted(raft.ServerID(ServerID(b.name, b.instance))); !strings.Contains(why, "rolled back") {
		t.Errorf("the leader says %q", why)
	}
	mustPropose(t, f.leader(), put(99))
	f.settle()
}

// Nor does it count for any majority while it cannot be removed: nothing is committed with it.
func TestRolledBackFollowerMakesNoMajority(t *testing.T) {
	inBubble(t, testRolledBackFollowerMakesNoMajority)
}

func testRolledBackFollowerMakesNoMajority(t *testing.T) {
	f, a, b, c := roll(t)
	f.boot(b)
	f.older[a.name], f.older[c.name] = true, true
	f.start(b.name)
	testkit.Until(t, "it ends", func() bool { return isClosed(b.ended) })
	if !errors.Is(b.err, ErrRolledBack) {
		t.Errorf("it ended with %v", b.err)
	}
	if has(b.state, 19) {
		t.Error("it was given what it lacks, and counted")
	}
	f.start(c.name)
	mustPropose(t, f.leader(), put(99))
	f.settle()
	if !has(f.leader().state, 19) {
		t.Error("what was acknowledged is lost")
	}
}

// A vote of somebody who once held more than the candidate says nothing; and who asks for votes with less than it held gets none.
func TestVotesOfOlderDisksDoNotCount(t *testing.T) {
	o := newObserver(nil, "a", func() {})
	o.rolledBack = func(raft.ServerID, string) {}
	refused := func() error { return fmt.Errorf("remote: %w", errOlder) }
	told := ""
	o.outdated = func(why string) { told = why }
	if err := o.vote("c", store.Position{}, refused, new(bool)); err == nil || told == "" {
		t.Errorf("whose disk is older does not hear of it: %v", err)
	}
	o.memory.note("b", Known{Term: 3, Last: store.Position{Term: 3, Index: 20}, told: 3})
	for last, counts := range map[store.Position]bool{{Term: 3, Index: 20}: true, {Term: 4, Index: 5}: true, {Term: 3, Index: 19}: false} {
		clear(o.older)
		granted := true
		if err := o.vote("b", last, func() error { return nil }, &granted); err != nil || granted != counts {
			t.Errorf("for a log that ends at %s: %v, %v", last, granted, err)
		}
		request := &raft.RequestVoteRequest{RPCHeader: raft.RPCHeader{ID: []byte("b")}, Term: 5, LastLogTerm: last.Term, LastLogIndex: last.Index}
		if o.memory.less(request) == counts {
			t.Errorf("a candidate that ends at %s is refused: %v", last, counts)
		}
		if request.Term = 3; o.memory.less(request) {
			t.Errorf("a candidate is refused for what it may have said later: %s", last)
		}
	}
}

// grants gives every vote.
type grants struct{ Transport }

func (grants) RequestVote(_ raft.ServerID, _ raft.ServerAddress, _ *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	resp.Granted = true
	return nil
}

// A vote that counts is remembered, and one of an older disk is not: the right folder, put in its place, knows nothing of it.
func TestOnlyVotesThatCountAreRemembered(t *testing.T) {
	for last, voted := range map[uint64]uint64{20: 4, 19: 0} {
		o := newObserver(grants{}, "a", func() {})
		o.rolledBack = func(raft.ServerID, string) {}
		o.memory.note("b", Known{Term: 3, Last: store.Position{Term: 3, Index: 20}, told: 3})
		ask := &raft.RequestVoteRequest{RPCHeader: raft.RPCHeader{ID: []byte("a")}, Term: 4, LastLogTerm: 3, LastLogIndex: last}
		if err := o.RequestVote("b", "b", ask, &raft.RequestVoteResponse{}); err != nil {
			t.Fatal(err)
		}
		if k := o.memory.of("b"); k.Voted != voted {
			t.Errorf("asked by one that ends at %d, it is remembered as %+v", last, k)
		}
	}
}

// What has to be heard meets every majority that a member may have been a part of.
func TestRecallMeetsEveryMajority(t *testing.T) {
	for voters := 1; voters <= 9; voters++ {
		all, fewest := recalled(voters)
		quorum := voters/2 + 1
		if others := voters - 1; all > others && voters > 1 || all+quorum-1 <= others {
			t.Errorf("of %d voters %d others are heard", voters, all)
		}
		if fewest+1 != quorum {
			t.Errorf("of %d voters %d others make a majority with it", voters, fewest)
		}
	}
}

// A candidate whose log was cut by a snapshot names the snapshot, and not the end that the library still takes the log to have.
func TestCandidateNamesItsSnapshot(t *testing.T) {
	o := newObserver(nil, "a", func() {})
	o.snapshot = func() (index, term uint64) { return 21, 3 }
	for from, want := range map[store.Position]store.Position{
		{Term: 2, Index: 109}: {Term: 3, Index: 21}, {Term: 3, Index: 22}: {Term: 3, Index: 22}, {Term: 4, Index: 5}: {Term: 4, Index: 5},
	} {
		got := from
		if o.raise(&got.Term, &got.Index); got != want {
			t.Errorf("of %s it names %s", from, got)
		}
	}
}

// Where the whole machine room boots, nobody has a floor and nobody remembers anything: the group comes up again by itself, also from the folders
// of an older release, and also without a machine that does not come back.
func TestAGroupWhoseMachinesAllBootComesUpAgain(t *testing.T) {
	for name, c := range map[string]struct {
		missing string
		within  time.Duration
	}{
		"all":             {"", 3 * time.Second},
		"all-but-one":     {"c", recallWithin + 3*time.Second},
		"all-but-another": {"a", recallWithin + 3*time.Second},
	} {
		runInBubble(t, name, func(t *testing.T) { testAGroupWhoseMachinesAllBootComesUpAgain(t, c.missing, c.within) })
	}
}

func testAGroupWhoseMachinesAllBootComesUpAgain(t *testing.T, missing string, within time.Duration) {
	f := newFloors(t, newGroup(t, "a", "b", "c"))
	f.begin(1)
	f.stopAll()
	began := time.Now()
	for _, name := range f.names() {
		f.boot(f.members[name])
		if name != missing {
			f.start(name)
		}
	}
	mustPropose(t, f.leader(), put(2))
	if took := time.Since(began); took > within {
		t.Errorf("it took %s, at most %s", took, within)
	}
}

// A member whose right folder is put in its place again is counted by those who did not count it, who have not started since: with another
// member down it is the only one that makes a majority. If a vote counted meanwhile that the older folder gave, it is no right one any more.
func TestWhoHoldsAllAgainIsCountedAgain(t *testing.T) {
	runInBubble(t, "counted", func(t *testing.T) {
		f, a, b := rightFolderAgain(t, Known{})
		mustPropose(t, f.leader(), put(2))
		if why := a.node.seen.distrusted(b.node.id); why != "" {
			t.Error(why)
		}
	})
	runInBubble(t, "voted-meanwhile", func(t *testing.T) {
		_, _, b := rightFolderAgain(t, Known{Term: 99, Voted: 99})
		testkit.Until(t, "it ends", func() bool { return isClosed(b.ended) })
		if !errors.Is(b.err, ErrRolledBack) {
			t.Errorf("it ended with %v", b.err)
		}
	})
}

// rightFolderAgain has a know that b had an older folder, and what it did with it, and starts b with its right one. The third member is down.
func rightFolderAgain(t *testing.T, did Known) (f *floors, a, b *member) {
	f = newFloors(t, newGroup(t, "a", "b", "c"))
	f.begin(1)
	a, b = f.leader(), f.followers()[0]
	f.followers()[1].stop()
	b.stop()
	testkit.Until(t, "nobody leads", func() bool { return a.node.LeadingTerm() == 0 })
	id := raft.ServerID(ServerID(b.name, b.instance))
	held := a.node.seen.memory.of(id).Last
	a.node.seen.distrust(id, held.Index, held.Index-1)
	a.node.seen.memory.note(id, did)
	f.boot(b)
	f.start(b.name)
	return f, a, b
}

// A folder from between a snapshot that came and the cut of the log below it is cut as it is checked. It is an older one all the same.
func TestRolledBackFolderThatIsCutAtTheStart(t *testing.T) {
	inBubble(t, testRolledBackFolderThatIsCutAtTheStart)
}

func testRolledBackFolderThatIsCutAtTheStart(t *testing.T) {
	f := newFloors(t, newGroup(t, "a", "b", "c"))
	f.begin(1)
	a, b := f.leader(), f.followers()[0]
	b.stop()
	old := copyDisk(t, b.disk)
	f.start(b.name)
	mustPropose(t, f.leader(), put(2))
	f.settle()
	if _, err := a.node.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	old.snapshots = a.disk.snapshots
	mustPropose(t, f.leader(), put(3))
	f.settle()
	b.stop()
	b.disk = old
	if err := b.open(); !errors.Is(err, ErrRolledBack) {
		t.Errorf("want ErrRolledBack, got %v", err)
	}
}
