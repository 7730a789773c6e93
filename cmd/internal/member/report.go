// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
)

// reporter keeps the record's row about this member true: what it runs, and up to where its routes are on the
// wire, and withdrawn. It proposes only what differs, so that a restart of the leader or a lost proposal makes no difference.
type reporter struct {
	node  *cluster.Node
	state *fsm.State
	self  fsm.Member
	log   *slog.Logger

	// links tells how the speaker stands with its peers; nil without a speaker.
	links func(context.Context) ([]bgp.Link, error)

	mu    sync.Mutex
	marks marks       // the newest
	open  []fsm.Reach // sessions that count as open, when they were looked at last
	known bool        // they were, and a record that was never told of them may be
	news  chan struct{}

	waits waits // of the goroutine that runs it
}

// marks are up to where this member's routes are on the wire, and up to where no switch holds more than them. One that speaks no BGP has
// nothing on the wire, and the latter alone.
type marks struct{ announced, withdrawn fsm.Revision }

func newReporter(node *cluster.Node, state *fsm.State, self fsm.Member, log *slog.Logger) *reporter {
	return &reporter{node: node, state: state, self: self, log: log, news: make(chan struct{}, 1)}
}

// announced and withdrawn take new high-water marks from the announcer; they never block.
func (r *reporter) announced(at bgp.Revision) { r.note(func(m *marks) { m.announced = revision(at) }) }

func (r *reporter) withdrawn(at bgp.Revision) { r.note(func(m *marks) { m.withdrawn = revision(at) }) }

func revision(at bgp.Revision) fsm.Revision {
	return fsm.Revision{Epoch: fsm.Epoch(at.Epoch), Index: fsm.Index(at.Index)}
}

func (r *reporter) note(change func(*marks)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.marks)
	select {
	case r.news <- struct{}{}:
	default:
	}
}

func (r *reporter) newest() marks {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.marks
}

// againAfter is how long to wait after a report that did not get through, and between looks at an idle record.
const againAfter = 250 * time.Millisecond

func (r *reporter) run(ctx context.Context) error {
	tick := time.NewTicker(againAfter)
	defer tick.Stop()
	if r.links != nil {
		watching := make(chan struct{})
		defer func() { <-watching }()
		go func() { defer close(watching); r.watch(ctx) }()
	}
	for {
		if cs := r.due(r.newest()); len(cs) > 0 {
			r.propose(ctx, cs...)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.news:
		case <-tick.C:
		}
	}
}

// due is what the record lacks. Before the group has an identity, or while this copy is behind, there is nobody to tell. What is on the wire
// of the sessions is told with which sessions those are, and not before: else the record would have it announced to everybody.
func (r *reporter) due(m marks) []fsm.Command {
	if id, _, _ := r.state.Identity(); id == "" || !r.node.Contact().CaughtUp() {
		return nil
	}
	v := r.state.Read()
	have, ok := fsm.Get[*fsm.Member](v, fsm.TableMembers, string(r.self.Server))
	if !ok || have.Run != r.self.Run || have.API != r.self.API || have.Raft != r.self.Raft {
		return []fsm.Command{&fsm.ReportMember{
			Server: r.self.Server, Name: r.self.Name, Raft: r.self.Raft, API: r.self.API,
			Format: r.self.Format, Version: r.self.Version, Run: r.self.Run,
		}}
	}
	var due []fsm.Command
	if r.links != nil && v.Group().Format >= fsm.FormatSessions {
		open, known := r.sessions()
		switch told := (fsm.Sessions{Told: true, Open: open}); {
		case !known:
			m.announced = fsm.Revision{}
		case !told.Equal(have.Sessions):
			due = append(due, &fsm.ReportSessions{Members: []fsm.MemberSessions{{Server: have.Server, Run: have.Run, Open: open}}})
		}
	}
	if mark := r.waits.markFor(v, have, m); mark.News(have) {
		due = append(due, &fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{mark}})
	}
	return due
}

// waits tells of which withdrawals the record waits to hear. It is asked several times a second, mostly the same of the same routes, and
// there may be many of those. The zero value has looked at nothing.
type waits struct {
	view        *fsm.View // newest whose routes were looked at
	after, upto fsm.Revision
	awaited     bool
}

// markFor is what a record is told of this member, whose row it has. Before format 2 it knows one mark only, by which
// withdrawals end.
func (w *waits) markFor(v *fsm.View, have *fsm.Member, m marks) fsm.AnnouncedMark {
	mark := fsm.AnnouncedMark{Server: have.Server, Run: have.Run, Upto: m.announced}
	switch {
	case v.Group().Format < fsm.FormatWithdrawn:
		mark.Upto = m.withdrawn
	case have.Withdrawn.Before(m.withdrawn) && w.look(v, have.Withdrawn, m.withdrawn):
		mark.Withdrawn = m.withdrawn
	}
	return mark
}

// look tells whether a withdrawal from after a revision up to another one waits for members. What nobody waits for is
// not worth a commit.
func (w *waits) look(v *fsm.View, after, upto fsm.Revision) bool {
	if w.view == nil || w.after != after || w.upto != upto || fsm.Differ(w.view, v, fsm.TableRoutes) {
		w.after, w.upto, w.awaited = after, upto, awaited(v, after, upto)
	}
	w.view = v // an older one would hold what the record has no more
	return w.awaited
}

func awaited(v *fsm.View, after, upto fsm.Revision) bool {
	return slices.ContainsFunc(fsm.List[*fsm.Route](v, fsm.TableRoutes), func(r *fsm.Route) bool {
		return slices.ContainsFunc(r.NextHops, func(h fsm.NextHop) bool {
			return h.Withdrawing && after.Before(h.Since) && !upto.Before(h.Since)
		})
	})
}

func (r *reporter) propose(ctx context.Context, cs ...fsm.Command) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var proposals []fsm.Proposal
	for _, c := range cs {
		proposals = append(proposals, fsm.Proposal{Actor: "member/" + r.self.Name, AtUnixMilli: time.Now().UnixMilli(), Command: c})
	}
	outcomes, err := r.node.Propose(ctx, cluster.Urgent, proposals...)
	for _, o := range outcomes {
		err = errors.Join(err, o.Err())
	}
	if err != nil {
		r.log.Debug("report not committed", "err", err)
	}
}
