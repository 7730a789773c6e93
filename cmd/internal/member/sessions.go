// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
)

const (
	// sessionsEvery is how often a member looks at its sessions, and how long a look may take.
	sessionsEvery = time.Second
	// sessionAway is for how long a session that is away counts as open: switches are restarted, members, and speakers, and hardly a switch
	// drops what it was told so soon. Who reads that nothing is announced is to have cause to do something.
	sessionAway = time.Minute
	// sessionsOpenWithin is how long a member that never told of its sessions gives them to open before it does.
	sessionsOpenWithin = 10 * time.Second
)

// reach finds out which of a member's sessions count as open. The zero value has seen none.
type reach struct {
	began time.Time
	whole map[netip.Addr]uint64      // the newest session with each peer over which it was told everything once
	away  map[fsm.PeerName]time.Time // since when peers that count as open have no such session
}

// look gives the peers whose sessions count as open, in order, by what the speaker says of its links and by what the record has of this
// member. They are settled once all peers have one, or had time to open it.
func (r *reach) look(now time.Time, links []bgp.Link, peers []*fsm.Peer, have fsm.Sessions) (open []fsm.Reach, settled bool) {
	if r.whole == nil {
		r.began, r.whole, r.away = now, map[netip.Addr]uint64{}, map[fsm.PeerName]time.Time{}
	}
	settled = true
	for _, p := range peers {
		if p.Nodes.Speak || p.Interface != "" {
			continue
		}
		if l, ok := r.told(links, p.Address); ok {
			delete(r.away, p.Name)
			open = append(open, fsm.Reach{Peer: p.Name, IPv4: l.IPv4, IPv6: l.IPv6})
			continue
		}
		settled = false
		if i := slices.IndexFunc(have.Open, func(o fsm.Reach) bool { return o.Peer == p.Name }); i >= 0 && r.isBriefly(now, p.Name) {
			open = append(open, have.Open[i])
		}
	}
	return open, settled || have.Told || now.Sub(r.began) >= sessionsOpenWithin
}

// told is the session with a peer over which it was told everything once. What is still on the way then is of the marks.
func (r *reach) told(links []bgp.Link, peer netip.Addr) (bgp.Link, bool) {
	i := slices.IndexFunc(links, func(l bgp.Link) bool { return l.Peer == peer.Unmap() })
	if i < 0 || links[i].Session == 0 {
		return bgp.Link{}, false
	}
	if links[i].Written {
		r.whole[links[i].Peer] = links[i].Session
	}
	return links[i], r.whole[links[i].Peer] == links[i].Session
}

// isBriefly tells whether a peer's session has been away for a short time only.
func (r *reach) isBriefly(now time.Time, peer fsm.PeerName) bool {
	if _, known := r.away[peer]; !known {
		r.away[peer] = now
	}
	return now.Sub(r.away[peer]) < sessionAway
}

// watch looks at the sessions now and then, until ctx ends. Of a speaker that cannot be asked none is seen.
func (r *reporter) watch(ctx context.Context) {
	var seen reach
	tick := time.NewTicker(sessionsEvery)
	defer tick.Stop()
	for {
		within, done := context.WithTimeout(ctx, sessionsEvery)
		links, err := r.links(within)
		done()
		if err != nil {
			r.log.Debug("BGP sessions not looked at", "err", err)
		}
		v := r.state.Read()
		have := fsm.Sessions{}
		if m, ok := fsm.Get[*fsm.Member](v, fsm.TableMembers, string(r.self.Server)); ok {
			have = m.Sessions
		}
		r.noteSessions(seen.look(time.Now(), links, fsm.List[*fsm.Peer](v, fsm.TablePeers), have))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (r *reporter) noteSessions(open []fsm.Reach, settled bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := settled && !r.known || !slices.Equal(open, r.open)
	r.open, r.known = open, settled
	if !changed {
		return
	}
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// sessions are those that count as open, in order of peers; known tells whether the record may be told.
func (r *reporter) sessions() (open []fsm.Reach, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open, r.known
}
