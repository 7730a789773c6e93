// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// patience bounds what a test waits for in other ways than testkit.Until.
const patience = testkit.Patience

// memDisk is what a member keeps in memory: like a real disk, it survives the member.
type memDisk struct {
	entries   *raft.InmemStore // log and stable store
	snapshots *memSnapshots
}

func newDisk() *memDisk { return &memDisk{entries: raft.NewInmemStore(), snapshots: &memSnapshots{}} }

func (d *memDisk) stores() store.Stores {
	return store.Stores{Log: d.entries, Stable: d.entries, Snapshots: d.snapshots}
}

// guardOf gives a disk as a member writes it.
func guardOf(d *memDisk) store.Stores { return store.NewGuard("disk", d.stores()).Checked() }

// memSnapshots keeps whole snapshots only: one that was not finished is gone with the process.
type memSnapshots struct {
	mu   sync.Mutex
	list []memSnapshot // newest first
}

type memSnapshot struct {
	meta raft.SnapshotMeta
	data []byte
}

type memSink struct {
	bytes.Buffer
	into *memSnapshots
	meta raft.SnapshotMeta
	done bool
}

func (s *memSnapshots) Create(version raft.SnapshotVersion, index, term uint64, c raft.Configuration, ci uint64,
	_ raft.Transport,
) (raft.SnapshotSink, error) {
	return &memSink{into: s, meta: raft.SnapshotMeta{
		Version: version, ID: fmt.Sprintf("%d-%d-%d", term, index, time.Now().UnixNano()), Index: index, Term: term,
		Configuration: c, ConfigurationIndex: ci,
	}}, nil
}

func (s *memSnapshots) List() ([]*raft.SnapshotMeta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*raft.SnapshotMeta
	for i := range s.list {
		meta := s.list[i].meta
		out = append(out, &meta)
	}
	return out, nil
}

func (s *memSnapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.list {
		if one.meta.ID == id {
			meta := one.meta
			return &meta, io.NopCloser(bytes.NewReader(one.data)), nil
		}
	}
	return nil, nil, fmt.Errorf("no snapshot %s", id)
}

func (s *memSink) ID() string    { return s.meta.ID }
func (s *memSink) Cancel() error { s.done = true; return nil }
func (s *memSink) Close() error {
	if s.done {
		return nil
	}
	s.done = true
	s.meta.Size = int64(s.Len())
	s.into.mu.Lock()
	defer s.into.mu.Unlock()
	s.into.list = append([]memSnapshot{{s.meta, slices.Clone(s.Bytes())}}, s.into.list...)
	if len(s.into.list) > 2 {
		s.into.list = s.into.list[:2]
	}
	return nil
}

// group is some members in this process, over in-memory transports.
type group struct {
	t       testing.TB
	tuning  Tuning
	log     *slog.Logger
	change  func(m *member, o *Options) // optional, before a member is opened
	mu      sync.Mutex
	members map[string]*member
	cut     map[string]bool
	bubble  bool // of testing/synctest
}

// member is one of them. node and state are those of its present life.
type member struct {
	group    *group
	name     string
	instance string
	disk     *memDisk
	wire     *raft.InmemTransport
	node     *Node
	state    *fsm.State
	cancel   context.CancelFunc
	ended    chan struct{}
	err      error
}

// quick is tuned for tests: fast, though elections still happen when the machine holds its breath.
func quick() Tuning {
	return Tuning{
		Heartbeat: 100 * time.Millisecond, CommitNotice: 2 * time.Millisecond,
		SnapshotInterval: time.Hour, Stabilization: 100 * time.Millisecond,
	}
}

// inBubble runs a test of a group in the time of testing/synctest: nobody waits for anything, and however late the machine runs a
// goroutine, no clock goes on meanwhile.
func inBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bubbles.Store(t, true)
		defer bubbles.Delete(t)
		test(t)
	})
}

// bubbles has the tests that are run inBubble.
var bubbles sync.Map

// runInBubble is t.Run, with a subtest that is run inBubble.
func runInBubble(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { inBubble(t, test) })
}

// newGroup makes members that do not run yet.
func newGroup(t testing.TB, names ...string) *group {
	g := &group{t: t, tuning: quick(), log: testLog(), members: map[string]*member{}, cut: map[string]bool{}}
	_, g.bubble = bubbles.Load(t)
	for _, name := range names {
		g.members[name] = &member{group: g, name: name, instance: "1", disk: newDisk()}
	}
	return g
}

func (g *group) names() []string {
	names := make([]string, 0, len(g.members))
	for name := range g.members {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// testLog shows what members log when FAIRLEAD_TEST_LOG is set to a level.
func testLog() *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(os.Getenv("FAIRLEAD_TEST_LOG"))); err != nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

// startAll starts every member; they found the group on the first time.
func (g *group) startAll() {
	g.t.Helper()
	for _, name := range g.names() {
		g.start(name)
	}
}

// begin starts every member, until the test ends, and has all of them apply policy i.
func (g *group) begin(i int) {
	g.t.Helper()
	g.startAll()
	g.t.Cleanup(g.stopAll)
	mustPropose(g.t, g.leader(), put(i))
	g.settle()
}

func (g *group) stopAll() {
	for _, name := range g.names() {
		g.members[name].stop()
	}
	if g.bubble {
		time.Sleep(2 * callTimeout) // what was on its way to who was stopped first
	}
}

// callTimeout bounds a message from one member to another.
const callTimeout = 200 * time.Millisecond

func (g *group) start(name string) *member {
	g.t.Helper()
	m := g.members[name]
	if err := m.open(); err != nil {
		g.t.Fatalf("start %s: %v", name, err)
	}
	return m
}

func (m *member) open() error { return m.openWith(func(*Node) {}) }

// openWith starts a member whose node was prepared.
func (m *member) openWith(prepare func(*Node)) error {
	g := m.group
	g.mu.Lock()
	_, m.wire = raft.NewInmemTransportWithTimeout(raft.ServerAddress(m.name), callTimeout)
	g.connect()
	g.mu.Unlock()
	m.state = fsm.New()
	o := Options{
		Name: m.name, Instance: m.instance, Stores: m.disk.stores(), Path: "disk of " + m.name, Transport: m.wire,
		Machine: Record{m.state}, NewMachine: emptyRecord,
		Fit: fsm.Fit, Encode: encodeFor(m.state), Opening: openingFor(m.state), Renew: renew,
		Forward: g.forward, Join: g.join, Bootstrap: g.bootstrap(), Log: g.log.With("member", m.name), Tuning: g.tuning,
	}
	if g.change != nil {
		g.change(m, &o)
	}
	node, err := Open(o)
	if err != nil {
		_ = m.wire.Close()
		return err
	}
	prepare(node)
	m.run(node)
	return nil
}

func (m *member) run(node *Node) {
	ctx, cancel := context.WithCancel(context.Background())
	m.group.mu.Lock()
	m.node, m.cancel, m.ended, m.err = node, cancel, make(chan struct{}), nil
	m.group.mu.Unlock()
	go func() {
		defer close(m.ended)
		m.err = node.Run(ctx)
	}()
}

// stop ends a member as kill -9 would, as far as a process can do that to a part of itself: nothing is written on
// the way out.
//
// The library never answers what it was asked for and had not done when it is told to stop. Who waits for it would be left over: of no
// account where the process ends, but no bubble may end with it.
func (m *member) stop() {
	if m.node == nil {
		return
	}
	if m.group.bubble {
		synctest.Wait()
	}
	m.cancel()
	<-m.ended
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	m.node = nil
}

func emptyRecord() Machine { return Record{fsm.New()} }

func encodeFor(s *fsm.State) func([]Proposal) ([]byte, error) {
	return func(p []Proposal) ([]byte, error) {
		_, epoch, _ := s.Identity()
		return fsm.EncodeEntry(epoch, p)
	}
}

func openingFor(s *fsm.State) func() []Proposal {
	return func() []Proposal {
		if id, _, _ := s.Identity(); id != "" {
			return nil
		}
		return []Proposal{{Actor: "test", Command: &fsm.InitGroup{Group: "g1", Format: fsm.NewestFormat}}}
	}
}

func renew(restored Machine) ([]Proposal, error) {
	id, epoch, _ := restored.(Record).Identity()
	return []Proposal{{Actor: "test", Command: &fsm.NewEpoch{Group: id, Epoch: epoch + 1, Cause: "test"}}}, nil
}

func (g *group) peers() []Peer {
	var peers []Peer
	for _, name := range g.names() {
		peers = append(peers, Peer{Name: name, Address: name})
	}
	return peers
}

func (g *group) bootstrap() *Bootstrap {
	return &Bootstrap{Token: "t", Members: g.peers(), Confirm: func(_ context.Context, p Peer, r ConfirmRequest) (Confirmation, error) {
		n := g.running(p.Name)
		if n == nil {
			return Confirmation{}, errors.New("connection refused")
		}
		return n.Confirm(r)
	}}
}

func (g *group) running(name string) *Node {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m := g.members[name]; m != nil && m.node != nil && !g.cut[name] {
		select {
		case <-m.ended:
			return nil
		default:
			return m.node
		}
	}
	return nil
}

func (g *group) forward(ctx context.Context, leader Peer, u Urgency, p []Proposal) ([]Outcome, error) {
	n := g.running(leader.Name)
	if n == nil {
		return nil, fmt.Errorf("forward to %s: %w", leader.Name, ErrNotLeader)
	}
	return n.ProposeLocal(ctx, u, p...)
}

func (g *group) join(ctx context.Context, r JoinRequest) error {
	for _, name := range g.names() {
		n := g.running(name)
		if n == nil || n.LeadingTerm() == 0 {
			continue
		}
		return n.Admit(ctx, r)
	}
	return ErrNotLeader
}

// connect joins the wires of all members that are not cut off. The caller holds mu.
func (g *group) connect() {
	for a, from := range g.members {
		if from.wire == nil {
			continue
		}
		from.wire.DisconnectAll()
		for b, to := range g.members {
			if to.wire != nil && (a == b || !g.cut[a] && !g.cut[b]) {
				from.wire.Connect(raft.ServerAddress(b), to.wire)
			}
		}
	}
}

func (g *group) setCut(name string, cut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cut[name] = cut
	g.connect()
}

// leader waits for a member that leads and is open for proposals.
func (g *group) leader() *member {
	g.t.Helper()
	var found *member
	testkit.Until(g.t, "a leader", func() bool {
		for _, name := range g.names() {
			if n := g.running(name); n != nil && n.LeadingTerm() > 0 {
				found = g.members[name]
				return true
			}
		}
		return false
	})
	return found
}

// followers are the members that run and do not lead.
func (g *group) followers() []*member {
	leader := g.leader()
	var out []*member
	for _, name := range g.names() {
		if m := g.members[name]; m != leader && g.running(name) != nil {
			out = append(out, m)
		}
	}
	return out
}

// put is a command that can be told from others: it writes policy i.
func put(i int) Proposal {
	return Proposal{Actor: "test", Reason: "test", Command: &fsm.PutRegister{
		ID: policyID(i), UID: "u", Version: 1, Spec: []byte("{}"),
	}}
}

func policyID(i int) fsm.RegisterID { return fsm.RegisterID(fmt.Sprintf("policy-%d", i)) }

func has(s *fsm.State, i int) bool {
	_, ok := fsm.Get[*fsm.Register](s.Read(), fsm.TableRegisters, string(policyID(i)))
	return ok
}

// mustPropose proposes through a member until it is accepted. Elections may come in between, so that the proposals must
// bear being committed twice.
func mustPropose(t testing.TB, m *member, p ...Proposal) []Outcome {
	t.Helper()
	var outcomes []Outcome
	var err error
	testkit.Until(t, "proposal accepted", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		outcomes, err = m.node.Propose(ctx, Bulk, p...)
		if err != nil && !errors.Is(err, ErrNotLeader) && !errors.Is(err, ErrUnknownOutcome) {
			t.Fatalf("propose: %v", err)
		}
		return err == nil
	})
	for _, o := range outcomes {
		if o.Err() != nil {
			t.Fatalf("propose: %v", o.Err())
		}
	}
	return outcomes
}

// settle waits until all running members have applied all that is committed, and compares their digests (S1).
func (g *group) settle() {
	g.t.Helper()
	var at Index
	testkit.Until(g.t, "leader caught up", func() bool {
		c := g.leader().node.Contact()
		at = c.Commit
		return c.CaughtUp()
	})
	for _, name := range g.names() {
		n := g.running(name)
		if n == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		err := n.AwaitApplied(ctx, at)
		cancel()
		if err != nil {
			g.t.Fatalf("%s does not reach index %d: %v (%+v)", name, at, err, n.Contact())
		}
	}
	// Whoever was taken for the leader may have been a former one, and the others be further.
	testkit.Until(g.t, "all members at one index", func() bool {
		digests := map[fsm.Index]map[fsm.Digest][]string{}
		for _, name := range g.names() {
			if g.running(name) == nil {
				continue
			}
			v := g.members[name].state.Read()
			if digests[v.Applied()] == nil {
				digests[v.Applied()] = map[fsm.Digest][]string{}
			}
			digests[v.Applied()][v.Digest()] = append(digests[v.Applied()][v.Digest()], name)
		}
		for index, of := range digests {
			if len(of) != 1 {
				g.t.Fatalf("digests differ at index %d: %v", index, of)
			}
		}
		return len(digests) <= 1
	})
}
