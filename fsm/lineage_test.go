// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"testing"

	"fairlead.io/fairlead/fsm"
)

// A group is of the lineage that its newest epoch names, and of one of its own id and epoch where that names none.
func TestGroupIsOfTheLineageOfItsEpoch(t *testing.T) {
	s := fsm.New()
	tell(t, s, &fsm.InitGroup{Group: "g1", Format: fsm.NewestFormat})
	restored := fsm.Lineage{Group: "g1", Epoch: 1}
	recovered := fsm.Lineage{Group: "g1", Epoch: 3, Nonce: "k3x9"}
	for _, step := range []struct {
		epoch fsm.Epoch
		named fsm.Lineage
		want  fsm.Lineage
	}{{1, fsm.Lineage{}, restored}, {2, restored, restored}, {3, recovered, recovered}, {4, recovered, recovered}, {5, fsm.Lineage{}, fsm.Lineage{Group: "g1", Epoch: 5}}} {
		if step.epoch > 1 {
			tell(t, s, &fsm.NewEpoch{Group: "g1", Epoch: step.epoch, Cause: "restore", Lineage: step.named})
		}
		if got := s.Read().Group().Of(); got != step.want {
			t.Fatalf("in epoch %d it is of %+v, want %+v", step.epoch, got, step.want)
		}
	}
}
