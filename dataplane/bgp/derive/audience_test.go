// SPDX-License-Identifier: Apache-2.0

package derive

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// Whom the record says that an address is to be sent to is who is sent its path.
func TestPropertyAudienceIsWhoIsSentThePath(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		g := newGroup()
		for i, name := range drawnPeers {
			g.apply(&fsm.PutPeer{Peer: fsm.Peer{Name: name, Address: netip.AddrFrom4([4]byte{198, 51, 100, byte(i + 1)}), ASN: 64512}})
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			g.apply(drawCommand(t, g))
		}
		v := g.Read()
		paths := Paths(v)
		for _, r := range fsm.List[*fsm.Route](v, fsm.TableRoutes) {
			for _, p := range paths {
				if p.Prefix != r.Prefix {
					continue
				}
				var via []fsm.NextHop // of two nodes at one address it is not said whose path it is
				for _, h := range r.NextHops {
					if h.Address() == p.NextHop {
						via = append(via, h)
					}
				}
				if len(via) != 1 {
					continue
				}
				var sent, want []string
				for _, peer := range drawnPeers {
					if _, ok := p.To(string(peer)); ok {
						sent = append(sent, string(peer))
					}
				}
				for _, peer := range v.Audience(r.Prefix.Addr(), via[0].Node()) {
					want = append(want, string(peer.Name))
				}
				if !slices.Equal(sent, want) {
					t.Fatalf("%s by %s: sent to %v, and the record says %v", r.Prefix, via[0].Node(), sent, want)
				}
			}
		}
	})
}

// drawnPeers are those that drawn advertisements name, and one that none does, in order.
var drawnPeers = []fsm.PeerName{"s1", "s2", "s3"}
