// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// slowToRead is a record that takes as long to read as it is told to, by a channel that is closed in the end.
type slowToRead struct {
	Record
	until *atomic.Pointer[chan struct{}]
}

func (l slowToRead) Restore(in io.Reader) error {
	for until := l.until.Load(); until != nil; {
		if _, err := in.Read(nil); err != nil {
			return err
		}
		select {
		case <-*until:
			return l.Record.Restore(in)
		case <-time.After(time.Millisecond):
		}
	}
	return l.Record.Restore(in)
}

// readingGroup is a group of which a member reads a snapshot with policies 0 to 9 in it, until end is called. Policy 10 came behind.
func readingGroup(t *testing.T) (g *group, reader *member, end func()) {
	t.Helper()
	g = newGroup(t, "a", "b", "c")
	g.tuning.TrailingLogs = 1
	until := map[string]*atomic.Pointer[chan struct{}]{}
	for _, name := range g.names() {
		until[name] = new(atomic.Pointer[chan struct{}])
	}
	g.change = func(m *member, o *Options) { o.Machine = slowToRead{Record{m.state}, until[m.name]} }
	g.begin(0)
	reader = g.followers()[0]
	reader.stop()
	for i := 1; i < 10; i++ {
		mustPropose(t, g.leader(), put(i))
	}
	if _, err := g.leader().node.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustPropose(t, g.leader(), put(10))
	read := make(chan struct{})
	until[reader.name].Store(&read)
	end = sync.OnceFunc(func() { close(read) })
	t.Cleanup(end)
	g.start(reader.name)
	testkit.Until(t, "it reads a snapshot", func() bool { return reading(reader) })
	return g, reader, end
}

func reading(m *member) bool {
	_, ok := m.node.fsm.reads()
	return ok
}

// A large snapshot takes long to read. Meanwhile its member votes and takes entries, which is what the group needs of it when another one dies.
func TestAMemberVotesWhileItReadsASnapshot(t *testing.T) {
	inBubble(t, testAMemberVotesWhileItReadsASnapshot)
}

func testAMemberVotesWhileItReadsASnapshot(t *testing.T) {
	g, reader, end := readingGroup(t)
	former := g.leader()
	g.setCut(former.name, true)
	began := time.Now()
	for i := 11; i < 20; i++ {
		mustPropose(t, g.leader(), put(i))
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("the other two went on after %s", took)
	}
	if leader := g.leader(); leader == reader || !reading(reader) {
		t.Fatalf("%s leads; %s reads: %v", leader.name, reader.name, reading(reader))
	}
	g.setCut(former.name, false)
	end()
	g.settle()
	if !has(reader.state, 9) || !has(reader.state, 19) {
		t.Error("it lacks some of what is in the snapshot, and behind it")
	}
}

// What a member is about to have is nowhere to be seen before it has all of it.
func TestNothingIsSeenOfASnapshotThatIsBeingRead(t *testing.T) {
	inBubble(t, testNothingIsSeenOfASnapshotThatIsBeingRead)
}

func testNothingIsSeenOfASnapshotThatIsBeingRead(t *testing.T) {
	g, reader, end := readingGroup(t)
	for i := 11; i < 20; i++ {
		mustPropose(t, g.leader(), put(i))
	}
	commit := g.leader().node.Contact().Commit
	testkit.Until(t, "it hears of that", func() bool { return reader.node.Contact().Commit >= commit })
	before := reader.state.Applied()
	for what, ask := range map[string]func(context.Context) error{
		"a backup":              func(ctx context.Context) error { _, err := reader.node.Backup(ctx, io.Discard); return err },
		"applied is the commit": func(ctx context.Context) error { return reader.node.AwaitApplied(ctx, commit) },
		"a barrier":             func(ctx context.Context) error { return reader.node.fsm.loaded(ctx) },
		"a snapshot":            func(ctx context.Context) error { _, err := reader.node.Snapshot(ctx); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := ask(ctx); err == nil {
			t.Errorf("%s: done", what)
		}
		cancel()
	}
	if c := reader.node.Contact(); c.CaughtUp() || c.Applied >= commit || reader.state.Applied() != before || has(reader.state, 1) {
		t.Errorf("%+v; its record is of %d", c, reader.state.Applied())
	}
	end()
	if err := reader.node.AwaitApplied(t.Context(), commit); err != nil {
		t.Fatal(err)
	}
	g.settle()
	if _, err := reader.node.Backup(t.Context(), io.Discard); err != nil {
		t.Error(err)
	}
}

// A member that has no record to lead with lets others lead, also when it is asked to.
func TestAMemberThatReadsASnapshotDoesNotLead(t *testing.T) {
	inBubble(t, testAMemberThatReadsASnapshotDoesNotLead)
}

func testAMemberThatReadsASnapshotDoesNotLead(t *testing.T) {
	g, reader, end := readingGroup(t)
	leader := g.leader()
	if err := unguarded(leader, reader); err == nil {
		t.Error("it took the leadership")
	}
	if err := reader.node.seen.RequestPreVote(leader.node.id, raft.ServerAddress(leader.name), &raft.RequestPreVoteRequest{}, new(raft.RequestPreVoteResponse)); !errors.Is(err, errLoading) {
		t.Errorf("it asks for votes: %v", err)
	}
	for _, name := range g.names() {
		g.setCut(name, true) // nobody hears of anybody: each would stand
	}
	time.Sleep(time.Second)
	term := reader.node.raft.CurrentTerm()
	g.mu.Lock()
	g.cut = map[string]bool{leader.name: true}
	g.connect()
	g.mu.Unlock()
	mustPropose(t, g.leader(), put(11))
	if g.leader() == reader || reader.node.raft.CurrentTerm() <= term {
		t.Errorf("%s leads, in term %d; that was %d", g.leader().name, reader.node.raft.CurrentTerm(), term)
	}
	g.setCut(leader.name, false)
	end()
	g.settle()
	testkit.Until(t, "it leads, now that it can", func() bool { return g.leadsAgain(reader) })
	mustPropose(t, reader, put(12))
}

// Who ends does not wait for what it reads, and comes back with all of it.
func TestAMemberEndsWhileItReadsASnapshot(t *testing.T) {
	inBubble(t, testAMemberEndsWhileItReadsASnapshot)
}

func testAMemberEndsWhileItReadsASnapshot(t *testing.T) {
	g, reader, end := readingGroup(t)
	began := time.Now()
	reader.stop()
	if took := time.Since(began); took > time.Second || reader.err != nil {
		t.Errorf("it ended after %s: %v", took, reader.err)
	}
	end()
	g.start(reader.name)
	g.settle()
}

// A snapshot that cannot be read ends the member, whose library takes it for restored.
func TestASnapshotThatCannotBeReadEndsThatMember(t *testing.T) {
	for name, broken := range map[string]io.Reader{"damaged": bytes.NewReader([]byte("no snapshot")), "panics": nil} {
		t.Run(name, func(t *testing.T) {
			a := newApplier()
			ended := make(chan error, 1)
			a.currentTerm, a.fail = func() uint64 { return 1 }, func(err error) { ended <- err }
			if err := a.Restore(snapshotAt(9, 1, broken)); err != nil {
				t.Fatalf("a library that leads would panic: %v", err)
			}
			err := <-ended
			_, broke := a.ApplyBatch([]*raft.Log{{Index: 10, Term: 2, Type: raft.LogCommand}})[0].(error)
			if _, snapshot := a.Snapshot(); err == nil || !broke || snapshot == nil || a.position() != 0 {
				t.Errorf("it ended with %v; it applies more: %v; a snapshot: %v; position %d", err, !broke, snapshot, a.position())
			}
			if err := a.Restore(snapshotAt(9, 1, broken)); err != nil {
				t.Error(err)
			}
		})
	}
}

// snapshotAt is what the guarded store opens.
func snapshotAt(index, term uint64, state io.Reader) *store.Snapshot {
	return &store.Snapshot{ReadCloser: io.NopCloser(state), Meta: &raft.SnapshotMeta{ID: fmt.Sprint("s", index), Index: index, Term: term}}
}

// Entries that are too many wait, and none is lost.
func TestEntriesBehindASnapshotAreBounded(t *testing.T) {
	l := newLoading(nil, 3)
	big := []*raft.Log{{Term: 3, Data: make([]byte, waitingBytes/2)}}
	for i, want := range []bool{true, true, false} {
		if l.put(big) != want {
			t.Errorf("kept for the time %d: %v", i+1, !want)
		}
	}
	if n := len(l.take()); n != 2 || !l.put(big) {
		t.Errorf("%d were taken out", n)
	}
	if l.put([]*raft.Log{{Term: 3}, {Term: 4}}) {
		t.Error("somebody may wait for an answer to those of a later term")
	}
}

// history is a log of some entries, with what a record is behind each of them.
type history struct {
	logs    []*raft.Log
	states  [][]byte
	digests []fsm.Digest
}

func newHistory(t testing.TB, entries int) *history {
	h := &history{}
	s := fsm.New()
	encode := encodeFor(s)
	for i := range entries {
		proposals := openingFor(s)()
		if i > 0 {
			proposals = []Proposal{put(i)}
		}
		data, err := encode(proposals)
		if err != nil {
			t.Fatal(err)
		}
		h.logs = append(h.logs, &raft.Log{Index: uint64(i) + 1, Term: 1, Type: raft.LogCommand, Data: data})
		s.ApplyEntries([]LogEntry{{Index: Index(i) + 1, Term: 1, Data: data}})
		var state bytes.Buffer
		if err := s.Freeze().Write(&state); err != nil {
			t.Fatal(err)
		}
		h.states, h.digests = append(h.states, state.Bytes()), append(h.digests, s.Read().Digest())
	}
	return h
}

// Whatever comes while snapshots are read, one over the other: position and record belong together at any time, and in the end there is what is there
// when each snapshot is read at once.
func TestPropertySnapshotsAreReadBesideTheLog(t *testing.T) {
	h := newHistory(t, 60)
	testkit.Check(t, func(t *rapid.T) {
		state, until := fsm.New(), new(atomic.Pointer[chan struct{}])
		a := &adapter{
			machine: slowToRead{Record{state}, until}, newMachine: emptyRecord, changed: func() {}, replacing: func() {},
			fail: func(err error) { t.Errorf("it ended: %v", err) }, currentTerm: func() uint64 { return 1 },
		}
		letGo := func() {}
		defer func() { letGo() }()
		next := 0 // how many entries are applied, to the library
		t.Repeat(map[string]func(*rapid.T){
			"entries": func(t *rapid.T) {
				n := min(rapid.IntRange(1, 5).Draw(t, "entries"), len(h.logs)-next)
				if n == 0 {
					t.Skip("no more")
				}
				if answers := a.ApplyBatch(h.logs[next : next+n]); len(answers) != n {
					t.Fatalf("%d answers to %d entries", len(answers), n)
				}
				next += n
			},
			"snapshot": func(t *rapid.T) {
				next = rapid.IntRange(1, len(h.logs)).Draw(t, "index")
				letGo()
				wait := make(chan struct{})
				until.Store(&wait)
				letGo = sync.OnceFunc(func() { close(wait) })
				if err := a.Restore(snapshotAt(uint64(next), 1, bytes.NewReader(h.states[next-1]))); err != nil {
					t.Fatal(err)
				}
			},
			"read": func(t *rapid.T) { letGo() },
			"": func(t *rapid.T) {
				a.mu.Lock()
				defer a.mu.Unlock()
				if a.applied > 0 && state.Read().Digest() != h.digests[a.applied-1] && a.loading == nil {
					t.Fatalf("at entry %d the record is that of %d", a.applied, state.Applied())
				}
			},
		})
		letGo()
		if err := a.loaded(t.Context()); err != nil {
			t.Fatal(err)
		}
		if next > 0 && (a.position() != uint64(next) || state.Read().Digest() != h.digests[next-1]) {
			t.Fatalf("it is at %d, with the record of %d; want %d", a.position(), state.Applied(), next)
		}
	})
}
