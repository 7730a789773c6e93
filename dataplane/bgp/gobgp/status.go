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

// PeerStatus is how things stand with one peer.
type PeerStatus struct {
	Name        string
	Address     netip.Addr
	State       string // as BGP names it: idle, active, opensent, openconfirm, established
	Established bool
	Since       time.Time     // of the session, or of its loss; zero if there never was one
	AddPath     []bgp.Family  // in which it takes several paths per prefix
	LongLived   bool          // the switch keeps our paths as a last resort when we are lost
	HoldTime    time.Duration // negotiated
	Announced   int           // paths that it is sent
	Refused     int           // paths that it sent in this session, or the last one, each as often as it sent it: we learn none
	UpdatesSent uint64
	Demoted     bool
	Fault       Fault // why there is no session, as far as that is known
}

// Peers returns how things stand with every peer, by address.
func (s *Speaker) Peers(ctx context.Context) ([]PeerStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, ErrStopped
	}
	demoted, err := s.listDemoted(ctx)
	if err != nil {
		return nil, fmt.Errorf("list demoted peers: %w", err)
	}
	var out []PeerStatus
	err = s.server.ListPeer(ctx, &api.ListPeerRequest{EnableAdvertised: true}, func(p *api.Peer) {
		out = append(out, s.status(p, demoted))
	})
	if err != nil {
		return nil, fmt.Errorf("list peers: %w", err)
	}
	slices.SortFunc(out, func(a, b PeerStatus) int { return a.Address.Compare(b.Address) })
	return out, ctx.Err()
}

func (s *Speaker) status(p *api.Peer, demoted []netip.Addr) PeerStatus {
	address, _ := netip.ParseAddr(p.GetConf().GetNeighborAddress())
	state := p.GetState().GetSessionState()
	out := PeerStatus{
		Name: s.names[address], Address: address, State: strings.ToLower(strings.TrimPrefix(state.String(), "SESSION_STATE_")),
		Established: state == api.PeerState_SESSION_STATE_ESTABLISHED,
		UpdatesSent: p.GetState().GetMessages().GetSent().GetUpdate(),
		Demoted:     contains(demoted, address),
	}
	timers := p.GetTimers().GetState()
	s.sessionsMu.Lock()
	out.Refused = s.refused[address]
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
func (s *Speaker) faultOf(a netip.Addr, p *api.Peer) Fault {
	if f := s.logger.faults.get(a); f != (Fault{}) {
		return f
	}
	if p.GetState().GetMessages().GetReceived().GetNotification() > 0 {
		return refused
	}
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	if since, ok := s.without[a]; !ok || time.Since(since) < silentAfter {
		return Fault{}
	}
	return silent(a, uint16(p.GetTransport().GetRemotePort()), bgp.Secret(p.GetConf().GetAuthPassword()))
}

// AdjOut returns the paths that a peer is sent, as it is sent them: with the MED of demotion, for one.
func (s *Speaker) AdjOut(ctx context.Context, peer netip.Addr) ([]bgp.Path, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, ErrStopped
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
