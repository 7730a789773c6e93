// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"testing"
	"time"
)

// S6: once a binding is confirmed, another one that was to be taken off the same address is gone: taking it off would
// take off the confirmed one.
func TestBoundEndsWhatWasToLeaveItsAddress(t *testing.T) {
	s := New()
	apply := func(c Command) Outcome {
		out := s.ApplyEntries([]LogEntry{entry(t, s, s.Applied()+1, c)})[0][0]
		if err := out.Err(); err != nil {
			t.Fatal(err)
		}
		return out
	}
	ensure := func(id BindingID) {
		attempt := apply(&BeginOperation{Action: ActionEnsure, Binding: id, Deadline: time.Second}).Revision
		apply(&FinishOperation{Subject: SubjectOf(IdentityOf("drv", []KV{{"id", "lb"}}), "192.0.2.1:80", id), Attempt: attempt, Result: ResultSucceeded})
	}
	apply(&InitGroup{Group: "g", Format: NewestFormat})
	apply(&PutLoadBalancer{ID: "lb", Driver: "drv", Info: []KV{{"id", "lb"}}})
	apply(&PutBinding{ID: "old", Balancer: "lb", Address: "192.0.2.1:80"})
	ensure("old")
	apply(&RemoveBinding{ID: "old"})
	apply(&PutBinding{ID: "new", Balancer: "lb", Address: "192.0.2.1:80"})
	ensure("new")
	if b, there := Get[*Binding](s.Read(), TableBindings, "old"); there {
		t.Errorf("the old binding is still %s", b.State)
	}
	if b, _ := Get[*Binding](s.Read(), TableBindings, "new"); b == nil || b.State != BindingBound {
		t.Errorf("the new binding is %+v", b)
	}
}
