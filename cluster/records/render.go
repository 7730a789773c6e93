// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fmt"
	"time"

	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/fsm"
)

// renderer makes documents of the rows of one view.
type renderer struct {
	view *fsm.View
	self string // name of the answering member
	// sessions gives the states of its BGP sessions; it is asked once. May be nil.
	sessions func() map[fsm.PeerName]string
	leader   string // name of the member that leads, empty if nobody knows
	// flows gives what a node counted of its connections. May be nil.
	flows func(fsm.NodeID) (Flows, bool)
	// nodeSessions gives the states of the sessions that nodes have themselves with a peer. May be nil.
	nodeSessions func(fsm.PeerName) map[fsm.NodeID]string
	// allocated counts addresses with an owner by pool; made when first asked for.
	allocated map[fsm.PoolName]int
}

func revision(r fsm.Revision) records.Revision {
	return records.Revision{Epoch: uint64(r.Epoch), Index: uint64(r.Index)}
}

// maybe is nil for the zero revision.
func maybe(r fsm.Revision) *records.Revision {
	if r.IsZero() {
		return nil
	}
	out := revision(r)
	return &out
}

// each maps a slice; the result is never nil, so that JSON shows [].
func each[A, B any](in []A, f func(A) B) []B {
	out := make([]B, 0, len(in))
	for _, v := range in {
		out = append(out, f(v))
	}
	return out
}

// texts are the String()s of a slice.
func texts[A fmt.Stringer](in []A) []string { return each(in, A.String) }

// words are the elements of a slice of named strings.
func words[A ~string](in []A) []string { return each(in, func(a A) string { return string(a) }) }

func pairs(in []fsm.KV) map[string]string {
	out := make(map[string]string, len(in))
	for _, kv := range in {
		out[kv.Key] = kv.Value
	}
	return out
}

func portText(p fsm.Port) string { return fmt.Sprintf("%d/%s", p.Number, p.Protocol) }

func milliseconds(d time.Duration) int64 { return d.Milliseconds() }

func orDefault[N uint8 | uint16 | uint32](n, otherwise N) N {
	if n == 0 {
		return otherwise
	}
	return n
}
