// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	wire "github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"fairlead.io/fairlead/dataplane/bgp"
)

// session is an open session with a peer.
type session struct {
	number uint64
	tuple  tuple
	since  time.Time
	*queue
	judged    bool      // what follows is known
	residue   bool      // the peer may hold what it kept of an earlier session: see mayKeep
	demanding bool      // it ends because of what the peer asks for: see demands.go
	had       time.Time // since when the peer has had a whole table; only where residue is set
}

// Sessions that were lost sooner than shortLife after they opened wait before they dial again: a switch that refuses us
// at once is not asked ten times a second.
const (
	shortLife    = 10 * time.Second
	shortLifeLag = 4 * time.Second // GoBGP itself waits for 5 s
)

// onEvent learns from GoBGP which sessions open and close.
func (s *Speaker) onEvent(e *apiutil.WatchEventMessage_PeerEvent, _ time.Time) {
	peer := e.Peer
	if !peer.State.NeighborAddress.IsValid() || e.Type == apiutil.PEER_EVENT_INIT {
		return
	}
	address := s.zoned(peer.State.NeighborAddress)
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	if peer.State.SessionState == wire.BGP_FSM_ESTABLISHED {
		now := time.Now()
		s.opened++
		delete(s.without, address)
		if s.queues[address] == nil {
			s.queues[address] = newQueue(now)
		}
		s.sessions[address] = &session{number: s.opened, since: now, queue: s.queues[address], tuple: tuple{
			localPort: uint16(peer.Transport.LocalPort),
			remote:    netip.AddrPortFrom(address, uint16(peer.Transport.RemotePort)),
		}}
		return
	}
	lost, ok := s.sessions[address]
	if !ok {
		return
	}
	delete(s.sessions, address)
	s.without[address] = time.Now()
	s.keeping.Lost(address, time.Now())
	lag := time.Duration(0)
	if time.Since(lost.since) < shortLife {
		lag = shortLifeLag
	}
	if lost.demanding {
		lag = demandLag
	}
	time.AfterFunc(lag, func() { s.renew(address) })
}

func (s *Speaker) session(a netip.Addr) *session {
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	return s.sessions[a]
}

// leaveSession keeps the end of the session, which is about to follow, from being taken for the switch's doing.
func (s *Speaker) leaveSession(a netip.Addr) {
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	if s.sessions[a] != nil {
		delete(s.sessions, a)
		s.keeping.Left(a)
	}
}

// left notes that a session which was open a moment ago took leave of its peer, though its end may have been told of since.
func (s *Speaker) left(a netip.Addr) {
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	s.keeping.Left(a)
}

// forget drops what is remembered of a peer that goes.
func (s *Speaker) forget(a netip.Addr) {
	delete(s.names, a)
	delete(s.healed, a)
	s.residue.Gone(a)
	s.logger.faults.forget(a)
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	delete(s.without, a)
	delete(s.queues, a)
	delete(s.refused, a)
	delete(s.demanding, a)
	if s.unnumbered[a.WithZone("")] == a {
		delete(s.unnumbered, a.WithZone(""))
	}
}

// zoned gives the address of an unnumbered peer the zone that GoBGP's events and policies lack. No two peers differ in that alone.
func (s *Speaker) zoned(a netip.Addr) netip.Addr {
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	if known, ok := s.unnumbered[a]; ok {
		return known
	}
	return a
}

// meet notes a peer that is added or changed: what was wrong with it may be no longer.
func (s *Speaker) meet(p bgp.Peer) {
	s.logger.faults.forget(p.Address)
	s.residue.Met(p.Address)
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	s.without[p.Address] = time.Now()
	if p.Unnumbered() {
		s.unnumbered[p.Address.WithZone("")] = p.Address
	}
	s.keeping.Met(p, time.Now())
}

// renew makes a peer whose session was lost anew. GoBGP clears the restarting mark after its first synchronisation, and
// a session that returns without it makes the switch drop our paths; a new peer also dials sooner.
func (s *Speaker) renew(a netip.Addr) {
	ctx := context.Background()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	peers, err := s.listPeers(ctx)
	if err != nil {
		s.logger.log.Error("renew peer", "peer", a, "err", err)
		return
	}
	old, ok := peers[a]
	if !ok || s.session(a) != nil || old.GetState().GetSessionState() == api.PeerState_SESSION_STATE_ESTABLISHED {
		return
	}
	peer, err := decodePeer(old)
	if err == nil {
		err = s.replacePeer(ctx, peer, peer)
	}
	if err != nil {
		s.logger.log.Error("renew peer", "peer", a, "err", err)
	}
}

// replacePeer makes a peer without a session anew. GoBGP forgets the key of the listener only by an update.
func (s *Speaker) replacePeer(ctx context.Context, old, peer bgp.Peer) error {
	if old.Password != peer.Password {
		old.Password = peer.Password
		if _, err := s.server.UpdatePeer(ctx, &api.UpdatePeerRequest{Peer: encodePeer(old)}); err != nil {
			return fmt.Errorf("change password of peer %s: %w", peer.Address, err)
		}
	}
	if err := s.server.DeletePeer(ctx, &api.DeletePeerRequest{Address: peer.Address.String()}); err != nil {
		return fmt.Errorf("restart peer %s: %w", peer.Address, err)
	}
	return s.addPeer(ctx, peer)
}

// restartPeer changes a peer by a new session. The old one ends without a NOTIFICATION, so that the switch keeps the
// paths: every speaker does this at about the same time, and a prefix must not be lost between them.
func (s *Speaker) restartPeer(ctx context.Context, peer bgp.Peer) error {
	peers, err := s.listPeers(ctx)
	if err != nil {
		return fmt.Errorf("list peers: %w", err)
	}
	old, err := decodePeer(peers[peer.Address])
	if err != nil {
		return err
	}
	if ends := peer.Restart.Mode == bgp.RestartNone && old.Restart.Mode != bgp.RestartNone && !old.Restart.Notification; ends {
		// The next session is one without restarts, at which the switch is to drop what it kept. FRR drops one path of each prefix, and
		// nobody could restart that session for the rest without losing all: the former one takes leave, which ends it all at once.
		s.leaveSession(peer.Address)
	} else if err := s.closeSessions(ctx, peer.Address); err != nil {
		s.logger.log.Warn("peer restarted with notification", "peer", peer.Address, "err", err)
	}
	if !slices.Equal(old.Families, peer.Families) {
		s.residue.Doubt(peer.Address)
	}
	return s.replacePeer(ctx, old, peer)
}

// Leaving without NOTIFICATION takes a few milliseconds. These bound how long we try, and how long sessions that are
// just opening are given to open (or not), so that they do not do so between our last look and the end.
const (
	closeWait   = 2 * time.Second
	openingWait = 200 * time.Millisecond
)

// closeSessions closes the connections of the given peers, or of all, beneath GoBGP: the switch sees TCP close, as if
// the process had died, and keeps our paths. It returns when GoBGP has noticed.
func (s *Speaker) closeSessions(ctx context.Context, only ...netip.Addr) error {
	start := time.Now()
	for {
		peers, err := s.listPeers(ctx)
		if err != nil {
			return fmt.Errorf("list peers: %w", err)
		}
		open, opening := 0, 0
		for a, p := range peers {
			if len(only) > 0 && !contains(only, a) {
				continue
			}
			switch p.GetState().GetSessionState() {
			case api.PeerState_SESSION_STATE_ESTABLISHED:
				open++
				if session := s.session(a); session != nil {
					if err := shutdownSocket(session.tuple); err != nil {
						return fmt.Errorf("close connection with %s: %w", a, err)
					}
				}
			case api.PeerState_SESSION_STATE_OPENSENT, api.PeerState_SESSION_STATE_OPENCONFIRM:
				opening++
			}
		}
		passed := time.Since(start)
		if open == 0 && (opening == 0 || passed > openingWait) {
			return nil
		}
		if passed > closeWait {
			return fmt.Errorf("close connections: %d of them still open after %s", open, closeWait)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Detach stops the speaker for a planned restart: connections close without a NOTIFICATION, so that switches keep our
// paths (as long as graceful restart was negotiated) until it returns. The speaker cannot be used any more.
func (s *Speaker) Detach(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return bgp.ErrStopped
	}
	s.stopped = true
	err := s.closeSessions(ctx)
	s.stopServer()
	if err != nil {
		return fmt.Errorf("detach: %w", err)
	}
	return nil
}

// Drain stops the speaker for good: it takes leave of its peers (Cease), and they drop our paths at once. The speaker
// cannot be used any more.
func (s *Speaker) Drain(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return bgp.ErrStopped
	}
	s.stopped = true
	s.stopServer()
	return nil
}
