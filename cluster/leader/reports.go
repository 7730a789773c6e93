// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"sync"
	"time"

	"fairlead.io/fairlead/fsm"
)

// reports are high-water marks on their way to the record. Each node and member has at most one here, so that they
// are bounded however often they come.
type reports struct {
	wake chan struct{}

	mu      sync.Mutex
	nodes   map[fsm.NodeID]fsm.AppliedMark
	members map[fsm.ServerID]fsm.AnnouncedMark
}

func newReports() *reports {
	return &reports{wake: make(chan struct{}, 1), nodes: map[fsm.NodeID]fsm.AppliedMark{}, members: map[fsm.ServerID]fsm.AnnouncedMark{}}
}

func (r *reports) acknowledged(m fsm.AppliedMark) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if have, ok := r.nodes[m.Node]; ok && have.Boot == m.Boot && m.Upto.Before(have.Upto) {
		return
	}
	r.nodes[m.Node] = m
	poke(r.wake)
}

func (r *reports) announced(m fsm.AnnouncedMark) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if have, ok := r.members[m.Server]; ok && have.Run == m.Run && m.Upto.Before(have.Upto) {
		return
	}
	r.members[m.Server] = m
	poke(r.wake)
}

// maxMarks bounds one command.
const maxMarks = 1000

// take gives the commands for what came in, without the marks that would change nothing, and starts anew.
func (r *reports) take(record *fsm.View) []fsm.Command {
	r.mu.Lock()
	nodes, members := r.nodes, r.members
	r.nodes, r.members = map[fsm.NodeID]fsm.AppliedMark{}, map[fsm.ServerID]fsm.AnnouncedMark{}
	r.mu.Unlock()
	var out []fsm.Command
	var announced []fsm.AnnouncedMark
	for _, id := range sortedKeys(members) {
		if m, known := fsm.Get[*fsm.Member](record, fsm.TableMembers, string(id)); known && members[id].News(m) {
			announced = append(announced, members[id])
		}
	}
	if len(announced) > 0 {
		out = append(out, &fsm.ReportAnnounced{Marks: announced})
	}
	var applied []fsm.AppliedMark
	for _, id := range sortedKeys(nodes) {
		n, known := fsm.Get[*fsm.Node](record, fsm.TableNodes, string(id))
		if known && !n.Acknowledged.Before(nodes[id].Upto) && n.Boot == nodes[id].Boot && len(n.Failed)+len(nodes[id].Failed) == 0 {
			continue
		}
		if applied = append(applied, nodes[id]); len(applied) == maxMarks {
			out = append(out, &fsm.Acknowledge{Marks: applied})
			applied = nil
		}
	}
	if len(applied) > 0 {
		out = append(out, &fsm.Acknowledge{Marks: applied})
	}
	return out
}

// giveBack puts marks that did not get through back, unless newer ones came.
func (r *reports) giveBack(cs []fsm.Command) {
	for _, c := range cs {
		switch c := c.(type) {
		case *fsm.Acknowledge:
			for _, m := range c.Marks {
				r.restore(m)
			}
		case *fsm.ReportAnnounced:
			for _, m := range c.Marks {
				r.restoreAnnounced(m)
			}
		}
	}
}

func (r *reports) restore(m fsm.AppliedMark) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, newer := r.nodes[m.Node]; !newer {
		r.nodes[m.Node] = m
	}
}

func (r *reports) restoreAnnounced(m fsm.AnnouncedMark) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, newer := r.members[m.Server]; !newer {
		r.members[m.Server] = m
	}
}

// runReports proposes what came in within a short window as few commands, until ctx ends.
func (l *Leader) runReports(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.reports.wake:
		}
		if !sleep(ctx, l.c.Clock, l.c.Timing.Reports, nil) {
			return
		}
		cs := l.reports.take(l.c.Record.Read())
		if len(cs) == 0 {
			continue
		}
		proposals := make([]fsm.Proposal, 0, len(cs))
		for _, c := range cs {
			proposals = append(proposals, fsm.Proposal{
				Actor: actor, Reason: "reported", AtUnixMilli: l.c.Clock.Wall().UnixMilli(), Command: c,
			})
		}
		if _, err := l.propose(ctx, Urgent, PartServices, proposals); err != nil {
			l.reports.giveBack(cs)
			if gaveUp(ctx, err) || !sleep(ctx, l.c.Clock, reportAgain, nil) {
				return
			}
			poke(l.reports.wake)
		}
	}
}

// reportAgain is how long to wait after reports did not get through.
const reportAgain = 100 * time.Millisecond
