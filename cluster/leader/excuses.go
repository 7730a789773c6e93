// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
)

// What a peer asks of its switch unless the record says otherwise; see bgp-restart.md for where the figures are from.
const (
	defaultHoldTime    = 30 * time.Second
	defaultRestartTime = time.Second
	defaultStaleTime   = 600 * time.Second
)

// excuses counts how long members have been lost, from the moment at which this leader first saw it, on its own
// clock. Once that is longer than any switch keeps their paths, withdrawals no longer wait for them (DESIGN §6).
type excuses struct {
	fixed time.Duration // zero: as the peers ask
	holds time.Duration // the longest that any peer asked for in this term
	since map[fsm.ServerID]time.Duration
	nodes map[fsm.NodeID]time.Duration // likewise, of nodes that announce themselves
}

func newExcuses(fixed time.Duration) *excuses {
	return &excuses{
		fixed: fixed, holds: defaultHoldTime + defaultRestartTime + defaultStaleTime, since: map[fsm.ServerID]time.Duration{},
		nodes: map[fsm.NodeID]time.Duration{},
	}
}

// update takes in who answers now. It lists the members that are excused, in order, and tells in what time the next
// one will be; zero for none.
func (e *excuses) update(now time.Duration, record *fsm.View, servers []Server) (excused []fsm.ServerID, next time.Duration) {
	for _, p := range fsm.List[*fsm.Peer](record, fsm.TablePeers) {
		e.holds = max(e.holds, switchHolds(p))
	}
	wait := e.holds
	if e.fixed > 0 {
		wait = e.fixed
	}
	lost := map[fsm.ServerID]bool{}
	members := fsm.List[*fsm.Member](record, fsm.TableMembers)
	for _, m := range members {
		if answers(servers, m.Server) {
			continue
		}
		if replaced(m, members, servers) {
			excused = append(excused, m.Server)
			continue
		}
		lost[m.Server] = true
		if _, known := e.since[m.Server]; !known {
			e.since[m.Server] = now
		}
		if left := e.since[m.Server] + wait - now; left > 0 {
			if next == 0 || left < next {
				next = left
			}
			continue
		}
		excused = append(excused, m.Server)
	}
	for id := range e.since {
		if !lost[id] {
			delete(e.since, id)
		}
	}
	return excused, next
}

// updateNodes is the same for nodes that announce themselves, after update: one is lost whose agent the group does not hear. Its
// routes rank last by then, and its rules are what they were.
func (e *excuses) updateNodes(now time.Duration, record *fsm.View) (excused []fsm.NodeID, next time.Duration) {
	wait := e.holds
	if e.fixed > 0 {
		wait = e.fixed
	}
	lost := map[fsm.NodeID]bool{}
	for _, n := range fsm.List[*fsm.Node](record, fsm.TableNodes) {
		if !n.Speaking.Speaks || n.Liveness == fsm.NodeUp {
			continue
		}
		lost[n.ID] = true
		if _, known := e.nodes[n.ID]; !known {
			e.nodes[n.ID] = now
		}
		if left := e.nodes[n.ID] + wait - now; left <= 0 {
			excused = append(excused, n.ID)
		} else if next == 0 || left < next {
			next = left
		}
	}
	for id := range e.nodes {
		if !lost[id] {
			delete(e.nodes, id)
		}
	}
	return excused, next
}

func answers(servers []Server, id fsm.ServerID) bool {
	return slices.Contains(servers, Server{ID: id, Answers: true})
}

// replaced tells whether a lost server has left the group and another instance of its member answers at its address.
// To switches the two are one speaker: they hold what the new one announced, and that one is waited for as every member
// is.
func replaced(m *fsm.Member, members []*fsm.Member, servers []Server) bool {
	if slices.ContainsFunc(servers, func(s Server) bool { return s.ID == m.Server }) {
		return false
	}
	return slices.ContainsFunc(members, func(o *fsm.Member) bool {
		return o.Server != m.Server && o.Name == m.Name && o.Raft == m.Raft && answers(servers, o.Server)
	})
}

// switchHolds is how long a switch may keep the paths of a session that ended without a word.
func switchHolds(p *fsm.Peer) time.Duration {
	or := func(d, otherwise time.Duration) time.Duration {
		if d == 0 {
			return otherwise
		}
		return d
	}
	hold := or(p.HoldTime, defaultHoldTime)
	if p.NoRestart {
		return hold
	}
	return hold + or(p.RestartTime, defaultRestartTime) + or(p.StaleTime, defaultStaleTime)
}
