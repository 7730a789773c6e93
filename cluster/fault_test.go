// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

var errDisk = errors.New("input/output error")

// failingStore fails writes of the log, or of the stable store, from a moment on.
type failingStore struct {
	*raft.InmemStore
	log, stable *atomic.Bool
}

func (f *failingStore) StoreLog(l *raft.Log) error { return f.StoreLogs([]*raft.Log{l}) }
func (f *failingStore) StoreLogs(logs []*raft.Log) error {
	if f.log.Load() {
		return errDisk
	}
	return f.InmemStore.StoreLogs(logs)
}

func (f *failingStore) Set(k, v []byte) error {
	if f.stable.Load() {
		return errDisk
	}
	return f.InmemStore.Set(k, v)
}

// failing makes the store of every member fail when its switch says so.
func failing(g *group) (log, stable map[string]*atomic.Bool) {
	log, stable = map[string]*atomic.Bool{}, map[string]*atomic.Bool{}
	for name := range g.members {
		log[name], stable[name] = new(atomic.Bool), new(atomic.Bool)
	}
	g.change = func(m *member, o *Options) {
		s := &failingStore{m.disk.entries, log[m.name], stable[m.name]}
		o.Stores.Log, o.Stores.Stable = s, s
	}
	return log, stable
}

// wantEnd waits for a member to end by itself.
func wantEnd(t *testing.T, m *member, cause error) {
	t.Helper()
	testkit.Until(t, m.name+" ends", func() bool { return isClosed(m.ended) })
	if !errors.Is(m.err, cause) {
		t.Fatalf("%s ended with %v, want %v", m.name, m.err, cause)
	}
	if strings.Contains(m.err.Error(), "\n") {
		t.Fatalf("more than one line: %q", m.err)
	}
}

// wantPanic waits for a member to end by a panic whose value or stack holds what.
func wantPanic(t *testing.T, m *member, what string) {
	t.Helper()
	testkit.Until(t, m.name+" ends", func() bool { return isClosed(m.ended) })
	var p *PanicError
	if !errors.As(m.err, &p) || !strings.Contains(fmt.Sprint(p.Value, string(p.Stack)), what) {
		t.Fatalf("want a PanicError about %s, got %v", what, m.err)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestFailedWriteEndsThatMemberOnly(t *testing.T) {
	for _, who := range []string{"leader", "follower"} {
		runInBubble(t, who, func(t *testing.T) {
			g := newGroup(t, "a", "b", "c")
			log, _ := failing(g)
			g.startAll()
			defer g.stopAll()
			mustPropose(t, g.leader(), put(1))
			victim := g.leader()
			if who == "follower" {
				victim = g.followers()[0]
			}
			log[victim.name].Store(true)
			if who == "leader" {
				_, err := victim.node.Propose(context.Background(), Bulk, put(2))
				if !errors.Is(err, ErrUnknownOutcome) {
					t.Fatalf("want ErrUnknownOutcome, got %v", err)
				}
			}
			testkit.Until(t, "the others go on", func() bool {
				_, err := g.leader().node.Propose(context.Background(), Bulk, put(3))
				return err == nil
			})
			wantEnd(t, victim, errDisk)
			var fault *store.Error
			if !errors.As(victim.err, &fault) || fault.Path != "disk of "+victim.name || fault.Remedy == "" {
				t.Fatalf("path or remedy is missing: %v", victim.err)
			}
			g.settle()
		})
	}
}

// The library panics when it cannot keep its term; here that must not take the other members of the process along.
func TestTermThatCannotBeKeptEndsThatMemberOnly(t *testing.T) {
	inBubble(t, testTermThatCannotBeKeptEndsThatMemberOnly)
}

func testTermThatCannotBeKeptEndsThatMemberOnly(t *testing.T) {
	g := newGroup(t, "a", "b", "c")
	_, stable := failing(g)
	g.startAll()
	defer g.stopAll()
	victim := g.followers()[0]
	stable[victim.name].Store(true)
	g.leader().stop() // an election follows, and with it a new term
	wantEnd(t, victim, errDisk)
}

// fragile is a machine that panics on one policy.
type fragile struct {
	Record
	on fsm.RegisterID
}

func (f fragile) ApplyEntries(entries []LogEntry) [][]Outcome {
	for _, e := range entries {
		_, proposals, err := fsm.DecodeEntry(e.Data)
		if err != nil {
			panic(err)
		}
		for _, p := range proposals {
			if c, ok := p.Command.(*fsm.PutRegister); ok && c.ID == f.on {
				panic("this copy of the record differs")
			}
		}
	}
	return f.Record.ApplyEntries(entries)
}

func TestPanicInApplyEndsThatMemberOnly(t *testing.T) {
	for _, who := range []string{"leader", "follower"} {
		runInBubble(t, who, func(t *testing.T) {
			g := newGroup(t, "a", "b", "c")
			var victims sync.Map
			g.change = func(m *member, o *Options) {
				o.Machine = conditional{fragile{Record{m.state}, policyID(7)}, func() bool { _, ok := victims.Load(m.name); return ok }}
			}
			g.startAll()
			defer g.stopAll()
			victim := g.leader()
			if who == "follower" {
				victim = g.followers()[0]
			}
			victims.Store(victim.name, true)
			if _, err := victim.node.Propose(context.Background(), Bulk, put(7)); who == "leader" && !errors.Is(err, ErrUnknownOutcome) {
				t.Fatalf("want ErrUnknownOutcome, got %v", err)
			}
			wantPanic(t, victim, "ApplyEntries")
			mustPropose(t, g.leader(), put(8))
			g.settle()
			if !has(g.leader().state, 7) {
				t.Fatal("the committed command is lost")
			}
		})
	}
}

// conditional is fragile only when told to be.
type conditional struct {
	fragile
	when func() bool
}

func (c conditional) ApplyEntries(entries []LogEntry) [][]Outcome {
	if c.when() {
		return c.fragile.ApplyEntries(entries)
	}
	return c.Record.ApplyEntries(entries)
}

func TestPanicOfALeaderFunctionEndsThatMember(t *testing.T) {
	inBubble(t, testPanicOfALeaderFunctionEndsThatMember)
}

func testPanicOfALeaderFunctionEndsThatMember(t *testing.T) {
	g := newGroup(t, "a")
	m := g.members["a"]
	if err := m.openWith(func(n *Node) { n.WhileLeader(func(context.Context, uint64) { panic("a bug") }) }); err != nil {
		t.Fatal(err)
	}
	defer m.stop()
	wantPanic(t, m, "a bug")
}

func TestCorruptEntryIsNoticedAtTheStart(t *testing.T) {
	inBubble(t, testCorruptEntryIsNoticedAtTheStart)
}

func testCorruptEntryIsNoticedAtTheStart(t *testing.T) {
	g := newGroup(t, "a")
	g.startAll()
	for i := range 5 {
		mustPropose(t, g.leader(), put(i))
	}
	g.stopAll()
	m := g.members["a"]
	last, err := m.disk.entries.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	var l raft.Log
	if err := m.disk.entries.GetLog(last-1, &l); err != nil {
		t.Fatal(err)
	}
	l.Data = append([]byte{1}, l.Data...)
	if err := m.disk.entries.StoreLog(&l); err != nil {
		t.Fatal(err)
	}
	var fault *store.Error
	if err := m.open(); !errors.As(err, &fault) || !errors.Is(err, store.ErrCorrupt) {
		t.Fatalf("want ErrCorrupt as a store.Error, got %v", err)
	}
}
