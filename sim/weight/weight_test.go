// SPDX-License-Identifier: Apache-2.0

package weight_test

import (
	"net/netip"
	"strings"
	"testing"

	"fairlead.io/fairlead/sim/weight"
)

func TestTheFirstRuleThatNamesAnEndpointCounts(t *testing.T) {
	e := weight.Endpoint{Pod: "web-1", Node: "n1", Zone: "b", Address: netip.MustParseAddr("192.0.2.7")}
	for text, want := range map[string]uint16{
		"":                                    1,
		"pod/web-*=4":                         4,
		"pod/shop-*=4":                        1,
		"node/n1=0, pod/web-1=4":              0,
		" node/n2 = 0 ,zone/[ab]= 9 ":         9,
		"192.0.2.7=2":                         2,
		"::ffff:192.0.2.7=65535":              65535,
		"pod/web-*=many, node/n1=3":           1,
		"bogus/web-1=7, pod/[=7, pod/=7, x=7": 1,
		"pod/web-1=65536":                     1,
		"pod/web-1=-1":                        1,
		strings.Repeat("pod/x=1,", 64) + "node/n1=0": 1,
		strings.Repeat("pod/x=1,", 63) + "node/n1=0": 0,
	} {
		if got := weight.Of(text, e); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
