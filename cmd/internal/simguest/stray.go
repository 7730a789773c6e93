// SPDX-License-Identifier: Apache-2.0

//go:build wasip1 || simulated

package main

import (
	"time"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/guest/start"
)

// stray is a copy of the record that becomes another one where an entry says so of this member, as in another build, or of which a bit flips in
// memory.
type stray struct {
	cluster.Record
	member string
}

// apply applies an entry.
func (s stray) apply(e cluster.LogEntry) [][]cluster.Outcome {
	epoch, proposals, err := fsm.DecodeEntry(e.Data)
	if err != nil {
		return s.ApplyEntries([]cluster.LogEntry{e})
	}
	for _, p := range proposals {
		put, ok := p.Command.(*fsm.PutRegister)
		switch {
		case !ok || time.Since(time.UnixMilli(p.AtUnixMilli)) > start.StrayWithin:
		case string(put.ID) == start.OtherRecord+s.member:
			return s.applyMore(e, epoch, proposals)
		case string(put.ID) == start.FlippedBit+s.member:
			out := s.ApplyEntries([]cluster.LogEntry{e})
			if kept, ok := fsm.Get[*fsm.Register](s.Read(), fsm.TableRegisters, string(put.ID)); ok {
				kept.Spec[0] ^= 1
			}
			return out
		}
	}
	return s.ApplyEntries([]cluster.LogEntry{e})
}

// applyMore applies a command that nobody asked for with those of an entry.
func (s stray) applyMore(e cluster.LogEntry, epoch fsm.Epoch, proposals []fsm.Proposal) [][]cluster.Outcome {
	more := fsm.Proposal{Actor: s.member, Command: &fsm.PutRegister{ID: "stray", UID: "stray", Version: 1, Spec: []byte("{}")}}
	data, err := fsm.EncodeEntry(epoch, append(proposals, more))
	if err != nil {
		panic(err) // it was decoded a moment ago
	}
	e.Data = data
	out := s.ApplyEntries([]cluster.LogEntry{e})
	out[0] = out[0][:len(proposals)]
	return out
}
