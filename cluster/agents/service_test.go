// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

func newService(t testing.TB, g *grouptest.Group) *Service {
	t.Helper()
	s, err := New(Options{
		Member: "m1", Record: g, Proposer: g, Contact: g.Contact, Barrier: g.Barrier, Log: slog.New(slog.DiscardHandler),
		// A machine that stands still for a while makes no member one that is behind, or alone.
		Tuning: Tuning{Look: 2 * time.Millisecond, Behind: testkit.Patience, Alone: testkit.Patience, Doubt: testkit.Patience},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What a node says of its sessions is bounded, and in order of peers.
func TestSessionsOfNodesAreBounded(t *testing.T) {
	g := grouptest.NewGroup(t)
	g.Apply(t, &fsm.PutNode{ID: "n1"}, &fsm.RegisterBoot{Node: "n1", Boot: "b1"})
	s := newService(t, g)
	session := func(name string) *fairleadv1.OpenSession { return &fairleadv1.OpenSession{Neighbour: name, Ipv4: true} }
	for what, sessions := range map[string][]*fairleadv1.OpenSession{
		"make sense":     slices.Repeat([]*fairleadv1.OpenSession{session("a")}, maxSessions+1),
		"bytes":          {session(strings.Repeat("a", maxSessionText+1))},
		"peers in order": {session("b"), session("a")},
		"":               {session("a"), session("b")},
	} {
		_, err := s.ReportSpeaker(t.Context(), &fairleadv1.ReportSpeakerRequest{Node: "n1", Boot: "b1", Speaks: true, Sessions: &fairleadv1.OpenSessions{Sessions: sessions}})
		if (err == nil) != (what == "") || err != nil && !strings.Contains(err.Error(), what) {
			t.Errorf("want %q: %v", what, err)
		}
	}
}

// runs has a service work until the test ends.
func runs(t *testing.T, s *Service) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// client serves s over TLS and gives the API as n1's agent reaches it.
func client(t *testing.T, s *Service) fairleadv1connect.AgentServiceClient {
	t.Helper()
	w := grouptest.NewWorld(t)
	api := w.Serve(t, "m1", func(opts ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewAgentServiceHandler(s, opts...)
	})
	return w.Client(t, pki.Agent, "n1", api.Address).Agent
}

// reader takes a stream's messages once its gate is closed.
type reader struct {
	gate  chan struct{}
	mu    sync.Mutex
	steps desired.Steps
	count int
}

func (r *reader) send(m *fairleadv1.SyncResponse) error {
	<-r.gate
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	_, err := r.steps.Add(m)
	return err
}

func (r *reader) state() (desired.State, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.steps.State, r.count
}

// A slow agent costs no queue: what it missed comes as one step, from the ring or, if it missed more than
// that, as a whole.
func TestSlowAgentIsNotQueuedFor(t *testing.T) {
	t.Parallel()
	for name, ring := range map[string]ringLimit{"within-the-ring": {4096, 4 << 20}, "beyond-it": {10, 4 << 20}} {
		t.Run(name, func(t *testing.T) {
			g, _ := furnished(t, 10)
			s := newService(t, g)
			s.board.limit = ring
			runs(t, s)
			r := &reader{gate: make(chan struct{})}
			ctx, end := context.WithCancel(t.Context())
			st := &stream{s: s, node: "n1", boot: "b1", send: r.send}
			done := make(chan error, 1)
			go func() { done <- st.run(ctx, &fairleadv1.SyncRequest{}) }()
			for i := range 500 {
				g.Apply(t, &fsm.Allocate{Address: netip.AddrFrom4([4]byte{172, 16, byte(i >> 8), byte(i)}), Service: "ns/web"})
			}
			testkit.Until(t, "the board is current", func() bool {
				v, err := s.board.refresh()
				return err == nil && v.Applied() == g.Read().Applied()
			})
			if len(s.board.inside.trays[tellsAll].ring) > ring.steps {
				t.Errorf("%d steps on the ring", len(s.board.inside.trays[tellsAll].ring))
			}
			close(r.gate)
			testkit.Until(t, "the agent has everything", func() bool { state, _ := r.state(); return len(state.Addresses()) == 510 })
			if _, count := r.state(); count > 3 {
				t.Errorf("%d messages were sent to one who did not read", count)
			}
			state, _ := r.state()
			checkAll(t, state, g.Read())
			end()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}

// The newest stream of a node counts: an agent that lost its connection must not wait for the old one to die.
func TestNewStreamOfANodeEndsTheOldOne(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t, 1)
	s := newService(t, g)
	runs(t, s)
	api := client(t, s)
	first := open(t, api, "b1", nil)
	second := open(t, api, "b1", nil)
	if first.Receive() || !errors.Is(first.Err(), admin.Stopped) {
		t.Errorf("the first stream goes on: %v", first.Err())
	}
	g.Apply(t, &fsm.Allocate{Address: netip.MustParseAddr("10.1.0.0"), Service: "ns/web"})
	if !second.Receive() {
		t.Errorf("the second stream ended: %v", second.Err())
	}
}

// open begins a stream and takes its first message.
func open(t *testing.T, api fairleadv1connect.AgentServiceClient, boot string, have *fairleadv1.Revision) *connect.ServerStreamForClient[fairleadv1.SyncResponse] {
	t.Helper()
	stream, err := api.Sync(t.Context(), &fairleadv1.SyncRequest{Node: "n1", Boot: boot, Have: have})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stream.Close() })
	if !stream.Receive() {
		t.Fatal(stream.Err())
	}
	return stream
}

// Two machines under one name do not take the record from each other in turns: the earlier one is sent away.
func TestStreamOfAReplacedBootEnds(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t, 1)
	g.Apply(t, &fsm.PutNode{ID: "n1"})
	s := newService(t, g)
	runs(t, s)
	stream := open(t, client(t, s), "b1", nil)
	g.Apply(t, &fsm.RegisterBoot{Node: "n1", Boot: "b2"})
	if stream.Receive() || !errors.Is(stream.Err(), admin.Stopped) {
		t.Errorf("the stream goes on: %v", stream.Err())
	}
}

func TestMemberThatIsBehindTheAgentSaysSo(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t, 1)
	s := newService(t, g)
	s.o.Tuning.Behind = 100 * time.Millisecond
	runs(t, s)
	stream, err := client(t, s).Sync(t.Context(), &fairleadv1.SyncRequest{Node: "n1", Boot: "b1", Have: &fairleadv1.Revision{Epoch: 1, Index: 999}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	if stream.Receive() || !errors.Is(stream.Err(), admin.NotReady) {
		t.Errorf("served: %v", stream.Err())
	}
}

// An agent that lost its state cannot tell that a member is behind: it is served once the member knows that it is not.
func TestAgentWithNothingIsServedWhatIsCommitted(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t, 1)
	g.Change(func(k *grouptest.Knobs) { k.Behind = cluster.ErrNotLeader })
	hasty := newService(t, g)
	hasty.o.Tuning.Behind = 100 * time.Millisecond
	runs(t, hasty)
	stream, err := client(t, hasty).Sync(t.Context(), &fairleadv1.SyncRequest{Node: "n1", Boot: "b1"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	if stream.Receive() || !errors.Is(stream.Err(), admin.NotReady) {
		t.Errorf("served: %v", stream.Err())
	}
	s := newService(t, g)
	runs(t, s)
	api := client(t, s)
	open(t, api, "b1", desired.RevisionMessage(g.Read().Revision())) // it knows what it acted on
	g.Change(func(k *grouptest.Knobs) { k.Behind = nil })
	open(t, api, "b1", nil)
}

// A restored group is newer, whatever its indexes are.
func TestNewEpochIsNewerForAgents(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t, 3)
	old := g.Read().Revision()
	g.Apply(t, &fsm.NewEpoch{Group: "g1", Epoch: 2, Cause: "restore"})
	s := newService(t, g)
	runs(t, s)
	stream := open(t, client(t, s), "b1", &fairleadv1.Revision{Epoch: 1, Index: 1 << 30})
	m := stream.Msg()
	if got := desired.RevisionOf(m.GetRevision()); !old.Before(got) || got.Epoch != 2 || !m.GetFull() {
		t.Errorf("revision %s, full %v", got, m.GetFull())
	}
}

func TestStandingFollowsContact(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	contact := cluster.Contact{At: now, AsOf: now, Commit: 10, Applied: 10}
	s := newStanding(Options{
		Contact: func() cluster.Contact { return contact }, Now: func() time.Time { return now },
		Tuning: Tuning{}.withDefaults(),
	})
	check := func(want error) {
		t.Helper()
		s.look()
		if err := s.err(); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%v, want %v", err, want)
		}
	}
	good := func(want bool) {
		t.Helper()
		if s.look(); s.good() != want {
			t.Errorf("%v after the last contact, good: %v", now.Sub(contact.At), !want)
		}
	}
	check(nil)
	good(true)
	now = now.Add(time.Second)
	good(true)
	now = now.Add(time.Millisecond)
	good(false) // another member would be better; who has no other stays
	check(nil)
	now = now.Add(2*time.Second - time.Millisecond)
	check(nil) // just so
	now = now.Add(time.Millisecond)
	check(admin.NoQuorum)
	contact = cluster.Contact{At: now, AsOf: now, Commit: 20, Applied: 20}
	check(nil)
	good(true)
	contact = cluster.Contact{At: now, AsOf: now, Commit: 30, Applied: 20} // it hears its leader, and gets no entries
	now = now.Add(2 * time.Second)
	contact.At = now
	check(nil) // a moment of lag is normal
	good(false)
	now = now.Add(2 * time.Second)
	contact.At = now
	check(admin.NotReady)
	contact = cluster.Contact{At: now, AsOf: now, Commit: 30, Applied: 30, Writing: time.Second}
	check(nil)
	good(true)
	contact.Writing += time.Millisecond
	check(nil)
	good(false) // its disk hangs, for all that it knows
	contact.Writing = 3*time.Second + time.Millisecond
	check(admin.NotReady)
	contact = cluster.Contact{At: now}
	check(admin.NotReady) // restarted: it does not know what is committed
	contact = cluster.Contact{Commit: 5, Applied: 5}
	check(admin.NoQuorum) // never in touch
}

// What arrives while a proposal is under way shares the next one, and everybody hears his own outcome.
func TestAcknowledgementsShareProposals(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t, 1)
	const nodes = 200
	for i := range nodes {
		name := fsm.NodeID(fmt.Sprintf("n%d", i))
		g.Apply(t, &fsm.PutNode{ID: name}, &fsm.RegisterBoot{Node: name, Boot: "b1"})
	}
	held, entered := make(chan struct{}), make(chan struct{}, 1)
	g.Change(func(k *grouptest.Knobs) {
		k.Before = func(fsm.Command) {
			select {
			case entered <- struct{}{}:
			default:
			}
			<-held
		}
	})
	s := newService(t, g)
	runs(t, s)
	upto := desired.RevisionMessage(g.Read().Revision())
	outcomes := make(chan error, nodes+1)
	acknowledge := func(node, boot string) {
		_, err := s.Acknowledge(t.Context(), &fairleadv1.AcknowledgeRequest{Node: node, Boot: boot, Revision: upto})
		outcomes <- err
	}
	go acknowledge("n0", "b1")
	<-entered
	for i := range nodes - 1 {
		boot := "b1"
		if i == 7 {
			boot = "another"
		}
		go acknowledge(fmt.Sprintf("n%d", i+1), boot)
	}
	testkit.Until(t, "all wait", func() bool {
		s.marks.mu.Lock()
		defer s.marks.mu.Unlock()
		return len(s.marks.pending) == nodes-1
	})
	close(held)
	refused := 0
	for range nodes {
		if err := <-outcomes; err != nil {
			refused++
			if connect.CodeOf(err) != connect.CodeFailedPrecondition {
				t.Errorf("refused: %v", err)
			}
		}
	}
	if refused != 1 {
		t.Errorf("%d are refused, want the one of another boot", refused)
	}
	for i := range nodes {
		n, _ := fsm.Get[*fsm.Node](g.Read(), fsm.TableNodes, fmt.Sprintf("n%d", i))
		if n.Acknowledged.IsZero() != (i == 8) {
			t.Errorf("node %d: acknowledged %s", i, n.Acknowledged)
		}
	}
	if _, urgencies := g.Proposed(); len(urgencies) > 3 {
		t.Errorf("%d proposals for %d acknowledgements", len(urgencies), nodes)
	}
}

func TestAcknowledgementIsNotTakenForGranted(t *testing.T) {
	t.Parallel()
	g, _ := furnished(t, 1)
	g.Apply(t, &fsm.PutNode{ID: "n1"}, &fsm.RegisterBoot{Node: "n1", Boot: "b1"})
	s := newService(t, g)
	runs(t, s)
	now := desired.RevisionMessage(g.Read().Revision())
	many := make([]*fairleadv1.FailedAddress, maxFailed+1)
	for i := range many {
		many[i] = &fairleadv1.FailedAddress{Address: "192.0.2.1/32"}
	}
	for name, req := range map[string]*fairleadv1.AcknowledgeRequest{
		"no-node":     {Boot: "b1", Revision: now},
		"no-boot":     {Node: "n1", Revision: now},
		"no-revision": {Node: "n1", Boot: "b1"},
		"no-prefix":   {Node: "n1", Boot: "b1", Revision: now, Failed: []*fairleadv1.FailedAddress{{Address: "x"}}},
		"too-many":    {Node: "n1", Boot: "b1", Revision: now, Failed: many},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := s.Acknowledge(t.Context(), req); !errors.Is(err, admin.Invalid) {
				t.Errorf("%v", err)
			}
		})
	}
	g.Change(func(k *grouptest.Knobs) { k.Refuse = cluster.ErrNotLeader })
	if _, err := s.Acknowledge(t.Context(), &fairleadv1.AcknowledgeRequest{Node: "n1", Boot: "b1", Revision: now}); !errors.Is(err, cluster.ErrNotLeader) {
		t.Errorf("nobody leads: %v", err)
	}
	g.Change(func(k *grouptest.Knobs) { k.Refuse = nil })
	if _, err := s.Acknowledge(t.Context(), &fairleadv1.AcknowledgeRequest{Node: "n1", Boot: "b1", Revision: now}); err != nil {
		t.Error(err)
	}
}
