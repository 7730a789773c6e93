// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"net/netip"
	"testing"

	"fairlead.io/fairlead/fsm"
)

// What a plan came to stands no longer than the prefixes of ClusterIPs that it knew.
func TestOtherServiceCIDRsArePlannedWith(t *testing.T) {
	t.Parallel()
	record := fsm.New().Read()
	of := func(prefixes ...netip.Prefix) *Input { return &Input{Record: record, ServiceCIDRs: prefixes} }
	a, b := netip.MustParsePrefix("10.96.0.0/12"), netip.MustParsePrefix("10.32.0.0/16")
	if !of(a).same(of(a)) {
		t.Error("the same prefixes lead to another plan")
	}
	for _, other := range []*Input{of(), of(b), of(a, b)} {
		if of(a).same(other) {
			t.Errorf("%v are taken for %v", other.ServiceCIDRs, a)
		}
	}
}
