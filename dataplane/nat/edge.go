// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"context"

	"fairlead.io/fairlead/dataplane/flows"
)

// Edge is the kernel, as far as the table is concerned, and its connections. One goroutine at a time uses it, but for
// Watch, Tally, Clients and Loads.
type Edge interface {
	// Read gives what is in the table, and whether there is one. Sets that are as wanted are given as such. Elements that are as wanted
	// may be left out, and are then taken out of what is wanted, too: a table is large, and seldom differs.
	Read(ctx context.Context, want Ruleset) (have Ruleset, exists bool, err error)
	// Commit carries out a change, whose elements are of these sets: in one transaction, after one for what nothing
	// leads to yet. With an error nothing has changed for any packet.
	Commit(ctx context.Context, change Change, sets map[string]Set) error
	// Replace puts a ruleset in the place of what is in the table, in one transaction. A table that is not there may come by several, as
	// long as packets enter it by the last one.
	Replace(ctx context.Context, want Ruleset, exists bool) error
	// EndFlows ends the UDP flows that may not go on, and returns how many those were.
	EndFlows(Flows) (ended uint, err error)
	// Tally gives how many packets the rules of each chain of reasons counted since they were made; chains may lack.
	Tally() (packets map[string]uint64, err error)
	// Clients counts the elements of dynamic sets: of all of these, or, where that means to list them, of the first ones
	// until there were most.
	Clients(ctx context.Context, sets []string, most int) (map[string]int, error)
	// Loads counts the connections of endpoints.
	Loads(ctx context.Context, of []flows.Endpoint) (map[flows.Endpoint]flows.Load, error)
	// Ahead tells whose chain decides about what this host's own programs send before it is translated; empty for nobody's
	// that is known.
	Ahead() string
	// Watch calls changed whenever somebody else changed the table, or may have, until ctx ends or it fails.
	Watch(ctx context.Context, changed func()) error
}
