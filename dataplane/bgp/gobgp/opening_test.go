// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/osrg/gobgp/v4/api"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/internal/testkit"
)

// No session opens while paths are changed, by GoBGP's own words.
func TestSessionsDoNotOpenWhilePathsChange(t *testing.T) {
	parallel(t)
	sw, s := startSwitch(t, 1), dialler(t, 0)
	d := bgp.Desired{Peers: []bgp.Peer{switchPeer(sw)}}
	state := func() api.PeerState_SessionState {
		peers, err := s.listPeers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return peers[sw.Addr().Addr()].GetState().GetSessionState()
	}
	s.openings.mu.Lock()
	if err := s.Apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the session, for the switch", func() bool { return sw.Peers()[0].Established })
	time.Sleep(20 * time.Millisecond) // too short hides a fault, too long makes none
	if got := state(); got == api.PeerState_SESSION_STATE_ESTABLISHED {
		t.Error("the session opened while paths were changed")
	}
	s.openings.mu.Unlock()
	testkit.Until(t, "the session", func() bool { return state() == api.PeerState_SESSION_STATE_ESTABLISHED })
	d.Paths = bgp.NewPaths(path(vip, hop1))
	apply(t, s, d)
	waitRIB(t, sw, merged([]bgp.Desired{d}))
}

// While GoBGP is told of changes no peer is up, and while one is up whose session is not open nothing is changed.
func TestNothingChangesWhileASessionOpens(t *testing.T) {
	o := openings{since: map[netip.Addr]*patience{}}
	one, other := addr("192.0.2.1"), addr("192.0.2.2")
	states := func(of api.PeerState_SessionState) map[netip.Addr]*api.Peer {
		return map[netip.Addr]*api.Peer{one: {State: &api.PeerState{SessionState: of}}, other: {State: &api.PeerState{SessionState: api.PeerState_SESSION_STATE_OPENCONFIRM}}}
	}
	const confirmed, established = api.PeerState_SESSION_STATE_OPENCONFIRM, api.PeerState_SESSION_STATE_ESTABLISHED
	o.mu.Lock()
	if !o.none(states(confirmed), time.Now()) {
		t.Error("a peer that is not up holds changes up")
	}
	up := make(chan struct{})
	go func() {
		o.up(one, time.Now())
		close(up)
	}()
	select {
	case <-up:
		t.Error("a peer is up while paths are changed")
	case <-time.After(20 * time.Millisecond): // too short hides a fault, too long makes none
	}
	o.mu.Unlock()
	<-up
	for _, c := range []struct {
		state api.PeerState_SessionState
		none  bool
	}{{confirmed, false}, {confirmed, false}, {established, true}, {confirmed, true}} {
		if got := o.none(states(c.state), time.Now()); got != c.none {
			t.Errorf("%s: changes may be given: %t", c.state, got)
		}
	}
	now := time.Now()
	o.up(one, now)
	inTime := lookedAt(now, openingAtMost, func(at time.Time) bool { return o.none(states(confirmed), at) })
	if inTime || !o.none(states(confirmed), now.Add(openingAtMost+1)) {
		t.Error("a session that never opens holds changes up for ever, or for too short a time")
	}
	o.up(one, time.Now())
	if !o.none(map[netip.Addr]*api.Peer{}, time.Now()) {
		t.Error("a peer that is gone holds changes up")
	}
}
