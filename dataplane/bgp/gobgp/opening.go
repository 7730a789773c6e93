// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"net/netip"
	"sync"
	"time"

	"github.com/osrg/gobgp/v4/api"
)

// Since version 4 GoBGP sends a session that opens its table first, and says only then, outside its own lock, that the session is open. What
// it is told of in between it sends to nobody on that session, ever: a path would never come, or never go. So nothing is changed from the
// moment in which GoBGP says that a peer is up until its session is open, nor is a peer up while something is changed.

// peerUp is what GoBGP says, before it sends the table of a session that opens.
const peerUp = "Peer Up"

// openingAtMost is how long a session may be opening: a peer whose session does not open although GoBGP said so must not stop all changes.
const openingAtMost = 10 * time.Second

// openings are the peers that are up, and whose sessions may not be open yet.
type openings struct {
	mu    sync.Mutex // held while GoBGP is told of changes of paths
	since map[netip.Addr]*patience
}

// up notes that a peer is up, once nothing is being changed. GoBGP calls it, as it logs, and goes on afterwards.
func (o *openings) up(a netip.Addr, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	waits := newPatience(now)
	o.since[a] = &waits
}

// none tells whether no session is opening, as GoBGP lists its peers. The caller has locked o.mu since before they were listed.
func (o *openings) none(peers map[netip.Addr]*api.Peer, now time.Time) bool {
	for a, since := range o.since {
		state := peers[a].GetState().GetSessionState()
		if state != api.PeerState_SESSION_STATE_OPENCONFIRM || since.look(now) > openingAtMost {
			delete(o.since, a)
		}
	}
	return len(o.since) == 0
}

// onUp learns that a peer is up. Its table may be written before GoBGP tells that the session is open.
func (s *Speaker) onUp(about attributes) {
	a, err := netip.ParseAddr(about["Key"].String())
	if err != nil {
		return
	}
	a = s.zoned(a)
	s.openings.up(a, time.Now())
	s.sessionsMu.Lock()
	defer s.sessionsMu.Unlock()
	s.queues[a] = newQueue(time.Now())
	delete(s.refused, a)
}
