// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"slices"
	"testing"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/fsm"
)

// thoughts are Probes whose report has so many pieces.
type thoughts struct {
	pieces int
	number uint64
	of     fsm.Index
}

func (p *thoughts) Report(told uint64) (pieces []*fairleadv1.ProbeReport, number uint64, of fsm.Revision) {
	if told != p.number {
		for range p.pieces {
			pieces = append(pieces, &fairleadv1.ProbeReport{})
		}
	}
	return pieces, p.number, fsm.Revision{Epoch: 1, Index: p.of}
}

// Heartbeats tell of which revision what they told of probes is: with its last piece of that of which it was made, though the next one is there
// already, and afterwards of the newest one while it is the same.
// Rule: balancing §14.
func TestHeartbeatsTellOfWhichRevisionProbesAre(t *testing.T) {
	p, stream := &thoughts{pieces: 3, number: 1, of: 7}, telling{}
	var said []string
	for i := range 7 {
		switch i {
		case 1: // while the report is under way
			p.number, p.pieces, p.of = 2, 1, 8
		case 5: // nothing else is probed as of another revision
			p.of = 9
		}
		beat := &fairleadv1.HeartbeatRequest{}
		stream.next(p, beat)
		said = append(said, fmt.Sprint(beat.Probes != nil, " ", desired.RevisionOf(beat.GetProbing()).Index))
	}
	if want := []string{"true 0", "true 0", "true 7", "true 8", "false 8", "false 9", "false 9"}; !slices.Equal(said, want) {
		t.Errorf("told %q, want %q", said, want)
	}
	beat := &fairleadv1.HeartbeatRequest{}
	stream.next(nil, beat)
	if beat.Probes != nil || beat.Probing != nil {
		t.Error("an agent that probes nothing tells of it")
	}
}
