// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/fsm"
)

// However many nodes fail at however many addresses, each command of their acknowledgements is one that the log takes, and short.
func TestAcknowledgementsOfManyFailuresFitTheLog(t *testing.T) {
	t.Parallel()
	c := newMarks(Options{Member: "m1", Proposer: grouptest.NewGroup(t), Now: time.Now})
	for n := range maxMarks {
		m := fsm.AppliedMark{Node: fsm.NodeID(fmt.Sprint("n", n)), Boot: "b", Upto: fsm.Revision{Epoch: 1, Index: 1}}
		for i := range maxFailed {
			m.Failed = append(m.Failed, netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, byte(i >> 8), byte(i), 15: byte(n)}), 128))
		}
		if _, err := c.add(m); err != nil {
			t.Fatal(err)
		}
	}
	taken := 0
	for batch := c.take(); len(batch) > 0; batch = c.take() {
		taken += len(batch)
		marks := make([]fsm.AppliedMark, len(batch))
		for i, p := range batch {
			marks[i] = p.mark
		}
		bytes, err := fsm.Fit(c.proposal("", &fsm.Acknowledge{Marks: marks}))
		if err != nil || bytes > 1<<20 {
			t.Fatalf("%d acknowledgements take %d bytes: %v", len(batch), bytes, err)
		}
	}
	if taken != maxMarks {
		t.Errorf("%d of %d were taken", taken, maxMarks)
	}
}
