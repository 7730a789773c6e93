// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/sim/guest/abi"
	"fairlead.io/fairlead/sim/guest/fact"
)

// watch lets the world see what a member does to its record. It changes nothing, but that entries are applied one at
// a time.
type watch struct{}

func newWatch() *watch { return &watch{} }

func tell(f fact.Fact) { abi.Observe(uint32(f.Kind()), fact.Encode(f)) }

// machine stands before the record.
func (*watch) machine(r cluster.Record) cluster.Machine { return watched{r} }

type watched struct{ cluster.Record }

// ApplyEntries implements cluster.Machine.
func (w watched) ApplyEntries(entries []cluster.LogEntry) [][]cluster.Outcome {
	out := make([][]cluster.Outcome, 0, len(entries))
	for i, e := range entries {
		out = append(out, w.Record.ApplyEntries(entries[i:i+1])...)
		tell(fact.Applied{Index: uint64(e.Index), Entry: e.Data, Digest: w.Read().Digest().String()})
	}
	return out
}

// Restore implements cluster.Machine.
func (w watched) Restore(r io.Reader) error {
	err := w.Record.Restore(r)
	if err == nil {
		view := w.Read()
		tell(fact.Restored{Index: uint64(view.Revision().Index), Digest: view.Digest().String()})
	}
	return err
}

// leading is a cluster.LeaderFunc.
func (*watch) leading(ctx context.Context, term uint64) {
	tell(fact.Leading{Term: term, On: true})
	<-ctx.Done()
	tell(fact.Leading{Term: term})
}
