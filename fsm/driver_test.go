// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
)

// Members of format 1 know nothing of this, and would fork the record or stop.
func TestNothingIsAskedOutsideBeforeFormatTwo(t *testing.T) {
	s := fsm.New()
	tell(t, s, &fsm.InitGroup{Group: "g1", Format: 1})
	for _, c := range []fsm.Command{
		&fsm.PutDriver{Driver: fsm.Driver{Name: "ns/d1", URL: "http://192.0.2.80"}},
		&fsm.PutLoadBalancer{ID: "o1", Driver: "ns/d1"},
		&fsm.AdoptBinding{Binding: fsm.PutBinding{ID: "x1", Balancer: "o1"}, UID: "u1"},
		&fsm.BeginOperation{Action: fsm.ActionCreateBalancer, Balancer: "o1", Deadline: time.Second},
	} {
		if have := outcome(t, s, c); have != fsm.RejectFormat {
			t.Errorf("%T: %v", c, have)
		}
	}
}
