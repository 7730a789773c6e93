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
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	wire "github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"fairlead.io/fairlead/dataplane/bgp"
)

// queue follows what GoBGP has still to write to a session. GoBGP takes changes at once, queues them, and says of each UPDATE, as a
// message for debugging and nowhere else, that it has written it. It packs whatever it finds in its queue into as few as it can, so that
// their number says nothing.
type queue struct {
	certain map[netip.Prefix]int // changes that will be written, by prefix
	likely  map[netip.Prefix]int // that will be or not, as GoBGP decides: the best path of a peer without ADD-PATH
	table   bool                 // all paths are on the way: the session opened, or they are sent again
	mixed   bool                 // two changes of one prefix may have been written in the wrong order: see order.go
	moved   time.Time            // when something was last put in or written
}

// still is how long a queue whose content is not certain must not move to be taken for empty. GoBGP writes without pause, but on a busy machine it may wait for
// a processor; 100 ms were too few once.
const still = 500 * time.Millisecond

func newQueue(now time.Time) queue {
	return queue{certain: map[netip.Prefix]int{}, likely: map[netip.Prefix]int{}, table: true, moved: now}
}

// put notes that GoBGP is about to be given a change.
func (q *queue) put(p netip.Prefix, certain bool, now time.Time) {
	if certain {
		q.certain[p]++
	} else {
		q.likely[p]++
	}
	q.moved = now
}

// putTable notes that all paths are about to be sent again.
func (q *queue) putTable(now time.Time) { q.table, q.moved = true, now }

// wrote notes that GoBGP has written an UPDATE about prefixes; one for each change of them.
func (q *queue) wrote(prefixes []netip.Prefix, now time.Time) {
	for _, p := range prefixes {
		for _, from := range []map[netip.Prefix]int{q.certain, q.likely} {
			if from[p]--; from[p] <= 0 {
				delete(from, p)
			}
		}
	}
	q.moved = now
}

// empty tells whether all has been written, as far as can be known. hold is how long GoBGP lets a write block before it gives up the
// session, so that a queue that has not moved for longer is empty, whatever was expected.
func (q *queue) empty(now time.Time, hold time.Duration) bool {
	quiet := now.Sub(q.moved)
	if quiet >= still {
		q.table = false
		clear(q.likely)
	}
	if quiet > hold {
		clear(q.certain)
	}
	return !q.table && len(q.likely) == 0 && len(q.certain) == 0
}

// holds tells whether a change of a prefix may be in it.
func (q *queue) holds(p netip.Prefix) bool { return q.table || q.certain[p] > 0 || q.likely[p] > 0 }

// ErrDropped means that GoBGP could not write UPDATEs and left them out: a peer lacks paths.
var ErrDropped = errors.New("updates dropped")

// sentUpdate is what GoBGP says when it has written an UPDATE.
const sentUpdate = "sent update"

// prefixesOfUpdate lists what an UPDATE that GoBGP tells of is about.
func prefixesOfUpdate(about attributes) []netip.Prefix {
	var out []netip.Prefix
	add := func(list []wire.PathNLRI) {
		for _, n := range list {
			if p, ok := n.NLRI.(*wire.IPAddrPrefix); ok {
				out = append(out, p.Prefix)
			}
		}
	}
	for _, key := range []string{"nlri", "withdrawals"} {
		list, _ := about[key].Any().([]wire.PathNLRI)
		add(list)
	}
	attrs, _ := about["attributes"].Any().([]wire.PathAttributeInterface)
	for _, a := range attrs {
		switch a := a.(type) {
		case *wire.PathAttributeMpReachNLRI:
			add(a.Value)
		case *wire.PathAttributeMpUnreachNLRI:
			add(a.Value)
		}
	}
	return out
}

// onWritten learns what GoBGP has written to a peer.
func (s *Speaker) onWritten(about attributes) {
	a, err := netip.ParseAddr(about["Key"].String())
	if err != nil {
		return
	}
	prefixes := prefixesOfUpdate(about)
	a = s.zoned(a)
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	if n := s.sessions[a]; n != nil {
		n.wrote(prefixes, time.Now())
	}
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
		s.everythingAgain(time.Now())
		req := &api.ResetPeerRequest{Address: "all", Soft: true, Direction: api.ResetPeerRequest_DIRECTION_OUT}
		return false, errors.Join(fmt.Errorf("write updates: %w: %d (see the log for the peer)", ErrDropped, n),
			s.server.ResetPeer(ctx, req))
	}
	peers, err := s.listPeers(ctx)
	if err != nil {
		return false, fmt.Errorf("list peers: %w", err)
	}
	if !s.allWritten(peers) {
		return false, nil
	}
	return s.unmix(ctx)
}

// everythingAgain notes that all sessions are about to be sent all paths again.
func (s *Speaker) everythingAgain(now time.Time) {
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	for _, n := range s.sessions {
		n.putTable(now)
	}
}

// allWritten tells whether nothing is left to be written to any open session.
func (s *Speaker) allWritten(peers map[netip.Addr]*api.Peer) bool {
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	for a, p := range peers {
		if p.GetState().GetSessionState() != api.PeerState_SESSION_STATE_ESTABLISHED {
			continue
		}
		if session := s.sessions[a]; session == nil || !session.written(p, time.Now()) {
			return false // opened this moment, or not done yet
		}
	}
	return true
}

// written tells whether all that was applied has been written to the session.
func (n *session) written(p *api.Peer, now time.Time) bool {
	if p.GetGracefulRestart().GetLocalRestarting() {
		return false // still synchronising
	}
	return n.empty(now, ofSeconds(p.GetTimers().GetState().GetNegotiatedHoldTime()))
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
	var asked []bgp.Family // of which we offer to send several
	for _, af := range p.GetAfiSafis() {
		if f := bgpFamily(af.GetConfig().GetFamily()); af.GetAddPaths().GetConfig().GetSendMax() > 0 {
			asked = append(asked, f)
		}
	}
	remote, err := apiutil.UnmarshalCapabilities(p.GetState().GetRemoteCap())
	if err != nil {
		return out
	}
	for _, c := range remote {
		switch c := c.(type) {
		case *wire.CapAddPath:
			for _, t := range c.Tuples {
				if f, ok := familyOf(t.Family); ok && slices.Contains(asked, f) && t.Mode&wire.BGP_ADD_PATH_RECEIVE != 0 {
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
