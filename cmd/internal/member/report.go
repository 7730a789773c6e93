// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"log/slog"
	"time"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
)

// reporter keeps the record's row about this member true: what it runs, and up to where its routes are on the
// wire. It proposes only what differs, so that a restart of the leader or a lost proposal makes no difference.
type reporter struct {
	node  *cluster.Node
	state *fsm.State
	self  fsm.Member
	log   *slog.Logger
	// announced holds the newest mark, at most one.
	announced chan fsm.Revision
}

func newReporter(node *cluster.Node, state *fsm.State, self fsm.Member, log *slog.Logger) *reporter {
	return &reporter{node: node, state: state, self: self, log: log, announced: make(chan fsm.Revision, 1)}
}

// mark takes a new high-water mark from the announcer; it never blocks. An older mark that nobody took is dropped.
func (r *reporter) mark(at bgp.Revision) {
	select {
	case <-r.announced:
	default:
	}
	r.announced <- fsm.Revision{Epoch: fsm.Epoch(at.Epoch), Index: fsm.Index(at.Index)}
}

// againAfter is how long to wait after a report that did not get through, and between looks at an idle record.
const againAfter = 250 * time.Millisecond

func (r *reporter) run(ctx context.Context) error {
	var mark fsm.Revision
	tick := time.NewTicker(againAfter)
	defer tick.Stop()
	for {
		if c := r.due(mark); c != nil {
			r.propose(ctx, c)
		}
		select {
		case <-ctx.Done():
			return nil
		case mark = <-r.announced:
		case <-tick.C:
		}
	}
}

// due is what the record lacks, nil for nothing. Before the group has an identity, or while this copy is behind,
// there is nobody to tell.
func (r *reporter) due(mark fsm.Revision) fsm.Command {
	if id, _, _ := r.state.Identity(); id == "" || !r.node.Contact().CaughtUp() {
		return nil
	}
	have, ok := fsm.Get[*fsm.Member](r.state.Read(), fsm.TableMembers, string(r.self.Server))
	if !ok || have.Run != r.self.Run || have.API != r.self.API || have.Raft != r.self.Raft {
		return &fsm.ReportMember{
			Server: r.self.Server, Name: r.self.Name, Raft: r.self.Raft, API: r.self.API,
			Format: r.self.Format, Version: r.self.Version, Run: r.self.Run,
		}
	}
	if have.Announced.Before(mark) {
		return &fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{{Server: r.self.Server, Run: r.self.Run, Upto: mark}}}
	}
	return nil
}

func (r *reporter) propose(ctx context.Context, c fsm.Command) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := r.node.Propose(ctx, cluster.Urgent, fsm.Proposal{
		Actor: "member/" + r.self.Name, AtUnixMilli: time.Now().UnixMilli(), Command: c,
	})
	if err == nil {
		err = out[0].Err()
	}
	if err != nil {
		r.log.Debug("report not committed", "err", err)
	}
}
