// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/osrg/gobgp/v4/api"

	"fairlead.io/fairlead/dataplane/bgp"
)

// FRR does not always drop what it kept of a lost session and the next one lacks, whatever End-of-RIB says:
//
//   - Of several such paths of one prefix each End-of-RIB drops one (before 9.0.5, 9.1.3, 10.0.3 and 10.1.2).
//   - On a session that it dialled, once the restart time was over, it drops none, and keeps them for as long as the session lasts:
//     only a connection that it accepts, or that fails, ends the long-lived phase for it.
//   - When a connection closes it drops all that the session on it did not tell it of, and keeps the rest, as for any restart.
//
// So a session that may leave it some is restarted, once the switch has everything. To send End-of-RIB again would not do: FRR takes a
// path out some time after it dropped it, and drops the same one again until then.

const (
	// healEvery is the least time between restarts of one session for what its peer kept. Paths that are withdrawn while it is away
	// may ask for the next one, and with many changes that must not become one restart after the other.
	healEvery = time.Minute
	// healAfter is how long the switch has had everything before. What its TCP took, a busy one may still have to read, and would
	// lose with the connection.
	healAfter = 5 * time.Second
)

// mayKeep tells whether a switch may go on keeping what it kept of earlier sessions after this one has told it everything.
func (s *Speaker) mayKeep(n *session, p *api.Peer, peer netip.Addr) bool {
	if c := negotiated(p); !c.Restart || !c.Named {
		return false
	}
	most, known := s.residue.Most(peer)
	accepted := n.tuple.localPort == s.port
	return !known || most > 1 || accepted && most > 0
}

// judge completes a link: what the peer may hold beside what the session, whose table has been written, tells it of.
func (s *Speaker) judge(n *session, p *api.Peer, l *bgp.Link) {
	if l.Session == 0 || !l.Written {
		return
	}
	if !n.judged {
		n.judged, n.residue = true, s.mayKeep(n, p, l.Peer)
	}
	l.Residue = n.residue
	switch {
	case l.Arrived < l.Sent:
	case !l.Residue:
		s.residue.Settled(l.Peer)
	case n.had.IsZero():
		n.had = time.Now()
	}
}

// Mend implements bgp.Speaker: it restarts the sessions whose peers have had everything for long enough, and may hold more.
//
// Errors: bgp.ErrStopped; GoBGP's.
func (s *Speaker) Mend(ctx context.Context, longer time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return bgp.ErrStopped
	}
	links := s.linked
	s.linked = nil // what it says of sessions that are restarted is over
	for _, l := range links {
		n := s.session(l.Peer)
		if n == nil || !l.Residue || l.Arrived < l.Sent || time.Since(n.had) < healAfter+longer || time.Since(s.healed[l.Peer]) < healEvery {
			continue
		}
		if err := s.renewSession(ctx, l.Peer, "the switch may hold paths of an earlier session"); err != nil {
			return err
		}
	}
	return nil
}

// renewSession restarts the session with a peer that has everything.
func (s *Speaker) renewSession(ctx context.Context, a netip.Addr, reason string) error {
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
	s.logger.log.Info("session restarted", "peer", a, "reason", reason)
	s.residue.Settled(a) // once the connection is closed
	return s.restartPeer(ctx, peer)
}
