// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
)

// What a peer asks of its switch unless the record says otherwise; see docs/spec/bgp-restart.md for where the figures are from.
const (
	defaultHoldTime    = 30 * time.Second
	defaultRestartTime = time.Second
	defaultStaleTime   = 600 * time.Second
)

// excuses counts how long speakers have been lost: from what the record says that earlier leaders counted, or from the moment at which this
// leader first saw it, on its own clock. Once that is longer than any switch keeps their paths, withdrawals no longer wait for them
// (design §6).
type excuses struct {
	fixed   time.Duration // zero: as the peers ask
	asked   time.Duration // the longest that any peer of the record asks for
	holds   time.Duration // the longest that any did in this term
	members map[fsm.ServerID]*absence
	nodes   map[fsm.NodeID]*absence // that announce themselves
	tells   bool                    // the record takes it
	news    fsm.ReportAbsences      // what it lacks of all this
}

// absence is for how long nothing has been heard of a speaker.
type absence struct {
	last  word
	since time.Duration // on this leader's clock; before its term, where earlier leaders counted
	said  fsm.Absence   // what the record says of it, or does once it has what it is told
}

// word is the last that was heard of a speaker: under which run or boot it spoke, and what it had announced and withdrawn.
type word struct {
	run                  string
	announced, withdrawn fsm.Revision
}

// tellEvery is how much of an absence is lost at most when the leader changes.
const tellEvery = time.Minute

func newExcuses(fixed time.Duration) *excuses {
	return &excuses{fixed: fixed, members: map[fsm.ServerID]*absence{}, nodes: map[fsm.NodeID]*absence{}}
}

// excused is who is not waited for any more, in order; next is in what time the next one will not be, zero for none.
type excused struct {
	members []fsm.ServerID
	nodes   []fsm.NodeID
	next    time.Duration
}

// update takes in who answers now, and what the record says.
func (e *excuses) update(now time.Duration, record *fsm.View, servers []Server) (out excused) {
	e.asked = defaultHoldTime + defaultRestartTime + defaultStaleTime
	for _, p := range fsm.List[*fsm.Peer](record, fsm.TablePeers) {
		e.asked = max(e.asked, switchHolds(p))
	}
	e.holds = max(e.holds, e.asked)
	e.news, e.tells = fsm.ReportAbsences{}, record.Group().Format >= fsm.FormatAbsences
	out.members = e.updateMembers(now, record, servers, &out.next)
	out.nodes = e.updateNodes(now, record, &out.next)
	return out
}

func (e *excuses) updateMembers(now time.Duration, record *fsm.View, servers []Server, next *time.Duration) (excused []fsm.ServerID) {
	lost := map[fsm.ServerID]*absence{}
	members := fsm.List[*fsm.Member](record, fsm.TableMembers)
	for _, m := range members {
		news := fsm.MemberAbsence{Server: m.Server, Run: m.Run}
		switch {
		case answers(servers, m.Server):
			if m.Absence != news.Absence {
				e.news.Members = append(e.news.Members, news)
			}
			continue
		case replaced(m, members, servers):
			excused = append(excused, m.Server)
			continue
		}
		a := e.members[m.Server].goOn(now, word{m.Run, m.Announced, m.Withdrawn}, m.Absence)
		lost[m.Server] = a
		so, left := e.count(a, now)
		if news.Absence = so; e.isNews(a, so) {
			a.said = so
			e.news.Members = append(e.news.Members, news)
		}
		if left <= 0 {
			excused = append(excused, m.Server)
		}
		soonest(next, left)
	}
	e.members = lost
	return excused
}

// updateNodes is the same for nodes that announce themselves: one is lost whose agent the group does not hear. Its routes rank last by then,
// and its rules are what they were.
func (e *excuses) updateNodes(now time.Duration, record *fsm.View, next *time.Duration) (excused []fsm.NodeID) {
	lost := map[fsm.NodeID]*absence{}
	for _, n := range fsm.List[*fsm.Node](record, fsm.TableNodes) {
		if !n.Speaking.Speaks || n.Liveness == fsm.NodeUp {
			continue
		}
		a := e.nodes[n.ID].goOn(now, word{string(n.Boot), n.Speaking.Announced, n.Speaking.Withdrawn}, n.Speaking.Absence)
		lost[n.ID] = a
		so, left := e.count(a, now)
		if e.isNews(a, so) {
			a.said = so
			e.news.Nodes = append(e.news.Nodes, fsm.NodeAbsence{Node: n.ID, Boot: n.Boot, Absence: so})
		}
		if left <= 0 {
			excused = append(excused, n.ID)
		}
		soonest(next, left)
	}
	e.nodes = lost
	return excused
}

// goOn counts an absence on, nil for none so far, by what the record says of it. It begins anew where the speaker was heard
// meanwhile, by its word, or since the record has less of its absence than before.
func (a *absence) goOn(now time.Duration, last word, said fsm.Absence) *absence {
	if a == nil || a.last != last || said.For < a.said.For {
		return &absence{last: last, since: now - said.For, said: said}
	}
	a.said = said
	return a
}

// count tells how long an absence is now, and how much is left until no switch keeps paths.
func (e *excuses) count(a *absence, now time.Duration) (so fsm.Absence, left time.Duration) {
	holds := e.holds
	if e.fixed > 0 {
		holds = e.fixed
	}
	so = fsm.Absence{For: now - a.since, Holds: max(a.said.Holds, holds)}
	return so, so.Holds - so.For
}

// isNews tells whether the record lacks more of what there is now than may be lost when the leader changes: what nobody could know then, of
// peers that are gone, or much of the time.
func (e *excuses) isNews(a *absence, so fsm.Absence) bool {
	switch {
	case !e.tells:
		return false
	case so.Holds > max(a.said.Holds, e.asked) && e.fixed == 0:
		return true
	}
	return a.said.For < so.Holds && (so.For >= so.Holds || so.For-a.said.For >= tellEvery)
}

// soonest brings next down to what is left, if anything is; zero is none.
func soonest(next *time.Duration, left time.Duration) {
	if left > 0 && (*next == 0 || left < *next) {
		*next = left
	}
}

// due is what to propose, so that the next leader goes on from there.
func (e *excuses) due(now time.Time) (out []fsm.Proposal) {
	propose := func(c fsm.ReportAbsences) {
		out = append(out, fsm.Proposal{Actor: actor, Reason: "how long speakers have been away", AtUnixMilli: now.UnixMilli(), Command: &c})
	}
	if len(e.news.Members) > 0 {
		propose(fsm.ReportAbsences{Members: e.news.Members})
	}
	for some := range slices.Chunk(e.news.Nodes, maxMarks) {
		propose(fsm.ReportAbsences{Nodes: some})
	}
	return out
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
