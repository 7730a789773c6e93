// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"net/netip"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/frrtest"
)

// The story of a switch with FRR: both speakers, one demoted, one stopped for a restart, both back, one drained.
func TestFRRFollowsSpeakersThroughDemotionAndRestart(t *testing.T) {
	noRaceDetector(t)
	parallel(t)
	selves := []self{newSelf(t, 1), newSelf(t, 2)}
	frr := frrtest.Start(t, selves[0].neighbor(), selves[1].neighbor())
	speakers := []*Speaker{selves[0].start(t), selves[1].start(t)}
	var desired [2]bgp.Desired
	for i, s := range selves {
		desired[i] = bgp.Desired{
			Peers: []bgp.Peer{{
				Address: frr.Address(), Port: frr.Port(), RemoteASN: frrtest.ASN, LocalAddress: s.addr,
				Families: []bgp.Family{bgp.IPv4, bgp.IPv6},
			}},
			Paths: bgp.NewPaths(path(vip, []string{hop1, "198.51.100.21"}[i]), path(vip, []string{hop2, "198.51.100.22"}[i]), path(vip6, "2001:db8::11")),
		}
		apply(t, speakers[i], desired[i])
	}
	first, second := listOf(desired[0].Paths), listOf(desired[1].Paths)
	frr.WaitNextHops(prefix(vip), first[0].NextHop, first[1].NextHop, second[0].NextHop, second[1].NextHop)
	frr.WaitNextHops(prefix(vip6), addr("2001:db8::11"))

	desired[0].Demoted = true
	apply(t, speakers[0], desired[0])
	frr.WaitNextHops(prefix(vip), second[0].NextHop, second[1].NextHop)
	desired[0].Demoted = false
	apply(t, speakers[0], desired[0])
	frr.WaitNextHops(prefix(vip), first[0].NextHop, first[1].NextHop, second[0].NextHop, second[1].NextHop)

	if err := speakers[1].Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	frr.WaitNextHops(prefix(vip), first[0].NextHop, first[1].NextHop) // the others rank last
	if err := speakers[0].Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	frr.Wait("stale paths to serve", func() bool { return len(frr.NextHops(prefix(vip))) > 0 })
	again := selves[1].start(t)
	apply(t, again, desired[1])
	frr.WaitNextHops(prefix(vip), second[0].NextHop, second[1].NextHop)
	if err := again.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	frr.WaitNextHops(prefix(vip))
}

// A switch is told by the link bandwidth community what next hops weigh, and told anew when that changes.
func TestFRRIsToldWhatNextHopsWeigh(t *testing.T) {
	noRaceDetector(t)
	parallel(t)
	self := newSelf(t, 1)
	frr := frrtest.Start(t, self.neighbor())
	speaker := self.start(t)
	paths := []bgp.Path{path(vip, hop1), path(vip, hop2), path(vip6, "2001:db8::11")}
	paths[0].Weight, paths[1].Weight, paths[2].Weight = 3, 1, 10_000
	desired := bgp.Desired{Paths: bgp.NewPaths(paths...), Peers: []bgp.Peer{{
		Address: frr.Address(), Port: frr.Port(), RemoteASN: frrtest.ASN, LocalAddress: self.addr,
		Families: []bgp.Family{bgp.IPv4, bgp.IPv6},
	}}}
	apply(t, speaker, desired)
	frr.WaitWeights(prefix(vip), map[netip.Addr]float64{addr(hop1): 3, addr(hop2): 1})
	frr.WaitWeights(prefix(vip6), map[netip.Addr]float64{addr("2001:db8::11"): 10_000})

	paths[0].Weight, paths[1].Weight = 2, 0
	desired.Paths = bgp.NewPaths(paths...)
	apply(t, speaker, desired)
	frr.WaitWeights(prefix(vip), map[netip.Addr]float64{addr(hop1): 2, addr(hop2): 0})
}
