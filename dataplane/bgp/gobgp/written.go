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
// their number says nothing; but it writes what it got first first, and End-of-RIB of a family last of what it packs together.
type queue struct {
	certain map[netip.Prefix]int // changes that will be written, each by itself, by prefix
	likely  map[netip.Prefix]int // that will be or not, as GoBGP decides: which path is the best one, or the last of two that it packs
	table   tables               // all paths, where they are on the way: the session opened, or they are sent again
	mixed   bool                 // two changes of one prefix may have been written in the wrong order: see order.go
	slow    bool                 // it held up a round for too long, and has not been empty since
	quiet   patience             // since something was last put in or written
	rib     *bgp.AdjRIBOut       // what was written
	wrong   patience             // since all counts as written, and the peer was told something else than it is to have
}

// tables are whole tables on their way to a peer. What GoBGP writes meanwhile may be of one or a change of its own, so that they are
// written when End-of-RIB is, and not before.
type tables struct {
	sent  int                 // how many of them are on the way: of several the last End-of-RIB counts, and GoBGP may write fewer
	ended map[bgp.Family]bool // End-of-RIB is written
}

// still is how long a queue whose content is not certain must not move to be taken for empty. GoBGP writes without pause, but on a busy
// machine it may wait for a processor.
const still = 500 * time.Millisecond

func newQueue(now time.Time) *queue {
	q := &queue{certain: map[netip.Prefix]int{}, likely: map[netip.Prefix]int{}, rib: bgp.NewAdjRIBOut(), wrong: newPatience(now)}
	q.putTable(now)
	return q
}

// put notes that GoBGP is about to be given a change.
func (q *queue) put(p netip.Prefix, certain bool, now time.Time) {
	if certain {
		q.certain[p]++
	} else {
		q.likely[p]++
	}
	q.quiet = newPatience(now)
}

// putTable notes that all paths are about to be sent again. Whatever is on the way is written before they are.
func (q *queue) putTable(now time.Time) {
	q.table.sent++
	q.table.ended = map[bgp.Family]bool{}
	clear(q.certain)
	clear(q.likely)
	q.quiet = newPatience(now)
}

// wrote notes that GoBGP has written an UPDATE.
func (q *queue) wrote(u update, now time.Time) {
	q.quiet = newPatience(now)
	for _, n := range u.withdrawn { // first, as the peer does (RFC 4271 §9)
		q.rib.Withdrawn(n.prefix, n.id)
		q.counts(n.prefix)
	}
	for _, n := range u.announced {
		q.rib.Announced(n.prefix, n.id, u.nextHop)
		q.counts(n.prefix)
	}
}

// counts notes that one change of a prefix has been written.
func (q *queue) counts(p netip.Prefix) {
	if q.table.sent > 0 {
		return
	}
	for _, from := range []map[netip.Prefix]int{q.certain, q.likely} {
		if from[p]--; from[p] <= 0 {
			delete(from, p)
		}
	}
}

// wroteEnd notes that GoBGP has written End-of-RIB of a family.
func (q *queue) wroteEnd(f bgp.Family, now time.Time) {
	q.table.ended[f], q.quiet = true, newPatience(now)
}

// empty tells whether all has been written to a peer, as far as can be known. hold is how long GoBGP lets a write block before it gives
// up the session, so that a queue that has not moved for longer is empty, whatever was expected.
func (q *queue) empty(now time.Time, with capabilities, hold time.Duration) bool {
	quiet := q.quiet.look(now)
	switch ends := with.Restart && !slices.ContainsFunc(with.Families, func(f bgp.Family) bool { return !q.table.ended[f] }); {
	case q.table.sent == 1 && ends, quiet >= still && (ends || !with.Restart), quiet > hold:
		q.table.sent = 0
	}
	if quiet >= still && q.table.sent == 0 {
		clear(q.likely)
	}
	if quiet > hold {
		clear(q.certain)
	}
	return q.table.sent == 0 && len(q.likely) == 0 && len(q.certain) == 0
}

// holds tells whether a change of a prefix may be in it.
func (q *queue) holds(p netip.Prefix) bool {
	return q.table.sent > 0 || q.certain[p] > 0 || q.likely[p] > 0
}

// Written says whether all that was applied has been written to the open sessions. Ask again after some milliseconds
// if it has not. A peer without a session has nothing to be written: it gets the whole table when it returns.
//
// Errors: bgp.ErrDropped, once, after which all paths are sent again; bgp.ErrStopped; ctx.Err().
func (s *Speaker) Written(ctx context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false, bgp.ErrStopped
	}
	if n := s.logger.dropped.Swap(0); n > 0 {
		s.everythingAgain(time.Now())
		req := &api.ResetPeerRequest{Address: "all", Soft: true, Direction: api.ResetPeerRequest_DIRECTION_OUT}
		return false, errors.Join(fmt.Errorf("write updates: %w: %d (see the log for the peer)", bgp.ErrDropped, n),
			s.server.ResetPeer(ctx, req))
	}
	peers, err := s.listPeers(ctx)
	if err != nil {
		return false, fmt.Errorf("list peers: %w", err)
	}
	if wrong, all := s.allWritten(peers); !all {
		return false, s.correct(ctx, wrong)
	}
	return s.unmix(ctx)
}

// tableAgain notes that a peer is about to be sent all paths again.
func (s *Speaker) tableAgain(a netip.Addr, now time.Time) {
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	if q := s.queues[a]; q != nil {
		q.putTable(now)
	}
}

// everythingAgain notes that all sessions are about to be sent all paths again.
func (s *Speaker) everythingAgain(now time.Time) {
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	for _, q := range s.queues {
		q.putTable(now)
	}
}

// allWritten tells whether nothing is left to be written to any open session, and which have been wrong for too long.
func (s *Speaker) allWritten(peers map[netip.Addr]*api.Peer) (wrong []netip.Addr, all bool) {
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	all = true
	for a, p := range peers {
		if p.GetState().GetSessionState() != api.PeerState_SESSION_STATE_ESTABLISHED {
			continue
		}
		switch session := s.sessions[a]; {
		case session == nil: // opened this moment
			all = false
		case !session.written(p, time.Now()):
			all = false
			if session.wrong.look(time.Now()) > wrongAtMost && time.Since(s.healed[a]) >= healEvery {
				wrong = append(wrong, a)
			}
		}
	}
	return wrong, all
}

// written tells whether all that was applied has been written to the session, as it is to be.
func (n *session) written(p *api.Peer, now time.Time) bool {
	if synchronising(p) {
		return false
	}
	with := negotiated(p)
	if !n.empty(now, with, ofSeconds(p.GetTimers().GetState().GetNegotiatedHoldTime())) {
		n.wrong = newPatience(now)
		return false
	}
	told := bgp.Told{AddPath: with.AddPath, Sent: with.Families, OwnHop: n.tuple.remote.Addr().IsLinkLocalUnicast()}
	if len(n.rib.Wrong(told)) > 0 {
		return false
	}
	n.wrong = newPatience(now)
	return true
}

// wrongAtMost is how long a session may seem to have been told something else than is due. What GoBGP says that it has written may be on
// its way here still.
const wrongAtMost = 5 * time.Second

// correct restarts sessions in which GoBGP has written something else than it was told to, for whatever reason: a new one begins with
// nothing, and the switch drops what it lacks.
func (s *Speaker) correct(ctx context.Context, wrong []netip.Addr) error {
	for _, a := range wrong {
		if err := s.renewSession(ctx, a, "the switch was not told what it was to be told"); err != nil {
			return err
		}
		s.residue.Doubt(a)
	}
	return nil
}

// capabilities are what a session agreed on.
type capabilities struct {
	Families  []bgp.Family
	AddPath   []bgp.Family // in which we send several paths per prefix
	Restart   bool         // the peer keeps our paths for the restart time
	LongLived bool         // and after that as a last resort
	Named     bool         // the peer says its host's name, as FRR does
}

// negotiated reads what the peer offered against what we ask for always.
func negotiated(p *api.Peer) capabilities {
	var out capabilities
	var ours, asked []bgp.Family // and of which we offer to send several
	for _, af := range p.GetAfiSafis() {
		ours = append(ours, bgpFamily(af.GetConfig().GetFamily()))
		if f := bgpFamily(af.GetConfig().GetFamily()); af.GetAddPaths().GetConfig().GetSendMax() > 0 {
			asked = append(asked, f)
		}
	}
	remote, err := apiutil.UnmarshalCapabilities(p.GetState().GetRemoteCap())
	if err != nil {
		return out
	}
	theirs, several := []bgp.Family{bgp.IPv4}, false // families: one, unless they tell (RFC 4760 §8)
	for _, c := range remote {
		switch c := c.(type) {
		case *wire.CapMultiProtocol:
			if !several {
				theirs, several = nil, true
			}
			if f, ok := familyOf(c.CapValue); ok {
				theirs = append(theirs, f)
			}
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
	out.Families = slices.DeleteFunc(ours, func(f bgp.Family) bool { return !slices.Contains(theirs, f) })
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
