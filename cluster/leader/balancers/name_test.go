// SPDX-License-Identifier: Apache-2.0

package balancers_test

import (
	"testing"

	"fairlead.io/fairlead/cluster/leader/balancers"
	"fairlead.io/fairlead/fsm/world"
)

// Section 2.4.1: the vectors of the specification.
func TestNamesOfRecordsAreThoseOfLBCF(t *testing.T) {
	for _, c := range []struct{ what, got, want string }{
		{"pod", balancers.PodRecord("edge-web", "web-bg", "5b0c1b6e-2f0a-4d53-9a51-0d9c5d1f7a10", world.BackendPort{Port: 8080, Protocol: "TCP"}), "8e37c738700571d3078073269cf4474d"},
		{"service", balancers.ServiceRecord("edge-web", "svc-bg", "web-svc", world.BackendPort{Port: 80, Protocol: "TCP"}, "node-1"), "9dec47b899848c0710a44430d89a77f7"},
		{"static", balancers.StaticRecord("edge-web", "static-bg", "10.9.8.7:443"), "5bb99806547e6e97a86eabf25a3477df"},
		{"bind", balancers.BindRecord("shop", "edge-a", "web-0", "10.244.1.17", world.BackendPort{Port: 8080, Protocol: "TCP"}), "0cff09f67c766bcc54c9095760c51ef4"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.what, c.got, c.want)
		}
	}
}

// Section 2.4.1.
func TestBindsKeepTheCaseOfAProtocolAndAreToldApartOnlyOnCollision(t *testing.T) {
	port := world.BackendPort{Port: 80, Protocol: "tcp"}
	a, b := balancers.BindRecord("a-b", "c", "web-0", "192.0.2.1", port), balancers.BindRecord("a", "b-c", "web-0", "192.0.2.1", port)
	if a != b {
		t.Errorf("the names of LBCF differ: %s and %s", a, b)
	}
	if upper := balancers.BindRecord("a", "b-c", "web-0", "192.0.2.1", world.BackendPort{Port: 80, Protocol: "TCP"}); upper == a {
		t.Error("the case of the protocol is lost")
	}
	if one, other := balancers.Apart(a, "uid-1"), balancers.Apart(a, "uid-2"); one == a || one == other {
		t.Errorf("not apart: %s, %s, %s", a, one, other)
	}
}
