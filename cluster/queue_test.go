// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"runtime"
	"testing"
	"weak"

	"fairlead.io/fairlead/fsm"
)

// Callers hand in parts of long lists: one part that is held holds the whole list.
func TestQueueHoldsNothingThatWasTakenOrWithdrawn(t *testing.T) {
	q := newQueue(100, 100)
	q.begin()
	put := func() (*request, weak.Pointer[fsm.PutService]) {
		c := &fsm.PutService{}
		r, err := q.put(Bulk, []Proposal{{Command: c}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return r, weak.Make(c)
	}
	_, taken := put()
	q.finish(q.take(), func(int, *request) answer { return answer{} })
	if runtime.GC(); taken.Value() != nil {
		t.Error("what was taken is held")
	}
	stays, waits := put()
	leaves, withdrawn := put()
	if !q.withdraw(Bulk, leaves) {
		t.Fatal("what waits could not be withdrawn")
	}
	if runtime.GC(); withdrawn.Value() != nil || waits.Value() == nil {
		t.Errorf("held: withdrawn %t, waiting %t", withdrawn.Value() != nil, waits.Value() != nil)
	}
	runtime.KeepAlive(stays)
	runtime.KeepAlive(q)
}
