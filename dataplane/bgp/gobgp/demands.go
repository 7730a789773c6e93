// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"context"
	"net/netip"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"golang.org/x/time/rate"
)

// A peer may ask for the whole table at any time (ROUTE-REFRESH, RFC 2918). GoBGP queues a copy of it for each time that it is asked,
// whether the peer reads or not, has no bound for the queue, and when the peer is made anew forgets all but the first few entries of what
// is left in it, which it keeps for ever. So a peer that asks far more often than anybody has reason to has its session closed, and is
// left alone for a while. GoBGP tells of no single ROUTE-REFRESH; it counts them.

const (
	demandsAtOnce = 64               // tables that a peer may ask for at once
	demandAgain   = 10 * time.Second // and one more each time that so long has passed
	demandsEvery  = 200 * time.Millisecond
	demandsShare  = 100             // looking takes no more than one part in so many of the time: GoBGP counts its table for it
	demandsRarest = 5 * time.Second // but it is done so often: what a peer asks for makes looking slow
	demandLag     = 5 * time.Minute // for which a peer that asked for more is left alone
)

// demand is how often a peer has asked for the table.
type demand struct {
	counted uint64 // by GoBGP, when it was looked at last
	may     *rate.Limiter
}

func newDemand() *demand {
	return &demand{may: rate.NewLimiter(rate.Every(demandAgain), demandsAtOnce)}
}

// more notes that GoBGP has counted so many, and tells whether they are too many. A peer that was made anew is counted from 0.
func (d *demand) more(counted uint64, now time.Time) bool {
	if counted < d.counted {
		d.counted = 0
	}
	asked := counted - d.counted
	d.counted = counted
	return !d.may.AllowN(now, int(min(asked, demandsAtOnce+1))) // which is never allowed
}

// demandsPause is until what peers asked for is looked at again, after a look that took so long.
func demandsPause(took time.Duration) time.Duration {
	return min(max(demandsEvery, demandsShare*took), demandsRarest)
}

// limitDemands ends sessions with peers that ask for too much, until ctx ends.
func (s *Speaker) limitDemands(ctx context.Context) {
	defer close(s.limited)
	wait := demandsEvery
	demands := map[netip.Addr]*demand{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		began := time.Now()
		peers, err := s.listPeers(ctx)
		wait = demandsPause(time.Since(began))
		if err != nil {
			continue // whoever changes or asks something is told
		}
		for a := range demands {
			if peers[a] == nil {
				delete(demands, a)
			}
		}
		for a, p := range peers {
			s.limit(ctx, demands, a, p)
		}
	}
}

func (s *Speaker) limit(ctx context.Context, demands map[netip.Addr]*demand, a netip.Addr, p *api.Peer) {
	now := time.Now()
	if demands[a] == nil {
		demands[a] = newDemand()
	}
	if !demands[a].more(p.GetState().GetMessages().GetReceived().GetRefresh(), now) {
		return
	}
	if session := s.endDemanding(a); session != nil {
		if err := shutdownSocket(session.tuple); err != nil {
			s.logger.log.Error("close connection", "peer", a, "err", err)
		}
	}
	// Until it is made anew; without this GoBGP would take its next connection within seconds.
	if err := s.server.DisablePeer(ctx, &api.DisablePeerRequest{Address: a.String(), Communication: "out of resources"}); err != nil {
		s.logger.log.Error("leave peer alone", "peer", a, "err", err)
	}
	s.logger.log.Warn("peer asked for all paths again and again: its session is closed", "peer", a, "again_in", demandLag,
		"at_most", demandsAtOnce, "remedy", "find out why the switch sends ROUTE-REFRESH so often")
}

// endDemanding notes that the session with a peer ends because of what it asks for; nil if there is none.
func (s *Speaker) endDemanding(a netip.Addr) *session {
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	s.demanding[a]++
	session := s.sessions[a]
	if session != nil {
		session.demanding = true
	} else {
		time.AfterFunc(demandLag, func() { s.renew(a) }) // its end is known already, or its beginning is not yet
	}
	return session
}
