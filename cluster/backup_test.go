// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// backedUp is a small group, its record's backup after commands 0..9, and 10..19 committed since.
func backedUp(t *testing.T, names ...string) (*group, []byte) {
	t.Helper()
	g := newGroup(t, names...)
	g.startAll()
	return g, backUp(t, g)
}

// backUp gives the backup after commands 0..9, and commits 10..19.
func backUp(t *testing.T, g *group) []byte {
	t.Helper()
	for i := range 10 {
		mustPropose(t, g.leader(), put(i))
	}
	var file bytes.Buffer
	testkit.Eventually(t, "the backup", func() error { // a leader on a busy machine may have lost its lease just now
		file.Reset()
		_, err := g.leader().node.Backup(context.Background(), &file)
		return err
	})
	for i := 10; i < 20; i++ {
		mustPropose(t, g.leader(), put(i))
	}
	return file.Bytes()
}

func TestRestoreReplacesTheRecordOfEverybodyAndBeginsAnEpoch(t *testing.T) {
	inBubble(t, testRestoreReplacesTheRecordOfEverybodyAndBeginsAnEpoch)
}

func testRestoreReplacesTheRecordOfEverybodyAndBeginsAnEpoch(t *testing.T) {
	g, file := backedUp(t, "a", "b", "c")
	defer g.stopAll()
	restored, err := g.leader().node.Restore(context.Background(), bytes.NewReader(file), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, epoch, _ := restored.State.(Record).Identity(); epoch != 2 {
		t.Fatalf("epoch %d, want 2", epoch)
	}
	mustPropose(t, g.leader(), put(50))
	g.settle()
	for _, name := range g.names() {
		s := g.members[name].state
		if _, epoch, _ := s.Identity(); epoch != 2 {
			t.Fatalf("%s is in epoch %d", name, epoch)
		}
		if !has(s, 9) || has(s, 10) || !has(s, 50) {
			t.Fatalf("%s holds another record than the backup's and what came later", name)
		}
	}
	g.stopAll() // and it stays so on disk
	for _, name := range g.names() {
		g.start(name)
	}
	g.settle()
	if s := g.leader().state; has(s, 10) || !has(s, 50) {
		t.Fatal("after a restart the record is another one")
	}
}

// What the functions of the leader found in the record before is not the record any more.
func TestLeaderBeginsAnewAfterARestore(t *testing.T) { inBubble(t, testLeaderBeginsAnewAfterARestore) }

func testLeaderBeginsAnewAfterARestore(t *testing.T) {
	g := newGroup(t, "a")
	var begun atomic.Int64
	m := g.members["a"]
	if err := m.openWith(func(n *Node) {
		n.WhileLeader(func(ctx context.Context, _ uint64) { begun.Add(1); <-ctx.Done() })
	}); err != nil {
		t.Fatal(err)
	}
	defer g.stopAll()
	mustPropose(t, m, put(1))
	testkit.Until(t, "the leader's functions run", func() bool { return begun.Load() > 0 })
	var file bytes.Buffer
	if _, err := m.node.Backup(context.Background(), &file); err != nil {
		t.Fatal(err)
	}
	before := begun.Load()
	if _, err := m.node.Restore(context.Background(), &file, false); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "they begin anew", func() bool { return begun.Load() > before })
	mustPropose(t, m, put(2))
}

func TestDryRunOfARestoreChangesNothing(t *testing.T) {
	inBubble(t, testDryRunOfARestoreChangesNothing)
}

func testDryRunOfARestoreChangesNothing(t *testing.T) {
	g, file := backedUp(t, "a")
	defer g.stopAll()
	before := g.leader().state.Read().Digest()
	restored, err := g.leader().node.Restore(context.Background(), bytes.NewReader(file), true)
	if err != nil {
		t.Fatal(err)
	}
	if got := g.leader().state.Read().Digest(); got != before {
		t.Fatal("the record changed")
	}
	if !has(restored.State.(Record).State, 9) || has(restored.State.(Record).State, 10) {
		t.Fatal("what it shows is not the backup")
	}
}

func TestRestoreIsForTheLeader(t *testing.T) { inBubble(t, testRestoreIsForTheLeader) }

func testRestoreIsForTheLeader(t *testing.T) {
	g, file := backedUp(t, "a", "b", "c")
	defer g.stopAll()
	if _, err := g.followers()[0].node.Restore(context.Background(), bytes.NewReader(file), false); !errors.Is(err, ErrNotLeader) {
		t.Fatalf("want ErrNotLeader, got %v", err)
	}
}

// A backup with any bit changed, or cut anywhere, or with anything behind it, is refused before anything happens.
func TestPropertyDamagedBackupIsRefused(t *testing.T) {
	g, file := backedUp(t, "a")
	defer g.stopAll()
	n, before := g.leader().node, g.leader().state.Read().Digest()
	testkit.Check(t, func(t *rapid.T) {
		at := rapid.IntRange(0, len(file)-1).Draw(t, "at")
		damaged := slices.Clone(file)
		switch rapid.SampledFrom([]string{"cut", "changed", "longer"}).Draw(t, "how") {
		case "cut":
			damaged = damaged[:at]
		case "changed":
			damaged[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		default:
			damaged = append(damaged, rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "more")...)
		}
		if _, err := n.Restore(context.Background(), bytes.NewReader(damaged), false); !errors.Is(err, ErrNotABackup) {
			t.Fatalf("want ErrNotABackup, got %v", err)
		}
	})
	if g.leader().state.Read().Digest() != before {
		t.Fatal("the record changed")
	}
}

func TestBackupOfAFollowerIsWhole(t *testing.T) { inBubble(t, testBackupOfAFollowerIsWhole) }

func testBackupOfAFollowerIsWhole(t *testing.T) {
	g, _ := backedUp(t, "a", "b", "c")
	defer g.stopAll()
	g.settle()
	var file bytes.Buffer
	h, err := g.followers()[0].node.Backup(context.Background(), &file)
	if err != nil {
		t.Fatal(err)
	}
	s := fsm.New()
	if _, err := readBackup(&file, s.Restore); err != nil {
		t.Fatal(err)
	}
	if s.Applied() > h.Index || !has(s, 19) {
		t.Fatalf("it says index %d and holds %d", h.Index, s.Applied())
	}
}

// recoverMember makes a group of one of a stopped member.
func recoverMember(t *testing.T, m *member) Recovered {
	t.Helper()
	s := fsm.New()
	out, err := Recover(RecoverOptions{
		Name: m.name, Instance: m.instance, Address: m.name, Stores: m.disk.stores(), Path: "disk of " + m.name,
		Machine: Record{s}, NewMachine: emptyRecord, Encode: encodeFor(s), Renew: renew, Log: m.group.log,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRecoveredMemberIsAGroupOfOneInANewEpoch(t *testing.T) {
	inBubble(t, testRecoveredMemberIsAGroupOfOneInANewEpoch)
}

func testRecoveredMemberIsAGroupOfOneInANewEpoch(t *testing.T) {
	g, _ := backedUp(t, "a", "b", "c")
	defer g.stopAll()
	g.settle()
	g.stopAll()
	out := recoverMember(t, g.members["b"])
	var others []string
	for _, p := range out.Others {
		others = append(others, p.ID)
	}
	slices.Sort(others)
	if !slices.Equal(others, []string{"a-1", "c-1"}) {
		t.Fatalf("to be emptied: %v", others)
	}
	b := g.start("b")
	mustPropose(t, b, put(50))
	for i := range 20 {
		if !has(b.state, i) {
			t.Fatalf("command %d is lost", i)
		}
	}
	if _, epoch, _ := b.state.Identity(); epoch != 2 {
		t.Fatalf("epoch %d, want 2", epoch)
	}
	// The others come back empty, as new servers.
	for _, name := range []string{"a", "c"} {
		g.members[name].wipe()
		g.start(name)
	}
	testkit.Until(t, "three voters", func() bool { return len(g.voters()) == 3 })
	g.settle()
}

func TestRecoveringTwiceIsHarmless(t *testing.T) { inBubble(t, testRecoveringTwiceIsHarmless) }

func testRecoveringTwiceIsHarmless(t *testing.T) {
	g, _ := backedUp(t, "a", "b", "c")
	defer g.stopAll()
	g.settle()
	g.stopAll()
	if out := recoverMember(t, g.members["b"]); out.Again {
		t.Error("the first time was not the first")
	}
	if out := recoverMember(t, g.members["b"]); len(out.Others) != 0 || !out.Again {
		t.Errorf("the second time: %+v", out)
	}
	b := g.start("b")
	mustPropose(t, b, put(50))
	if !has(b.state, 19) {
		t.Fatal("a command is lost")
	}
	b.stop()
	if out := recoverMember(t, b); len(out.Others) != 0 || out.Again {
		t.Errorf("after the folder was used: %+v", out)
	}
}

func TestEmptyFolderIsNotRecovered(t *testing.T) { inBubble(t, testEmptyFolderIsNotRecovered) }

func testEmptyFolderIsNotRecovered(t *testing.T) {
	g := newGroup(t, "a")
	s := fsm.New()
	_, err := Recover(RecoverOptions{
		Name: "a", Instance: "1", Address: "a", Stores: g.members["a"].disk.stores(), Path: "p", Machine: Record{s}, NewMachine: emptyRecord,
		Encode: encodeFor(s), Renew: renew, Log: g.log,
	})
	if err == nil {
		t.Fatal("a group was made of nothing")
	}
}

func TestSnapshotShortensTheLogAndIsWhatAMemberStartsFrom(t *testing.T) {
	inBubble(t, testSnapshotShortensTheLogAndIsWhatAMemberStartsFrom)
}

func testSnapshotShortensTheLogAndIsWhatAMemberStartsFrom(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	g.tuning.TrailingLogs = 2
	g.startAll()
	defer g.stopAll()
	for i := range 30 {
		mustPropose(t, g.leader(), put(i))
	}
	g.settle()
	m := g.followers()[0]
	snapshot, err := m.node.Snapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if first, _ := m.disk.entries.FirstIndex(); first < uint64(snapshot.Index)-5 {
		t.Fatalf("a snapshot up to %d, and the log still begins at %d", snapshot.Index, first)
	}
	m.stop()
	for i := 30; i < 40; i++ {
		mustPropose(t, g.leader(), put(i))
	}
	g.start(m.name)
	g.settle()

	// One that is far behind gets a snapshot from the leader.
	m.stop()
	for i := 40; i < 80; i++ {
		mustPropose(t, g.leader(), put(i))
	}
	for _, name := range g.names() {
		if n := g.running(name); n != nil {
			if _, err := n.Snapshot(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	g.start(m.name)
	g.settle()
	if !has(m.state, 79) {
		t.Fatal("a command is missing")
	}
}
