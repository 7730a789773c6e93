// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"slices"
	"time"

	"fairlead.io/fairlead/dataplane/bgp/opensessions"
	"fairlead.io/fairlead/fsm"
)

// peersOf are whom members are to have sessions with, in order. Those behind interfaces are of nodes alone.
func peersOf(v *fsm.View) (out []opensessions.Peer) {
	for _, p := range fsm.List[*fsm.Peer](v, fsm.TablePeers) {
		if !p.Nodes.Speak && p.Interface == "" {
			out = append(out, opensessions.Peer{Name: p.Name, Address: p.Address})
		}
	}
	return out
}

// watch looks at the sessions now and then, until ctx ends. Of a speaker that cannot be asked none is seen.
func (r *reporter) watch(ctx context.Context) {
	var seen opensessions.Watch
	tick := time.NewTicker(opensessions.Every)
	defer tick.Stop()
	for {
		within, done := context.WithTimeout(ctx, opensessions.Every)
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
		r.noteSessions(seen.Look(time.Now(), links, peersOf(v), have))
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
