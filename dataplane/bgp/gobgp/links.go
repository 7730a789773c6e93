// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/osrg/gobgp/v4/api"

	"fairlead.io/fairlead/dataplane/bgp"
)

// Links implements bgp.Speaker. How much has been sent and has arrived is counted in bytes, as TCP does. BGP itself
// confirms nothing. It changes nothing: sessions that leave their peers a residue are for Mend.
//
// Errors: bgp.ErrStopped; ctx.Err().
func (s *Speaker) Links(ctx context.Context) ([]bgp.Link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, bgp.ErrStopped
	}
	peers, err := s.listPeers(ctx)
	if err != nil {
		return nil, fmt.Errorf("list peers: %w", err)
	}
	out, err := s.links(peers, time.Now())
	if err != nil {
		return nil, err
	}
	s.linked = out
	return out, nil
}

// links tells how the speaker stands with each peer.
func (s *Speaker) links(peers map[netip.Addr]*api.Peer, now time.Time) ([]bgp.Link, error) {
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	var out []bgp.Link
	open := map[netip.Addr]bool{}
	for a, p := range peers {
		session := s.sessions[a]
		if session == nil && p.GetState().GetSessionState() != api.PeerState_SESSION_STATE_ESTABLISHED {
			continue
		}
		open[a] = true
		l, err := session.link(a, p, now)
		if err != nil {
			return nil, fmt.Errorf("look at the connection with %s: %w", a, err)
		}
		s.judge(session, p, &l)
		out = append(out, l)
	}
	for _, a := range s.keeping.Peers(now) {
		if !open[a] {
			out = append(out, bgp.Link{Peer: a})
		}
	}
	slices.SortFunc(out, func(l, m bgp.Link) int { return l.Peer.Compare(m.Peer) })
	return out, nil
}

// link tells how the session stands. One that opened this moment, or whose connection is gone, is none yet, or none any
// more.
func (n *session) link(a netip.Addr, p *api.Peer, now time.Time) (bgp.Link, error) {
	if n == nil {
		return bgp.Link{Peer: a}, nil
	}
	families := negotiated(p).Families
	l := bgp.Link{
		Peer: a, Session: n.number, Written: n.written(p, now),
		IPv4: slices.Contains(families, bgp.IPv4), IPv6: slices.Contains(families, bgp.IPv6),
	}
	err := withSocket(n.tuple, func(fd int) (err error) {
		l.Sent, l.Arrived, err = stream(fd)
		return err
	})
	if errors.Is(err, errNoSocket) {
		return bgp.Link{Peer: a}, nil
	}
	return l, err
}
