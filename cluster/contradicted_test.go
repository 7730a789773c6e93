// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"testing"
	"testing/synctest"

	"fairlead.io/fairlead/internal/testkit"
)

// A leader that was cut off goes on to write what is never committed. When it comes back, the others' log has no more what it lacks, and the
// snapshot that it gets ends where its own log has another entry. It gets that snapshot once, and goes on behind it; so it does if it died right
// after the snapshot came.
func TestLogThatASnapshotContradictsIsCut(t *testing.T) {
	for _, again := range []bool{false, true} {
		runInBubble(t, map[bool]string{false: "goes-on", true: "starts-again"}[again], func(t *testing.T) { cutContradicted(t, again) })
	}
}

func cutContradicted(t *testing.T, again bool) {
	g := newGroup(t, "a", "b", "c")
	g.startAll()
	defer g.stopAll()
	for i := range 5 {
		mustPropose(t, g.leader(), put(i))
	}
	g.settle()
	former := g.leader()
	term := former.node.LeadingTerm()
	g.setCut(former.name, true)
	for range 100 { // in its log alone
		former.node.raft.Apply([]byte("never committed"), 0)
	}
	synctest.Wait()
	if has := former.node.raft.LastIndex(); has < 100 {
		t.Fatalf("it wrote up to %d only", has)
	}
	testkit.Until(t, "it does not lead any more", func() bool { return former.node.LeadingTerm() == 0 })
	for i := 10; i < 20; i++ {
		mustPropose(t, g.leader(), put(i))
	}
	if now := g.leader(); now == former || now.node.LeadingTerm() == term {
		t.Fatal("nobody else came to lead")
	}
	for _, name := range g.names() {
		if name == former.name {
			continue
		}
		if err := g.members[name].node.compact(context.Background(), 0); err != nil {
			t.Fatal(err)
		}
	}
	sent := g.leader().node.seen.sending.bytes()
	g.setCut(former.name, false)
	if again {
		testkit.Until(t, "the snapshot came", func() bool { return former.node.snapshotted() > 0 })
		former.stop()
		g.start(former.name)
	}
	mustPropose(t, g.leader(), put(30))
	g.settle()
	if !has(former.state, 19) || !has(former.state, 30) {
		t.Error("it has another record")
	}
	all := g.leader().node.seen.sending.bytes() - sent
	if size := g.leader().disk.snapshots.list[0].meta.Size; all > 3*uint64(size) {
		t.Errorf("%d bytes of snapshots were sent, of which one has %d", all, size)
	}
}
