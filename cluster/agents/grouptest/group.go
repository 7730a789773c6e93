// SPDX-License-Identifier: Apache-2.0

// Package grouptest helps tests of what stands on the record and the API: a record that commits without Raft,
// and API servers on loopback with real certificates. It promises to clean up when the test ends.
//
// Start reading at Group and World.
package grouptest

import (
	"context"
	"sync"
	"time"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/fsm"
)

// Actor, Reason, At and Term stand in every transition of a Group.
const (
	Actor  = "operator/alice"
	Reason = "test"
	At     = 1_700_000_000_123
	Term   = 3
)

// T is what testing.TB and rapid's T have in common.
type T interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Group is a record without Raft: what is proposed is applied at once. It stands in for *cluster.Node. Fields
// are set through Change once others use it.
type Group struct {
	*fsm.State

	mu        sync.Mutex
	index     fsm.Index
	knobs     Knobs
	proposals []fsm.Proposal
	urgencies []cluster.Urgency
}

// Knobs are what a test turns.
type Knobs struct {
	Refuse error             // of every proposal through Propose and ProposeLocal
	Verify error             // of VerifyLeader
	Behind error             // of Barrier
	Follow bool              // the member does not lead
	Alone  time.Duration     // since when the member is out of touch
	Commit fsm.Index         // that the member knows beyond what it applied
	Before func(fsm.Command) // runs before a proposed command is applied
}

// NewGroup forms the group "g1".
func NewGroup(t T) *Group {
	g := &Group{State: fsm.New()}
	g.Apply(t, &fsm.InitGroup{Group: "g1", Format: fsm.NewestFormat})
	return g
}

// Apply commits commands, one entry each, and insists that they are accepted.
func (g *Group) Apply(t T, commands ...fsm.Command) {
	t.Helper()
	for _, c := range commands {
		outcomes, err := g.Commit(fsm.Proposal{Actor: Actor, Reason: Reason, AtUnixMilli: At, Command: c})
		if err != nil {
			t.Fatal(err)
		}
		if err := outcomes[0].Err(); err != nil {
			t.Fatalf("%T: %v", c, err)
		}
	}
}

// Commit applies proposals as one entry, whatever becomes of them.
func (g *Group) Commit(proposals ...fsm.Proposal) ([]fsm.Outcome, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.commitLocked(proposals)
}

func (g *Group) commitLocked(proposals []fsm.Proposal) ([]fsm.Outcome, error) {
	data, err := fsm.EncodeEntry(g.Read().Group().Epoch, proposals)
	if err != nil {
		return nil, err
	}
	g.index++
	return g.ApplyEntries([]fsm.LogEntry{{Index: g.index, Term: Term, Data: data}})[0], nil
}

// Skip leaves out log indexes, as Raft's own entries do.
func (g *Group) Skip(n fsm.Index) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.index += n
}

// Change turns knobs.
func (g *Group) Change(f func(*Knobs)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(&g.knobs)
}

// Proposed lists what came through Propose and ProposeLocal.
func (g *Group) Proposed() ([]fsm.Proposal, []cluster.Urgency) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]fsm.Proposal{}, g.proposals...), append([]cluster.Urgency{}, g.urgencies...)
}

// Propose is that of *cluster.Node.
func (g *Group) Propose(_ context.Context, u cluster.Urgency, proposals ...fsm.Proposal) ([]fsm.Outcome, error) {
	g.mu.Lock()
	knobs := g.knobs
	g.mu.Unlock()
	if knobs.Refuse != nil {
		return nil, knobs.Refuse
	}
	if knobs.Before != nil {
		for _, p := range proposals {
			knobs.Before(p.Command)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.proposals, g.urgencies = append(g.proposals, proposals...), append(g.urgencies, u)
	return g.commitLocked(proposals)
}

// ProposeLocal is that of *cluster.Node.
func (g *Group) ProposeLocal(ctx context.Context, u cluster.Urgency, proposals ...fsm.Proposal) ([]fsm.Outcome, error) {
	return g.Propose(ctx, u, proposals...)
}

// VerifyLeader is that of *cluster.Node.
func (g *Group) VerifyLeader(context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.knobs.Verify
}

// Barrier is records.NewBarrier's of a member that applied everything.
func (g *Group) Barrier(context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.knobs.Behind
}

// LeadingTerm is that of *cluster.Node.
func (g *Group) LeadingTerm() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.knobs.Follow {
		return 0
	}
	return Term
}

// Contact is that of *cluster.Node.
func (g *Group) Contact() cluster.Contact {
	g.mu.Lock()
	defer g.mu.Unlock()
	applied := g.Read().Applied()
	at := time.Now().Add(-g.knobs.Alone)
	contact := cluster.Contact{
		At: at, Leads: !g.knobs.Follow, Term: Term,
		Commit: max(applied, g.knobs.Commit), Applied: applied,
	}
	if contact.CaughtUp() {
		contact.AsOf = at
	}
	return contact
}
