// SPDX-License-Identifier: Apache-2.0

package check

import (
	"net/netip"
	"testing"

	"fairlead.io/fairlead/fsm"
)

// The record refuses two owners that did not agree, so that its guard has to be passed by to see this one red.
func TestS3ComparesTheOwnersOfAnAddress(t *testing.T) {
	a := netip.MustParseAddr("203.0.113.1")
	http, dns := fsm.Port{Protocol: fsm.TCP, Number: 80}, fsm.Port{Protocol: fsm.UDP, Number: 53}
	owner := func(key string, ports ...fsm.Port) fsm.Allocation {
		return fsm.Allocation{Address: a, Claim: &fsm.Claim{SharingKey: key, Ports: ports}}
	}
	for name, c := range map[string]struct {
		x, y   fsm.Allocation
		broken bool
	}{
		"agreed":       {owner("k", http), owner("k", dns), false},
		"no-key":       {owner("", http), owner("", dns), true},
		"another-key":  {owner("k", http), owner("l", dns), true},
		"one-port":     {owner("k", http), owner("k", dns, http), true},
		"released-one": {owner("k", http), fsm.Allocation{Address: a, Releasing: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := New(Options{Rules: []string{"S3"}})
			if err != nil {
				t.Fatal(err)
			}
			r := set.rules[0].(*s3)
			r.owners[a] = map[fsm.ServiceID]fsm.Allocation{"a/x": c.x, "a/y": c.y}
			if r.compare(a, 7); len(set.found) > 0 != c.broken {
				t.Errorf("found %v", set.found)
			}
		})
	}
}

func TestUnknownRulesAreRefused(t *testing.T) {
	for _, id := range []string{"S99", "S0", "s1"} {
		if _, err := New(Options{Rules: []string{id}}); err == nil {
			t.Errorf("%s is taken for a rule that can be checked", id)
		}
	}
}
