// SPDX-License-Identifier: Apache-2.0

package agent

import fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"

// Probes tell what the node thinks of addresses that it probes.
type Probes interface {
	// Report gives all of that in pieces, each short enough for a heartbeat, and its number; none if the number is told.
	Report(told uint64) (pieces []*fairleadv1.ProbeReport, number uint64)
}

// telling is what one stream of heartbeats has told of probes.
type telling struct {
	told   uint64
	pieces []*fairleadv1.ProbeReport // that are still to be told
}

// next is the piece for the next heartbeat; nil where there is no news.
func (t *telling) next(p Probes) *fairleadv1.ProbeReport {
	if p == nil {
		return nil
	}
	if len(t.pieces) == 0 {
		t.pieces, t.told = p.Report(t.told)
	}
	if len(t.pieces) == 0 {
		return nil
	}
	piece := t.pieces[0]
	t.pieces = t.pieces[1:]
	return piece
}
