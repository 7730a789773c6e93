// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"net/netip"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
)

// After a restore nothing is removed, granted or given to another owner until the outside was looked at: each
// of these would be allowed otherwise, and is once the quarantine ends (design §4).
func TestQuarantineHoldsBackRemovalsGrantsAndReuse(t *testing.T) {
	vip, freed := vips[0], vips[1]
	prefix := fsm.HostPrefix(vip)
	hop := fsm.HopSpec{Node: "n1", Address: netip.MustParseAddr("198.51.100.1")}
	before := []fsm.Command{
		2: &fsm.PutService{Service: fsm.Service{ID: "shop/a", UID: "u1"}}, 3: &fsm.PutService{Service: fsm.Service{ID: "shop/b", UID: "u1"}},
		4: &fsm.Allocate{Address: vip, Service: "shop/a"}, 5: &fsm.Allocate{Address: freed, Service: "shop/a"},
		6: &fsm.ReleaseAllocation{Address: freed, Service: "shop/a"},
		7: &fsm.PutNode{ID: "n1"}, 8: &fsm.PutNode{ID: "n2"},
		9: &fsm.SetRoute{Prefix: prefix, Hops: []fsm.HopSpec{hop}}, 10: &fsm.SetRoute{Prefix: prefix},
		11: &fsm.PutRegister{ID: "c1"},
		12: &fsm.PutLoadBalancer{ID: "o1", Driver: "drv", Info: info("lb1")}, 13: &fsm.PutLoadBalancer{ID: "o2", Driver: "drv", Info: info("lb2")},
		14: &fsm.PutBinding{ID: "x1", Balancer: "o1", Address: "203.0.113.1:80"},
		15: &fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: "x1", Deadline: time.Second},
		16: &fsm.FinishOperation{
			Subject: "backend drv?id=lb1 203.0.113.1:80", Attempt: rev{Epoch: 1, Index: 15}, Result: fsm.ResultSucceeded,
		},
		17: &fsm.RemoveBinding{ID: "x1"},
		18: &fsm.PutBinding{ID: "x2", Balancer: "o1", Address: "203.0.113.2:80"},
		19: &fsm.PutLoadBalancer{ID: "o3", Driver: "drv", Info: info("lb3")}, 20: &fsm.DeleteLoadBalancer{ID: "o3"},
		22: &fsm.PutPolicy{Policy: fsm.Policy{ID: "BalancingPolicy/r"}},
		23: &fsm.SetTunnels{Settings: fsm.TunnelSettings{Range4: netip.MustParsePrefix("10.250.0.0/24"), Port: 7789, VNI: 7}},
		24: &fsm.PutTunnel{Host: "n1", Underlay: netip.MustParseAddr("198.51.100.1")},
		25: &fsm.PutTunnel{Host: "n2", Underlay: netip.MustParseAddr("198.51.100.2")}, 26: &fsm.ReleaseTunnel{Host: "n2"},
		21: &fsm.PutDriver{Driver: fsm.Driver{Name: "idle", URL: "http://192.0.2.80"}},
	}
	for name, c := range map[string]fsm.Command{
		"allocate":            &fsm.Allocate{Address: vips[2], Service: "shop/a"},
		"release-allocation":  &fsm.ReleaseAllocation{Address: vip, Service: "shop/a"},
		"free-allocation":     &fsm.FreeAllocation{Address: freed, Service: "shop/a"},
		"delete-service":      &fsm.DeleteService{ID: "shop/b", UID: "u1"},
		"finish-withdrawal":   &fsm.FinishWithdrawal{Prefix: prefix, Node: hop.Node, Address: hop.Address, Since: rev{Epoch: 1, Index: 10}},
		"grant-lease":         &fsm.GrantLease{VIP: vip, Holder: "n1", Term: time.Second},
		"delete-node":         &fsm.DeleteNode{ID: "n2"},
		"delete-register":     &fsm.DeleteRegister{ID: "c1"},
		"put-tunnel":          &fsm.PutTunnel{Host: "n3", Underlay: netip.MustParseAddr("198.51.100.3")},
		"release-tunnel":      &fsm.ReleaseTunnel{Host: "n1"},
		"free-tunnel":         &fsm.FreeTunnel{Host: "n2"},
		"delete-policy":       &fsm.DeletePolicy{ID: "BalancingPolicy/r"},
		"delete-balancer":     &fsm.DeleteLoadBalancer{ID: "o2"},
		"begin-delete":        &fsm.BeginOperation{Action: fsm.ActionDeleteBalancer, Balancer: "o3", Deadline: time.Second},
		"delete-driver":       &fsm.DeleteDriver{Name: "idle"},
		"remove-binding":      &fsm.RemoveBinding{ID: "x2"},
		"begin-deregistering": &fsm.BeginOperation{Action: fsm.ActionDeregister, Binding: "x1", Deadline: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := formed(t)
			tell(t, s, before[2:]...)
			tell(t, s, &fsm.NewEpoch{Group: "g1", Epoch: 2, Cause: "restore"})
			since := s.Read().Revision()
			got := fsmtest.Try(t, s, c)
			if got.Reject != fsm.RejectQuarantine {
				t.Fatalf("%v", got)
			}
			tell(t, s, &fsm.EndQuarantine{Since: since}, c)
		})
	}
}
