// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/osrg/gobgp/v4/api"

	"fairlead.io/fairlead/dataplane/bgp"
)

// Peers returns how things stand with every peer, by address.
func (s *Speaker) Peers(ctx context.Context) ([]bgp.PeerStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, bgp.ErrStopped
	}
	demoted, err := s.listDemoted(ctx)
	if err != nil {
		return nil, fmt.Errorf("list demoted peers: %w", err)
	}
	var out []bgp.PeerStatus
	err = s.server.ListPeer(ctx, &api.ListPeerRequest{EnableAdvertised: true}, func(p *api.Peer) {
		out = append(out, s.status(p, demoted))
	})
	if err != nil {
		return nil, fmt.Errorf("list peers: %w", err)
	}
	slices.SortFunc(out, func(a, b bgp.PeerStatus) int { return a.Address.Compare(b.Address) })
	return out, ctx.Err()
}

func (s *Speaker) status(p *api.Peer, demoted []netip.Addr) bgp.PeerStatus {
	address, _ := netip.ParseAddr(p.GetConf().GetNeighborAddress())
	state := p.GetState().GetSessionState()
	out := bgp.PeerStatus{
		Name: s.names[address], Address: address, State: strings.ToLower(strings.TrimPrefix(state.String(), "SESSION_STATE_")),
		Established: state == api.PeerState_SESSION_STATE_ESTABLISHED,
		UpdatesSent: p.GetState().GetMessages().GetSent().GetUpdate(),
		Demoted:     contains(demoted, address),
	}
	timers := p.GetTimers().GetState()
	s.sessionsMu.Lock()
	out.Refused, out.Demanding = s.refused[address], s.demanding[address]
	s.sessionsMu.Unlock()
	if !out.Established {
		if t := timers.GetDowntime(); t != nil {
			out.Since = t.AsTime()
		}
		out.Fault = s.faultOf(address, p)
		return out
	}
	if t := timers.GetUptime(); t != nil {
		out.Since = t.AsTime()
	}
	c := negotiated(p)
	out.AddPath, out.LongLived = c.AddPath, c.LongLived
	out.HoldTime = ofSeconds(timers.GetNegotiatedHoldTime())
	for _, af := range p.GetAfiSafis() {
		out.Announced += int(af.GetState().GetAdvertised())
	}
	return out
}

// faultOf tells why there is no session with a peer.
func (s *Speaker) faultOf(a netip.Addr, p *api.Peer) bgp.Fault {
	if f := s.logger.faults.get(a); f != (bgp.Fault{}) {
		return f
	}
	if p.GetState().GetMessages().GetReceived().GetNotification() > 0 {
		return refused()
	}
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	if since, ok := s.without[a]; !ok || time.Since(since) < silentAfter {
		return bgp.Fault{}
	}
	return silent(a, uint16(p.GetTransport().GetRemotePort()), bgp.Secret(p.GetConf().GetAuthPassword()))
}

// AdjOut returns the paths that a peer is sent, as it is sent them: with the MED of demotion, for one.
func (s *Speaker) AdjOut(ctx context.Context, peer netip.Addr) ([]bgp.Path, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, bgp.ErrStopped
	}
	var out []bgp.Path
	for _, f := range families {
		paths, err := s.listPaths(ctx, api.TableType_TABLE_TYPE_ADJ_OUT, peer.String(), f)
		if err != nil {
			return nil, fmt.Errorf("list paths sent to %s: %w", peer, err)
		}
		out = append(out, paths...)
	}
	return out, nil
}
