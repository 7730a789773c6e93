// SPDX-License-Identifier: Apache-2.0

package spelling

import (
	"slices"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"web", "web", 0}, {"web", "wbe", 2}, {"web", "webs", 1}, {"", "abc", 3}, {"kitten", "sitting", 3}} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("%q and %q are %d apart, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestNearIsWhatMayBeMeant(t *testing.T) {
	words := []string{"IPAddressPool", "BGPPeer", "BGPAdvertisement", "L2Advertisement", "BFDProfile", "Community", "BGPPeer"}
	for want, near := range map[string][]string{
		"IPAddresPool": {"IPAddressPool"}, "bgppeer": {"BGPPeer"}, "BGPAdvertisment": {"BGPAdvertisement", "L2Advertisement"}, "Kitten": nil, "": nil, "AddressPool": {"IPAddressPool"},
	} {
		if got := Near(want, words); !slices.Equal(got, near) {
			t.Errorf("by %q one of %v may be meant, want %v", want, got, near)
		}
	}
	if got := Meant("IPAddresPool", words); got != "; did you mean IPAddressPool?" || Meant("Kitten", words) != "" {
		t.Errorf("%q", got)
	}
	if got := Near("a", []string{"b", "c", "d", "e"}); len(got) != 3 {
		t.Errorf("%v", got)
	}
}
