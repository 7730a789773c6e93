// SPDX-License-Identifier: Apache-2.0

package birdtest

import (
	"net/netip"
	"reflect"
	"testing"
)

// As BIRD 2.0.12 answers "show route all": two speakers, the second of them lost, and a third path that is demoted.
const answer1 = `Table master4:
203.0.113.10/32      unreachable [s1 2026-01-02 02:24:41.628 from 127.0.0.11] * (100) [AS65000?]
	Type: BGP univ
	BGP.origin: Incomplete
	BGP.as_path: 65000
	BGP.next_hop: 198.51.100.11
	BGP.med: 0
	BGP.local_pref: 100
                     unreachable [s1 2026-01-02 02:24:41.628 from 127.0.0.11] (100) [AS65000?]
	Type: BGP univ
	BGP.origin: Incomplete
	BGP.as_path: 65000
	BGP.next_hop: 198.51.100.10
	BGP.med: 0
	BGP.local_pref: 100
                     unreachable [s3 2026-01-02 02:24:41.628 from 127.0.0.13] (100) [AS65000?]
	Type: BGP univ
	BGP.origin: Incomplete
	BGP.as_path: 65000
	BGP.next_hop: 198.51.100.13
	BGP.med: 1000000000
	BGP.local_pref: 100
                     unreachable [s2 2026-01-02 02:24:41.628 from 127.0.0.12] (100s) [AS65000?]
	Type: BGP univ
	BGP.origin: Incomplete
	BGP.as_path: 65000
	BGP.next_hop: 198.51.100.12
	BGP.med: 0
	BGP.local_pref: 100
	BGP.community: (65535,6)

Table master6:
2001:db8:1::1/128    unreachable [s1 2026-01-02 02:24:41.628 from 127.0.0.11] * (100) [AS65000?]
	Type: BGP univ
	BGP.origin: Incomplete
	BGP.as_path: 65000
	BGP.next_hop: 2001:db8::11 fe80::1
	BGP.med: 0
	BGP.local_pref: 100
`

func TestOnlyPathsThatRankWithTheBestShareTraffic(t *testing.T) {
	t.Parallel()
	routes := parseRoutes(answer1)
	if len(routes) != 5 || routes[2].MED != 1_000_000_000 || !routes[3].LongLived || !routes[3].Stale || routes[0].Protocol != "s1" {
		t.Fatalf("routes are %+v", routes)
	}
	a := netip.MustParseAddr
	want := []Entry{
		{netip.MustParsePrefix("203.0.113.10/32"), []netip.Addr{a("198.51.100.10"), a("198.51.100.11")}},
		{netip.MustParsePrefix("2001:db8:1::1/128"), []netip.Addr{a("2001:db8::11")}},
	}
	if got := ecmp(routes); !reflect.DeepEqual(got, want) {
		t.Errorf("traffic goes to %v, want %v", got, want)
	}
}

func TestSessionsAreCountedAsTheyOpen(t *testing.T) {
	t.Parallel()
	log := `2026-11-28 08:53:46.519 <TRACE> s1: State changed to start
2026-11-28 08:53:48.156 <WARN> s1: Missing next hop address
2026-11-28 08:53:48.156 <TRACE> s1: State changed to up
2026-11-28 08:53:48.284 <TRACE> as1: State changed to up
2026-11-28 08:53:48.452 <TRACE> s1: State changed to start
2026-11-28 08:53:50.291 <TRACE> s1: State changed to up
`
	for session, want := range map[string]int{"s1": 2, "as1": 1, "1": 0} {
		if got := opened(log, session); got != want {
			t.Errorf("%s opened %d times, want %d", session, got, want)
		}
	}
}
