// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"net/http"

	"connectrpc.com/connect"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/liveness"
	"fairlead.io/fairlead/fsm"
)

// openLiveness has this member tell what it hears of the nodes, and judge them while it leads.
func (m *Member) openLiveness() (err error) {
	m.liveness, err = liveness.NewService(liveness.ServiceOptions{
		Record: m.state, Beats: m.agents.Beats, Prober: m.edges.Prober(m.config.Liveness.ProbePort, m.log), Metrics: m.registry,
		Timing: m.edges.Tuning.Liveness,
	})
	if err != nil {
		return err
	}
	m.server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewLivenessServiceHandler(m.liveness, o...)
	})
	watcher, err := liveness.NewWatcher(liveness.WatcherOptions{
		Record: m.state, Group: watchers{m}, Clock: m.edges.Clock, Log: m.log, Metrics: m.registry,
		Timing: m.edges.Tuning.Liveness,
	})
	if err != nil {
		return err
	}
	m.node.WhileLeader(watcher.Run)
	return nil
}

// watchers are the members to those who judge nodes by what they hear.
type watchers struct{ m *Member }

func (w watchers) Voters() []string {
	var out []string
	for _, p := range w.m.node.Peers() {
		if p.Voter {
			out = append(out, p.Name)
		}
	}
	return out
}

func (w watchers) Colleague(name string) liveness.Colleague {
	if name == w.m.config.Name {
		return w.m.liveness.Local()
	}
	return liveness.Over(w.m.clients.Client(w.m.apiOf(name)).Liveness)
}

func (w watchers) Propose(ctx context.Context, proposals []fsm.Proposal) ([]fsm.Outcome, error) {
	return w.m.node.ProposeLocal(ctx, cluster.Urgent, proposals...)
}
