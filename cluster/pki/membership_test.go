// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

func genMembership() *rapid.Generator[Membership] {
	return rapid.Custom(func(t *rapid.T) Membership {
		group := rapid.SampledFrom([]string{"", "g1", "g2"}).Draw(t, "group")
		if group == "" {
			return Membership{}
		}
		return Membership{
			Group: group, Epoch: rapid.Uint64Range(0, 3).Draw(t, "epoch"), Nonce: rapid.SampledFrom([]string{"", "n1", "n2"}).Draw(t, "nonce"),
		}
	})
}

// Two that do not belong together are kept apart whichever of them dials, and both sides agree which is old.
func TestPropertyMeetIsTheSameFromBothSides(t *testing.T) {
	t.Parallel()
	mirror := map[Verdict]Verdict{Welcome: Welcome, OtherGroup: OtherGroup, PeerOutdated: WeOutdated, WeOutdated: PeerOutdated, Apart: Apart}
	testkit.Check(t, func(t *rapid.T) {
		a, b := genMembership().Draw(t, "a"), genMembership().Draw(t, "b")
		if got, want := Meet(b, a), mirror[Meet(a, b)]; got != want {
			t.Fatalf("%s meets %s: %s; the other way round %s", a, b, Meet(a, b).Reason(), got.Reason())
		}
		known := func(m Membership) bool { return m.Group != "" && m.Epoch != 0 }
		if known(a) && known(b) && (Meet(a, b) == Welcome) != (a == b) {
			t.Fatalf("%s meets %s: %s", a, b, Meet(a, b).Reason())
		}
	})
}

func TestMeet(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ours, theirs Membership
		want         Verdict
	}{
		"we-are-empty":       {Membership{}, Membership{Group: "g1", Epoch: 7}, Welcome},
		"peer-is-empty":      {Membership{Group: "g1", Epoch: 7}, Membership{}, Welcome},
		"same":               {Membership{Group: "g1", Epoch: 7}, Membership{Group: "g1", Epoch: 7}, Welcome},
		"joined-just-now":    {Membership{Group: "g1", Epoch: 7}, Membership{Group: "g1"}, Welcome},
		"joined-other-group": {Membership{Group: "g1", Epoch: 7}, Membership{Group: "g2"}, OtherGroup},
		"other-group":        {Membership{Group: "g1", Epoch: 7}, Membership{Group: "g2", Epoch: 7}, OtherGroup},
		"older":              {Membership{Group: "g1", Epoch: 7}, Membership{Group: "g1", Epoch: 6}, PeerOutdated},
		"newer":              {Membership{Group: "g1", Epoch: 7}, Membership{Group: "g1", Epoch: 8}, WeOutdated},
		"agent-older":        {Membership{Group: "g1", Epoch: 7}, Membership{Group: "g1", Epoch: 6, OrNewer: true}, Welcome},
		"agent-newer":        {Membership{Group: "g1", Epoch: 7}, Membership{Group: "g1", Epoch: 8, OrNewer: true}, Behind},
		"recovered-twice":    {Membership{Group: "g1", Epoch: 7, Nonce: "a"}, Membership{Group: "g1", Epoch: 8, Nonce: "b"}, WeOutdated},
		"recovered-apart":    {Membership{Group: "g1", Epoch: 7, Nonce: "a"}, Membership{Group: "g1", Epoch: 7, Nonce: "b"}, Apart},
		"recovered-together": {Membership{Group: "g1", Epoch: 7, Nonce: "a"}, Membership{Group: "g1", Epoch: 7, Nonce: "a"}, Welcome},
		"agent-of-record":    {Membership{Group: "g1", Epoch: 2, Record: Record{"g1", 7}}, Membership{Group: "g1", Epoch: 7, OrNewer: true}, Welcome},
		"agent-of-later":     {Membership{Group: "g1", Epoch: 2, Record: Record{"g1", 7}}, Membership{Group: "g1", Epoch: 8, OrNewer: true}, Behind},
		"agent-of-before":    {Membership{Group: "g1", Epoch: 7, Record: Record{"g2", 8}}, Membership{Group: "g1", Epoch: 7, OrNewer: true}, Welcome},
		"agent-of-restored":  {Membership{Group: "g1", Epoch: 7, Record: Record{"g2", 8}}, Membership{Group: "g2", Epoch: 8, OrNewer: true}, Welcome},
		"agent-other-group":  {Membership{Group: "g1", Epoch: 7}, Membership{Group: "g2", Epoch: 7, OrNewer: true}, OtherGroup},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Meet(test.ours, test.theirs); got != test.want {
				t.Fatalf("%s, want %s", got.Reason(), test.want.Reason())
			}
		})
	}
}

func TestPropertyProtocolNamesAreReadBack(t *testing.T) {
	t.Parallel()
	testkit.Check(t, func(t *rapid.T) {
		port := rapid.SampledFrom([]Port{Raft, API}).Draw(t, "port")
		m := Membership{OrNewer: rapid.Bool().Draw(t, "or newer")}
		if rapid.Bool().Draw(t, "has group") {
			m.Group = rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._\-]{0,63}`).Draw(t, "group")
			m.Epoch = rapid.Uint64().Draw(t, "epoch")
			m.Nonce = rapid.StringMatching(`([A-Za-z0-9]{1,16})?`).Draw(t, "nonce")
		}
		protocol := port.protocol(m)
		if len(protocol) > 255 {
			t.Fatalf("%d bytes do not fit into ALPN", len(protocol))
		}
		got, named, err := port.offered([]string{"h2", protocol, "http/1.1"})
		if err != nil || !named || got != m {
			t.Fatalf("%q read back as %+v, %v, %v", protocol, got, named, err)
		}
	})
}

func TestOfferRefusesMalformedMemberships(t *testing.T) {
	t.Parallel()
	for name, protocols := range map[string][]string{
		"two":              {"fairlead/g1/1", "fairlead/g2/1"},
		"no-epoch":         {"fairlead/g1"},
		"negative":         {"fairlead/g1/-1"},
		"overflow":         {"fairlead/g1/18446744073709551616"},
		"no-group":         {"fairlead//1"},
		"epoch-of-nothing": {"fairlead/-/1"},
		"odd-group":        {"fairlead/-g1/1"},
		"extra":            {"fairlead/g1/1/2"},
		"nonce-empty":      {"fairlead/g1/1."},
		"nonce-odd":        {"fairlead/g1/1.a-b"},
		"nonce-long":       {"fairlead/g1/1." + strings.Repeat("a", 17)},
		"nonce-of-nothing": {"fairlead/-/0.a"},
		"long":             {"fairlead/" + strings.Repeat("g", 65) + "/1"},
	} {
		t.Run(name, func(t *testing.T) {
			if m, _, err := API.offered(protocols); err == nil {
				t.Fatalf("read as %+v", m)
			}
		})
	}
}
