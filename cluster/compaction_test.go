// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// large is a command of some kilobytes. All of them write the same policy.
func large(kilobytes int) Proposal {
	p := put(0)
	p.Command.(*fsm.PutRegister).Spec = make([]byte, kilobytes<<10)
	return p
}

// rest waits until nobody has anything to do, and for members who pause between two snapshots.
func rest() {
	synctest.Wait()
	time.Sleep(2 * compactionPause)
	synctest.Wait()
}

// However few entries there are, and whatever they take, a log has no more bytes than it may have.
func TestLogIsBoundedInBytes(t *testing.T) {
	for name, kilobytes := range map[string]int{"small": 1, "some": 4, "more-than-a-quarter": 20, "more-than-all": 80} {
		runInBubble(t, name, func(t *testing.T) {
			g := newGroup(t, "a", "b", "c")
			g.tuning.MaxLogBytes = 64 << 10
			g.startAll()
			defer g.stopAll()
			away := g.followers()[0]
			defer func() { synctest.Wait() }()
			for i := range max(8, 150/kilobytes) {
				if i == 3 {
					synctest.Wait()
					away.stop()
				}
				mustPropose(t, g.leader(), large(kilobytes))
				rest()
				for _, name := range g.names() {
					n := g.running(name)
					if n == nil {
						continue
					}
					if got := n.meter.Bytes(); got > g.tuning.MaxLogBytes*3/4 {
						t.Fatalf("after %d entries %s has a log of %d bytes, of %d", i, name, got, g.tuning.MaxLogBytes)
					}
				}
			}
			g.start(away.name) // it lacks what the others' logs have no more
			mustPropose(t, g.leader(), put(1))
			g.settle()
			for _, name := range g.names() {
				n := g.running(name)
				if n.snapshotted() == 0 {
					t.Errorf("%s took no snapshot", name)
				}
				if _, err := n.Snapshot(context.Background()); err != nil {
					t.Error(err)
				}
				if c := n.Contact(); !c.CaughtUp() {
					t.Errorf("%s is not caught up any more: %+v", name, c)
				}
				if got := n.meter.Bytes(); got > g.tuning.MaxLogBytes/4 {
					t.Errorf("with a snapshot of just now %s has a log of %d bytes", name, got)
				}
			}
			rest()
			g.stopAll()
			g.startAll()
			g.settle()
			rest()
		})
	}
}

// A log that an earlier release did not bound is shortened as soon as anything is applied.
func TestLongLogIsShortenedAtAStart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGroup(t, "a")
		g.tuning.MaxLogBytes = math.MaxInt64
		g.startAll()
		defer g.stopAll()
		for range 40 {
			mustPropose(t, g.leader(), large(20))
		}
		rest()
		if _, err := g.running("a").Snapshot(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := g.running("a").meter.Bytes(); got < 800<<10 {
			t.Fatalf("%d bytes: the test shows nothing", got)
		}
		g.members["a"].stop()
		g.tuning.MaxLogBytes = 256 << 10
		g.start("a")
		g.leader()
		rest()
		if got := g.running("a").meter.Bytes(); got > g.tuning.MaxLogBytes/4 {
			t.Errorf("%d bytes", got)
		}
	})
}

// Few bytes leave it to the number of entries, as ever.
func TestSnapshotIsDueAfterSoManyEntries(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGroup(t, "a")
		g.tuning.SnapshotInterval, g.tuning.SnapshotThreshold, g.tuning.TrailingLogs = time.Minute, 50, 10
		g.startAll()
		defer g.stopAll()
		n := g.leader().node
		for i := range 20 {
			mustPropose(t, g.leader(), put(i))
		}
		time.Sleep(5 * time.Minute)
		if at := n.snapshotted(); at != 0 {
			t.Fatalf("a snapshot at %d", at)
		}
		for i := range 60 {
			mustPropose(t, g.leader(), put(i))
		}
		testkit.Until(t, "a snapshot", func() bool { return n.snapshotted() > 0 })
		rest()
		first, err := n.stores.Log.FirstIndex()
		if last, _ := n.stores.Log.LastIndex(); err != nil || last-first != 9 {
			t.Errorf("entries %d to %d are kept, %v", first, last, err)
		}
	})
}

// A log that is cut behind its newest entry cannot tell that what came after the newest command needs no applying. Nobody may have asked before.
func TestRecordStaysCompleteWhateverIsCut(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGroup(t, "a")
		g.tuning.MaxLogBytes = 400 // an entry takes more than a quarter of it: nothing may stay
		g.startAll()
		defer g.stopAll()
		mustPropose(t, g.leader(), put(1))
		rest()
		g.members["a"].stop()
		err := g.members["a"].openWith(func(n *Node) { // it does not run yet: only the library is there
			testkit.Until(t, "a leader", func() bool { return n.raft.State() == raft.Leader })
			if err := n.raft.Barrier(0).Error(); err != nil {
				t.Fatal(err)
			}
			snapshot, err := n.Snapshot(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			at := snapshot.Index
			if n.meter.Bytes() > 0 || at != Index(n.raft.LastIndex()) || n.fsm.position() == uint64(at) {
				t.Fatalf("a log of %d bytes and a snapshot at %d: the test shows nothing", n.meter.Bytes(), at)
			}
			if c := n.Contact(); c.Applied != at {
				t.Errorf("its record is complete up to %d, not %d", c.Applied, at)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		g.leader()
		rest()
	})
}

// As long as neither so many entries nor so many bytes are behind the newest snapshot, none is taken: not for the first entry there is either.
func TestNoSnapshotIsTakenBeforeOneIsDue(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGroup(t, "a", "b", "c")
		g.startAll()
		defer g.stopAll()
		for i := range 5 {
			mustPropose(t, g.leader(), put(i))
			rest()
		}
		if _, err := g.leader().node.Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
		at := g.leader().node.snapshotted()
		for i := range 5 {
			mustPropose(t, g.leader(), put(i))
			rest()
		}
		if now := g.leader().node.snapshotted(); now != at {
			t.Errorf("a snapshot up to %d was taken by itself, %d entries behind the one up to %d", now, now-at, at)
		}
		for _, m := range g.followers() {
			if now := m.node.snapshotted(); now != 0 {
				t.Errorf("%s took a snapshot up to %d by itself", m.name, now)
			}
		}
	})
}
