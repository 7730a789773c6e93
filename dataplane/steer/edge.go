// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"context"
	"net/netip"
)

// query says what to read.
type query struct {
	inTable, outTable uint32
	switches          []netip.Addr
}

// event is what was heard of a change that somebody made, ourselves included.
type event struct {
	rule   *Rule  // that came or went
	route  *Route // that came or went
	gone   bool
	filter bool // our nftables table was changed by somebody else
	node   bool // an interface, an address or the node's default route changed
	lost   bool // something was, and nobody knows what
}

// edge is the kernel, and the folder where settings are kept.
type edge interface {
	// read reads everything.
	read(query) (*View, Facts, error)
	// look reads what the node is like, and renews the settings of a view.
	look(query, *View) (Facts, error)
	// mark says which packet marks the nftables table shall use when it is made next.
	mark(in, out uint32)
	// do makes one change.
	do(Change) error
	// watch calls hear for each event until ctx ends. What happens after ready was closed is heard.
	watch(ctx context.Context, ready chan<- struct{}, hear func(event)) error
	// finish puts back what is still kept and was not given back by a change: somebody took ours away.
	finish() error
	close()
}
