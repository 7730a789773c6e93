// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
)

// former is what an earlier run left behind.
type former struct {
	routes *bgp.Routes
	err    error
	saved  []bgp.Routes
}

func (f *former) Load() (*bgp.Routes, error) { return f.routes, f.err }

func (f *former) Save(r bgp.Routes) error { f.saved = append(f.saved, r); return nil }

// A member without an AS number says of each withdrawal that no switch holds it, as soon as it knows the group, and announces nothing. If an
// earlier run announced something it says so once no switch can keep that, and the run after this one does not wait again.
func TestMemberWithoutASNumberEndsWithdrawals(t *testing.T) {
	peer := bgp.Peer{Address: netip.MustParseAddr("192.0.2.2"), RemoteASN: 65001}
	short := peer
	short.HoldTime, short.Restart = 9*time.Second, bgp.GracefulRestart{Mode: bgp.RestartNone}
	for name, c := range map[string]struct {
		store former
		waits time.Duration
	}{
		"never-announced":    {},
		"announced-to-none":  {store: former{routes: &bgp.Routes{}}},
		"announced-before":   {store: former{routes: &bgp.Routes{Peers: []bgp.Peer{short, peer}}}, waits: 631 * time.Second},
		"announced-shortly":  {store: former{routes: &bgp.Routes{Peers: []bgp.Peer{short}}}, waits: 9 * time.Second},
		"nobody-can-read-it": {store: former{err: errors.New("corrupt")}, waits: 631 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				state := fsm.New()
				tell := applyTo(t, state)
				news := make(chan bgp.Revision, 10)
				n := noSpeaker{state: state, store: &c.store, tell: func(r bgp.Revision) { news <- r }, log: slog.New(slog.DiscardHandler)}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- n.run(ctx) }()
				opened := time.Now()
				time.Sleep(time.Second)
				tell(&fsm.InitGroup{Group: "g", Format: fsm.NewestFormat})
				<-news
				if at := time.Since(opened); at != max(c.waits, time.Second) {
					t.Errorf("withdrawals end after %s, want %s", at, c.waits)
				}
				if (len(c.store.saved) == 1) != (c.waits > 0) || len(c.store.saved) > 0 && len(c.store.saved[0].Peers) > 0 {
					t.Errorf("it saved %+v", c.store.saved)
				}
				tell(&fsm.ReportMember{Server: "m1", Name: "m1", Format: fsm.NewestFormat, Run: "r"}, &fsm.PutNode{ID: "n1", UID: "u1"},
					&fsm.PutService{Service: fsm.Service{ID: "shop/a", UID: "u1"}})
				prefix := netip.MustParsePrefix("203.0.113.1/32")
				tell(&fsm.Allocate{Address: prefix.Addr(), Service: "shop/a"})
				tell(&fsm.SetRoute{Prefix: prefix, Hops: []fsm.HopSpec{{Node: "n1", Address: netip.MustParseAddr("192.0.2.1")}}})
				<-news
				tell(&fsm.SetRoute{Prefix: prefix})
				since := state.Read().Revision()
				have, _ := fsm.Get[*fsm.Member](state.Read(), fsm.TableMembers, "m1")
				mark := new(waits).markFor(state.Read(), have, marks{withdrawn: revision(<-news)})
				tell(&fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{mark}})
				tell(&fsm.FinishWithdrawal{Prefix: prefix, Node: "n1", Address: netip.MustParseAddr("192.0.2.1"), Since: since})
				have, _ = fsm.Get[*fsm.Member](state.Read(), fsm.TableMembers, "m1")
				if !have.Announced.IsZero() || have.Withdrawn.Before(since) {
					t.Errorf("announced %s and withdrew %s; want nothing, and up to %s", have.Announced, have.Withdrawn, since)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
