// SPDX-License-Identifier: Apache-2.0

package opensessions

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// A session counts as open from when all was written to it once, until it has been away for a minute: seen at every second. What the record
// had of a member that restarted counts likewise. A record that was never told waits for sessions for ten seconds, and no longer.
func TestPropertySessionsThatAreBrieflyAwayCountAsOpen(t *testing.T) {
	peers := []Peer{{Name: "a", Address: netip.MustParseAddr("192.0.2.1")}, {Name: "b", Address: netip.MustParseAddr("192.0.2.2")}}
	testkit.Check(t, func(t *rapid.T) {
		var seen Watch
		have := fsm.Sessions{Told: rapid.Bool().Draw(t, "a speaker that restarted")}
		counts, lastThere := map[fsm.PeerName]bool{}, map[fsm.PeerName]int{} // the model: who counts, and when it last had a reason to
		for _, p := range peers {
			if have.Told && rapid.Bool().Draw(t, "the record has it open") {
				have.Open = append(have.Open, fsm.Reach{Peer: p.Name, IPv4: true})
				counts[p.Name], lastThere[p.Name] = true, -1
			}
		}
		session, whole := map[fsm.PeerName]uint64{}, map[fsm.PeerName]bool{}
		start, number := time.Now(), uint64(0)
		for second := range 200 {
			var links []bgp.Link
			all := true
			for _, p := range peers {
				switch rapid.SampledFrom([]string{"", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "open", "lose"}).Draw(t, string(p.Name)) {
				case "open":
					number++
					session[p.Name], whole[p.Name] = number, false
				case "lose":
					session[p.Name], whole[p.Name] = 0, false
				}
				l := bgp.Link{Peer: p.Address, Session: session[p.Name], IPv4: true, Written: session[p.Name] > 0 && rapid.Bool().Draw(t, "written")}
				if links = append(links, l); l.Written {
					whole[p.Name] = true
				}
				if whole[p.Name] {
					counts[p.Name], lastThere[p.Name] = true, second
				} else {
					all = false
				}
				if !have.Told && !whole[p.Name] {
					counts[p.Name] = false // the record has nothing to be kept
				}
				// It is away since the first look without it: at a look a minute after that one it no longer counts.
				if counts[p.Name] && second-lastThere[p.Name] > 60 {
					counts[p.Name] = false
				}
			}
			open, settled := seen.Look(start.Add(time.Duration(second)*time.Second), links, peers, have)
			var names, want []fsm.PeerName
			for _, o := range open {
				names = append(names, o.Peer)
			}
			for _, p := range peers {
				if counts[p.Name] {
					want = append(want, p.Name)
				}
			}
			if !slices.Equal(names, want) {
				t.Fatalf("second %d: %v count as open, want %v", second, names, want)
			}
			if wanted := all || have.Told || second >= 10; settled != wanted {
				t.Fatalf("second %d: settled %t, want %t", second, settled, wanted)
			}
			if settled {
				have = fsm.Sessions{Told: true, Open: open}
			}
		}
	})
}
