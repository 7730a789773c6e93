// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"testing"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/internal/testkit"
)

// Peers with a wrong AS number or password are told with what to do, and nothing else moves: not one UPDATE, no new session.
func TestPeersThatCannotBeReachedAreToldAndMoveNothing(t *testing.T) {
	parallel(t)
	s := newSelf(t, 1)
	signed := s.neighbor()
	signed.Password = "right"
	birds := []*birdtest.Bird{
		birdtest.Start(t, birdtest.Config{Neighbors: []birdtest.Neighbor{s.neighbor()}}),
		birdtest.Start(t, birdtest.Config{Address: addr("127.0.0.2"), Neighbors: []birdtest.Neighbor{s.neighbor()}}),
		birdtest.Start(t, birdtest.Config{Address: addr("127.0.0.3"), Neighbors: []birdtest.Neighbor{signed}}),
		birdtest.Start(t, birdtest.Config{Address: addr("127.0.0.4"), Neighbors: []birdtest.Neighbor{s.neighbor()}}),
	}
	sp := s.start(t)
	d := bgp.Desired{Peers: []bgp.Peer{s.peer(birds[0])}, Paths: bgp.NewPaths(path(vip, hop1))}
	apply(t, sp, d)
	birds[0].WaitNextHops(prefix(vip), addr(hop1))
	before, watched := birds[0].Sessions()["s1"], birds[0].Watch(prefix(vip))

	theirs, password, ours := s.peer(birds[1]), s.peer(birds[2]), s.peer(birds[3])
	theirs.Name, theirs.RemoteASN = "theirs", 65099
	password.Name, password.Password = "password", "wrong"
	ours.Name, ours.LocalASN = "ours", 64999
	d.Peers = append(d.Peers, theirs, password, ours)
	if err := sp.Apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	codes := map[string]string{}
	testkit.Until(t, "the reasons", func() bool {
		peers, err := sp.Peers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range peers {
			if f := p.Fault; f != (bgp.Fault{}) && (f.Reason == "" || f.Remedy == "") {
				t.Fatalf("%s: %+v", p.Name, f)
			}
			codes[p.Name] = p.Fault.Code
		}
		return codes["theirs"] == faultTheirAS && codes["password"] == faultNoConnection && codes["ours"] == faultRefused
	})
	if codes["switch"] != "" {
		t.Errorf("the session that is open has the fault %s", codes["switch"])
	}
	if now := birds[0].Sessions()["s1"]; now != before {
		t.Errorf("the session with the switch that is fine was %+v, is %+v", before, now)
	}
	// Mended, they open.
	d.Peers[1].RemoteASN, d.Peers[2].Password, d.Peers[3].LocalASN = birds[1].ASN(), "right", 0
	if err := sp.Apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	for _, b := range birds[1:] {
		b.WaitNextHops(prefix(vip), addr(hop1))
	}
	peers, err := sp.Peers(t.Context())
	for _, p := range peers {
		if p.Fault != (bgp.Fault{}) || err != nil {
			t.Errorf("%s: %+v, %v", p.Name, p.Fault, err)
		}
	}
	// GoBGP repeats its table to all when a session synchronises; nothing is withdrawn for that.
	if now := birds[0].Sessions()["s1"]; now.Opened != before.Opened || !now.Established {
		t.Errorf("the session with the switch that is fine was %+v, is %+v", before, now)
	}
	if n, total := birdtest.Gaps(watched()); n > 0 {
		t.Errorf("%d gaps at the switch that is fine, %s in all", n, total)
	}
}
