// SPDX-License-Identifier: Apache-2.0

package member

import (
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
)

// kept is what an earlier run announced.
type kept struct{ routes *bgp.Routes }

func (k kept) Load() (*bgp.Routes, error) { return k.routes, nil }
func (kept) Save(bgp.Routes) error        { return nil }

// A member that was down while a peer got a password which it lacks leaves the peer out. The switch may hold what the member announced
// before: no withdrawal ends until it cannot. A peer that nobody announced to, or that has been met in this run, is not waited for.
func TestWithdrawalsWaitForPeersThatAMemberLeavesOut(t *testing.T) {
	rev := bgp.Revision{Epoch: 1, Index: 7}
	for name, c := range map[string]struct {
		before  string
		meets   bool
		held    bool
		unnamed bool
	}{
		"announced-before": {before: "192.0.2.2", held: true},
		"new":              {before: "192.0.2.9"},
		"met":              {before: "192.0.2.2", meets: true},
		"signed":           {before: "192.0.2.2", unnamed: true},
	} {
		t.Run(name, func(t *testing.T) {
			state := fsm.New()
			apply := applyTo(t, state)
			peer := fsm.Peer{Name: "tor", Address: netip.MustParseAddr("192.0.2.2"), ASN: 65001}
			apply(&fsm.InitGroup{Group: "g", Format: fsm.NewestFormat})
			put := func(from string) {
				next := peer
				next.PasswordFrom = from
				apply(&fsm.PutPeer{Peer: next})
			}
			before := bgp.Peer{Name: "tor", Address: netip.MustParseAddr(c.before), RemoteASN: 65001}
			var told []bgp.Revision
			h := newHolding(kept{&bgp.Routes{Peers: []bgp.Peer{before}}}, func(r bgp.Revision) { told = append(told, r) })
			lacks := func(bgp.Peer, string) (bgp.Secret, bool) { return "", false }
			r := newRoutes(state, "m1", config.BGP{}, lacks, slog.New(slog.DiscardHandler))
			r.holding = h
			if c.meets {
				put("")
				r.Routes()
			}
			if !c.unnamed {
				put("Secret/ns/tor")
			} else {
				put("")
			}
			r.Routes()
			h.withdrawn(rev)
			if held := !slices.Contains(told, rev); held != c.held {
				t.Errorf("held back: %t", held)
			}
			h.mu.Lock()
			h.until = time.Now().Add(-time.Second)
			h.mu.Unlock()
			h.release()
			h.release()
			if !slices.Equal(told, []bgp.Revision{rev}) {
				t.Errorf("in the end it told %v", told)
			}
		})
	}
}
