// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/fsm"
)

// Probes tell what the node thinks of addresses that it probes.
type Probes interface {
	// Report gives all of that in pieces, each short enough for a heartbeat, and its number; no pieces if the number is told. In either case it
	// is what the node thinks of what is to be probed as of the revision.
	Report(told uint64) (pieces []*fairleadv1.ProbeReport, number uint64, of fsm.Revision)
}

// telling is what one stream of heartbeats has told of probes.
type telling struct {
	told   uint64
	pieces []*fairleadv1.ProbeReport // that are still to be told
	of     fsm.Revision              // that they are as of
}

// next puts what is to be told next of probes into a heartbeat.
func (t *telling) next(p Probes, beat *fairleadv1.HeartbeatRequest) {
	if p == nil {
		return
	}
	if len(t.pieces) == 0 {
		t.pieces, t.told, t.of = p.Report(t.told)
	}
	if len(t.pieces) > 0 {
		beat.Probes, t.pieces = t.pieces[0], t.pieces[1:]
	}
	if len(t.pieces) == 0 {
		beat.Probing = desired.RevisionMessage(t.of)
	}
}
