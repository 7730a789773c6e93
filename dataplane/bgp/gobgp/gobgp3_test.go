// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"testing"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/gobgptest"
)

// The story of a switch with GoBGP 3, which users of earlier systems have: both speakers, one demoted, one stopped for a restart, both back,
// one drained.
func TestGoBGP3FollowsSpeakersThroughDemotionAndRestart(t *testing.T) {
	noRaceDetector(t)
	parallel(t)
	selves := []self{newSelf(t, 1), newSelf(t, 2)}
	old := gobgptest.Start(t, selves[0].neighbor(), selves[1].neighbor())
	speakers := []*Speaker{selves[0].start(t), selves[1].start(t)}
	var desired [2]bgp.Desired
	for i, s := range selves {
		desired[i] = bgp.Desired{
			Peers: []bgp.Peer{{
				Address: old.Address(), Port: old.Port(), RemoteASN: gobgptest.ASN, LocalAddress: s.addr,
				Families: []bgp.Family{bgp.IPv4, bgp.IPv6},
			}},
			Paths: bgp.NewPaths(path(vip, []string{hop1, "198.51.100.21"}[i]), path(vip, []string{hop2, "198.51.100.22"}[i]), path(vip6, "2001:db8::11")),
		}
		apply(t, speakers[i], desired[i])
	}
	first, second := listOf(desired[0].Paths), listOf(desired[1].Paths)
	old.WaitNextHops(prefix(vip), first[0].NextHop, first[1].NextHop, second[0].NextHop, second[1].NextHop)
	old.WaitNextHops(prefix(vip6), addr("2001:db8::11"))

	desired[0].Demoted = true
	apply(t, speakers[0], desired[0])
	old.WaitNextHops(prefix(vip), second[0].NextHop, second[1].NextHop)
	desired[0].Demoted = false
	apply(t, speakers[0], desired[0])
	old.WaitNextHops(prefix(vip), first[0].NextHop, first[1].NextHop, second[0].NextHop, second[1].NextHop)

	if err := speakers[1].Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	old.WaitNextHops(prefix(vip), first[0].NextHop, first[1].NextHop) // the others rank last
	old.WaitHolds(prefix(vip), first[0].NextHop, first[1].NextHop, second[0].NextHop, second[1].NextHop)
	if err := speakers[0].Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	old.WaitNextHops(prefix(vip), second[0].NextHop, second[1].NextHop) // stale as they are
	again := selves[1].start(t)
	apply(t, again, desired[1])
	old.WaitFresh(prefix(vip))
	old.WaitNextHops(prefix(vip), second[0].NextHop, second[1].NextHop)
	if err := again.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	old.WaitNextHops(prefix(vip))
}
