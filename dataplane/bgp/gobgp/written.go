// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	wire "github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"fairlead.io/fairlead/dataplane/bgp"
)

// sending follows what a session has written. GoBGP queues UPDATEs and shows only how many it wrote.
type sending struct {
	target uint64    // UPDATEs that will have been written once the queue is empty, as far as they can be counted
	sent   uint64    // that were written when last looked
	moved  time.Time // when sent was last seen to grow
	// uncounted says that UPDATEs are on the way whose number is not known: the table of a new session, or best paths
	// for a peer without ADD-PATH. They are over when nothing moves for a while.
	uncounted bool
}

// still is how long an uncounted queue must not move to be taken for empty. GoBGP writes without pause.
const still = 100 * time.Millisecond

// ErrDropped means that GoBGP could not write UPDATEs and left them out: a peer lacks paths.
var ErrDropped = errors.New("updates dropped")

// expectUpdates notes, before the steps are done, how many UPDATEs each open session will write for them.
func (s *Speaker) expectUpdates(ctx context.Context, steps []bgp.Step) {
	changes := map[bgp.Family]uint64{}
	all, some := false, false
	for _, step := range steps {
		switch step.Action {
		case bgp.AddPath, bgp.RemovePath:
			if step.Path.Withheld {
				some = true // which sessions write it is GoBGP's affair
				continue
			}
			changes[bgp.FamilyOf(step.Path.Prefix.Addr())]++
		case bgp.SetDemoted:
			all = true
		}
	}
	if len(changes) == 0 && !all && !some {
		return
	}
	peers, err := s.listPeers(ctx)
	if err != nil {
		return // the steps will meet the same error
	}
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	for a, session := range s.sessions {
		p := peers[a]
		if p == nil {
			continue
		}
		session.look(p, time.Now())
		target := max(session.target, session.sent)
		addPath := negotiated(p).AddPath
		for f, n := range changes {
			if slices.Contains(addPath, f) {
				target += n
			} else {
				session.uncounted = true
			}
		}
		session.target = target
		session.uncounted = session.uncounted || all || some
		session.moved = time.Now()
	}
}

// look takes in how far GoBGP got.
func (s *sending) look(p *api.Peer, now time.Time) {
	if n := p.GetState().GetMessages().GetSent().GetUpdate(); n != s.sent {
		s.sent, s.moved = n, now
	}
}

// done says whether the queue is empty. hold is how long GoBGP lets a write block before it gives up the session, so
// that a queue which has not moved for longer is empty, whatever was counted.
func (s *sending) done(now time.Time, hold time.Duration) bool {
	quiet := now.Sub(s.moved)
	if quiet > hold {
		return true
	}
	return s.sent >= s.target && (!s.uncounted || quiet >= still)
}

// Written says whether all that was applied has been written to the open sessions. Ask again after some milliseconds
// if it has not. A peer without a session has nothing to be written: it gets the whole table when it returns.
//
// Errors: ErrDropped, once, after which all paths are sent again; ErrStopped; ctx.Err().
func (s *Speaker) Written(ctx context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false, ErrStopped
	}
	if n := s.logger.dropped.Swap(0); n > 0 {
		req := &api.ResetPeerRequest{Address: "all", Soft: true, Direction: api.ResetPeerRequest_DIRECTION_OUT}
		return false, errors.Join(fmt.Errorf("write updates: %w: %d (see the log for the peer)", ErrDropped, n),
			s.server.ResetPeer(ctx, req))
	}
	peers, err := s.listPeers(ctx)
	if err != nil {
		return false, fmt.Errorf("list peers: %w", err)
	}
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	for a, p := range peers {
		if p.GetState().GetSessionState() != api.PeerState_SESSION_STATE_ESTABLISHED {
			continue
		}
		if session := s.sessions[a]; session == nil || !session.written(p, time.Now()) {
			return false, nil // opened this moment, or not done yet
		}
	}
	return true, nil
}

// written tells whether all that was applied has been written to the session.
func (n *session) written(p *api.Peer, now time.Time) bool {
	if p.GetGracefulRestart().GetLocalRestarting() {
		return false // still synchronising
	}
	n.look(p, now)
	if !n.done(now, ofSeconds(p.GetTimers().GetState().GetNegotiatedHoldTime())) {
		return false
	}
	n.uncounted = false
	n.target = n.sent
	return true
}

// capabilities are what a session agreed on.
type capabilities struct {
	AddPath   []bgp.Family // in which we send several paths per prefix
	Restart   bool         // the peer keeps our paths for the restart time
	LongLived bool         // and after that as a last resort
	Named     bool         // the peer says its host's name, as FRR does
}

// negotiated reads what the peer offered against what we ask for always.
func negotiated(p *api.Peer) capabilities {
	var out capabilities
	remote, err := apiutil.UnmarshalCapabilities(p.GetState().GetRemoteCap())
	if err != nil {
		return out
	}
	for _, c := range remote {
		switch c := c.(type) {
		case *wire.CapAddPath:
			for _, t := range c.Tuples {
				if f, ok := familyOf(t.Family); ok && t.Mode&wire.BGP_ADD_PATH_RECEIVE != 0 {
					out.AddPath = append(out.AddPath, f)
				}
			}
		case *wire.CapGracefulRestart:
			out.Restart = p.GetGracefulRestart().GetEnabled()
		case *wire.CapFQDN:
			out.Named = true
		case *wire.CapLongLivedGracefulRestart:
			out.LongLived = p.GetGracefulRestart().GetLonglivedEnabled()
		}
	}
	slices.Sort(out.AddPath)
	return out
}

func familyOf(f wire.Family) (bgp.Family, bool) {
	switch f {
	case wire.RF_IPv4_UC:
		return bgp.IPv4, true
	case wire.RF_IPv6_UC:
		return bgp.IPv6, true
	}
	return 0, false
}
