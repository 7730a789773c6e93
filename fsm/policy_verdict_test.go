// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"fairlead.io/fairlead/fsm"
)

// Balancing §14: a place of which every address is thought to be bad fails open; one of another port, or family, does not for that.
// Rule: balancing §14.
func TestFailOpenIsPerPlace(t *testing.T) {
	a, b, six := netip.MustParseAddr("198.51.100.11"), netip.MustParseAddr("198.51.100.12"), netip.MustParseAddr("2001:db8::11")
	tcp, udp := fsm.Port{Protocol: fsm.TCP, Number: 6432}, fsm.Port{Protocol: fsm.UDP, Number: 6432}
	vip, vip6 := netip.MustParseAddr("169.254.77.1"), netip.MustParseAddr("fd00::1")
	r := fsm.Policy{
		ID: "BalancingPolicy/db", UID: "u", Mode: "address", Probe: fsm.Probe{Type: "TCP"},
		Captures: []fsm.Capture{
			{Address: vip, Port: fsm.Port{Protocol: fsm.TCP, Number: 1}, Target: 6432}, {Address: vip, Port: fsm.Port{Protocol: fsm.UDP, Number: 2}, Target: 6432},
			{Address: vip6, Port: fsm.Port{Protocol: fsm.TCP, Number: 1}, Target: 6432},
		},
		Backends: []fsm.PolicyBackend{{Address: a, Ready: true}, {Address: b, Ready: true}, {Address: b, Ready: true}, {Address: six, Ready: true}},
	}
	s := formed(t)
	tell(t, s, &fsm.PutPolicy{Policy: r})
	bad := func(at netip.Addr, p fsm.Port) fsm.ProbeVerdict {
		return fsm.ProbeVerdict{Address: at, Port: p, Say: 2, Of: 3}
	}
	good := func(at netip.Addr, p fsm.Port) fsm.ProbeVerdict {
		return fsm.ProbeVerdict{Address: at, Port: p, Healthy: true, Say: 2, Of: 3}
	}
	for _, c := range []struct {
		verdicts []fsm.ProbeVerdict
		open     []int // captures
	}{
		{nil, nil},
		{[]fsm.ProbeVerdict{bad(a, tcp)}, nil},
		{[]fsm.ProbeVerdict{bad(a, tcp), bad(b, tcp)}, []int{0}},
		{[]fsm.ProbeVerdict{bad(a, tcp), good(b, tcp)}, nil},
		{[]fsm.ProbeVerdict{bad(a, udp), bad(b, udp), good(a, tcp)}, []int{1}},
		{[]fsm.ProbeVerdict{bad(six, tcp), bad(six, udp)}, []int{2}},
	} {
		tell(t, s, &fsm.SetPolicyHealth{ID: r.ID, UID: r.UID, Verdicts: c.verdicts})
		has, _ := fsm.Get[*fsm.Policy](s.Read(), fsm.TablePolicies, string(r.ID))
		var want []fsm.Capture
		for _, i := range c.open {
			want = append(want, r.Captures[i])
		}
		if got := has.FailsOpen(); !slices.Equal(got, want) {
			t.Errorf("with %v it fails open at %v, want %v", c.verdicts, got, want)
		}
	}
}

// What changes a verdict is told in the history, with how many nodes say so.
func TestVerdictsAreInTheHistory(t *testing.T) {
	a := netip.MustParseAddr("198.51.100.11")
	s := formed(t)
	tell(t, s, &fsm.PutPolicy{Policy: fsm.Policy{
		ID: "BalancingPolicy/db", Mode: "address", Probe: fsm.Probe{Type: "TCP"},
		Captures: []fsm.Capture{{Address: netip.MustParseAddr("169.254.77.1"), Port: fsm.Port{Protocol: fsm.TCP, Number: 1}, Target: 6432}},
		Backends: []fsm.PolicyBackend{{Address: a, Ready: true}},
	}})
	for _, healthy := range []bool{true, false, true} {
		tell(t, s, &fsm.SetPolicyHealth{ID: "BalancingPolicy/db", Verdicts: []fsm.ProbeVerdict{{
			Address: a, Port: fsm.Port{Protocol: fsm.TCP, Number: 6432}, Healthy: healthy, Say: 2, Of: 3,
		}}})
	}
	has, _ := fsm.Get[*fsm.Policy](s.Read(), fsm.TablePolicies, "BalancingPolicy/db")
	var told []string
	for _, step := range has.History {
		told = append(told, step.What)
	}
	want := "added | 198.51.100.11 6432/tcp is bad, say 2 of 3 nodes | 198.51.100.11 6432/tcp is good again, say 2 of 3 nodes"
	if got := strings.Join(told, " | "); got != want {
		t.Errorf("history %q, want %q", got, want)
	}
}
