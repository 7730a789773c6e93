// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// Source yields views of what the group shall do. Its methods may be called from any goroutine.
type Source interface {
	// World gives the newest view. Its lists are shared and are not changed.
	World() world.World
	// Changed holds a token after the World has changed, other than by growing older or by being confirmed.
	Changed() <-chan struct{}
}

// Relister is a Source that can be asked for a new list. One that lists all the time need not be one.
type Relister interface {
	Relist(kinds ...world.Kind)
	// Begin says that somebody asks, a new term or a guard that lost what it knew, to whom a list that tells nothing new tells something.
	Begin()
}

// Urgency says in which of the two queues a proposal waits. Its values are those of cluster.Urgency.
type Urgency uint8

// The two queues.
const (
	Bulk Urgency = iota
	Urgent
)

// Group is the controller group as its leader sees it.
type Group interface {
	// Propose commits commands in order, in one entry, and gives their outcomes once this member applied them. After
	// an error they may or may not be committed: only the record can tell.
	Propose(ctx context.Context, u Urgency, proposals []fsm.Proposal) ([]fsm.Outcome, error)
	// VerifyLeader asks a majority whether this member leads, later than the call began. It saves useless work; it fences nothing.
	VerifyLeader(ctx context.Context) error
	// Servers lists the servers of the Raft configuration.
	Servers() []Server
}

// Server is one server of the Raft configuration.
type Server struct {
	ID fsm.ServerID
	// Answers tells whether it answered this leader lately.
	Answers bool
}

// Clock is the time that this package lives by.
type Clock interface {
	// Now is the reading of a clock that never runs back and goes on while the machine sleeps (CLOCK_BOOTTIME).
	Now() time.Duration
	// After gives the time once d has passed on that clock.
	After(d time.Duration) <-chan time.Time
	// Wall is what people call the time. It is stamped on proposals and never compared.
	Wall() time.Time
}
