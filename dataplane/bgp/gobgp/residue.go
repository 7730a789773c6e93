// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	api "github.com/osrg/gobgp/v3/api"

	"fairlead.io/fairlead/dataplane/bgp"
)

// FRR does not always drop what it kept of a lost session and the next one lacks, whatever End-of-RIB says:
//
//   - Of several such paths of one prefix each End-of-RIB drops one (before 9.0.5, 9.1.3, 10.0.3 and 10.1.2).
//   - On a session that it dialled, once the restart time was over, it drops none, and keeps them for as long as the session lasts:
//     only a connection that it accepts, or that fails, ends the long-lived phase for it.
//   - When a connection closes it drops all that the session on it did not tell it of, and keeps the rest, as for any restart.
//
// So a session is sent as many End-of-RIBs as there may be such paths, if they are few and we dialled. Otherwise it is restarted once
// the switch has everything.

const (
	// healEvery is the least time between restarts of one session for what its peer kept. Paths that are withdrawn while it is
	// away may ask for the next one, and with many changes that must not become one restart after the other.
	healEvery = time.Minute
	// mostEnds is how many End-of-RIBs a session is sent at most: the whole table goes with each.
	mostEnds = 4
	// mostOfOne is how many paths of a prefix a speaker of one path has announced at most: one that replaces another comes first.
	mostOfOne = 2
)

// leftover is what the peer of a session may hold of a prefix, beside what the session tells it of.
type leftover struct {
	judged   bool
	most     int  // paths of earlier sessions, before any End-of-RIB
	any      bool // there is no telling how many
	accepted bool // the peer dialled
	ends     int  // End-of-RIBs that it was sent
}

// left says whether something may be left.
func (l *leftover) left() bool { return l.any || l.accepted && l.most > 0 || l.most > l.ends }

// curable says whether End-of-RIBs can do something about it.
func (l *leftover) curable() bool { return !l.any && !l.accepted && l.most <= mostEnds }

// judge completes a link: what the peer may hold beside what the session, whose table has been written, tells it of.
func (s *Speaker) judge(n *session, p *api.Peer, l *bgp.Link) {
	if l.Session == 0 || !l.Written {
		return
	}
	if !n.judged {
		n.leftover = leftover{judged: true, ends: 1, accepted: n.tuple.localPort == s.port}
		if c := negotiated(p); c.Restart && c.Named {
			most, known := s.residue.Most(l.Peer)
			if !known && s.onePath {
				most, known = mostOfOne, true
			}
			n.most, n.any = most, !known
		}
	}
	l.Residue = n.left()
	if !l.Residue && l.Arrived >= l.Sent {
		s.residue.Settled(l.Peer)
	}
}

// heal has peers that have everything, and may hold more, drop the rest. Errors: GoBGP's.
func (s *Speaker) heal(ctx context.Context, links []bgp.Link) error {
	for _, l := range links {
		if !l.Residue || l.Arrived < l.Sent {
			continue
		}
		n := s.session(l.Peer)
		if n == nil {
			continue
		}
		var err error
		if n.curable() {
			err = s.sendEnds(ctx, l.Peer, n)
		} else if time.Since(s.healed[l.Peer]) >= healEvery {
			err = s.renewSession(ctx, l.Peer)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sendEnds sends a peer the table again, and End-of-RIB with it, as often as it takes.
func (s *Speaker) sendEnds(ctx context.Context, peer netip.Addr, n *session) error {
	for ; n.ends < n.most; n.ends++ {
		req := &api.ResetPeerRequest{Address: peer.String(), Soft: true, Direction: api.ResetPeerRequest_OUT}
		if err := s.server.ResetPeer(ctx, req); err != nil {
			return fmt.Errorf("send all paths to peer %s again: %w", peer, err)
		}
	}
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	n.uncounted, n.moved = true, time.Now()
	return nil
}

// renewSession restarts the session with a peer that has everything.
func (s *Speaker) renewSession(ctx context.Context, a netip.Addr) error {
	peers, err := s.listPeers(ctx)
	if err != nil {
		return fmt.Errorf("list peers: %w", err)
	}
	if peers[a] == nil {
		return nil
	}
	peer, err := decodePeer(peers[a])
	if err != nil {
		return err
	}
	s.healed[a] = time.Now()
	s.logger.log.Info("session restarted", "peer", a, "reason", "the switch may hold paths of an earlier session")
	s.residue.Settled(a) // once the connection is closed
	return s.restartPeer(ctx, peer)
}
