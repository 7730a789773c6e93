// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"net/netip"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
)

// The node that answers for an address keeps its rules until it does no more (S9). Drawn histories have this moment seldom.
func TestAHopStaysWhileItsNodeHoldsTheLease(t *testing.T) {
	prefix, address := netip.MustParsePrefix("203.0.113.1/32"), netip.MustParseAddr("192.0.2.1")
	s := formed(t)
	tell(t, s, &fsm.PutService{Service: fsm.Service{ID: "shop/a", UID: "u1"}}, &fsm.PutNode{ID: "n1"}, &fsm.PutNode{ID: "n2"},
		&fsm.Allocate{Address: prefix.Addr(), Service: "shop/a"}, &fsm.SetRoute{Prefix: prefix, Hops: []fsm.HopSpec{{Node: "n1", Address: address}}},
		&fsm.GrantLease{VIP: prefix.Addr(), Holder: "n1", Term: time.Second, Keep: true})
	fence := s.Read().Revision()
	tell(t, s, &fsm.SetRoute{Prefix: prefix})
	since := s.Read().Revision()
	refused := func(c fsm.Command, why fsm.Reject) {
		t.Helper()
		if o := fsmtest.Try(t, s, c); o.Reject != why {
			t.Errorf("%T: %v, not %v", c, o.Err(), why)
		}
	}
	finish := &fsm.FinishWithdrawal{Prefix: prefix, Node: "n1", Address: address, Since: since}
	refused(finish, fsm.RejectLeaseHeld)
	refused(&fsm.EndLease{VIP: prefix.Addr(), Fence: fence}, fsm.RejectLeaseHeld) // time ends no lease that is kept
	tell(t, s, &fsm.EndLease{VIP: prefix.Addr(), Fence: fence, Word: fsm.WordHolder}, finish)
}
