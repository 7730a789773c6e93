// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"context"
	"net/netip"

	"fairlead.io/fairlead/api/desired"
)

// Query says what to read.
type Query struct {
	InTable, OutTable uint32
	Switches          []netip.Addr
	// Addresses are the wanted ones, in order; Priority is that of the first rule for them, Mark what their packets bear.
	Addresses      []desired.Address
	Priority, Mark uint32
}

// Event is what was heard of a change that somebody made, ourselves included.
type Event struct {
	Rule   *Rule  // that came or went
	Route  *Route // that came or went
	Gone   bool
	Filter bool // our nftables table was changed by somebody else
	Node   bool // an interface, an address or the node's default route changed
	Lost   bool // something was, and nobody knows what
}

// Edge is the kernel, and the folder where settings are kept. One goroutine at a time uses it, but for Watch and Tally.
type Edge interface {
	// Read reads everything.
	Read(Query) (*View, Facts, error)
	// Look reads what the node is like, and renews the settings of a view.
	Look(Query, *View) (Facts, error)
	// Do makes one change.
	Do(Change) error
	// Hopeless tells whether an error of Do is not one address's alone.
	Hopeless(error) bool
	// Tally gives how many packets the rules of each chain of reasons counted since they were made; chains may lack.
	Tally() (packets map[string]uint64, err error)
	// Watch calls hear for each event until ctx ends. What happens after ready was closed is heard.
	Watch(ctx context.Context, ready chan<- struct{}, hear func(Event)) error
	// Finish puts back what is still kept and was not given back by a change: somebody took ours away.
	Finish() error
	Close()
}
