// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"
)

// runAutopilot gives new servers their vote once they caught up and stayed healthy. Removing lost ones is not left to
// it: a server goes when its replacement comes (Admit) or when an operator says so.
func (n *Node) runAutopilot(ctx context.Context, _ uint64) {
	every := max(n.o.Tuning.Stabilization/4, 50*time.Millisecond)
	pilot := autopilot.New(n.raft, (*pilotView)(n),
		autopilot.WithLogger(newRaftLog(n.log)),
		autopilot.WithUpdateInterval(every),
		autopilot.WithReconcileInterval(2*every),
	)
	pilot.Start(ctx)
	<-ctx.Done()
	<-pilot.Stop()
}

// pilotView is what autopilot sees of a leading Node.
type pilotView Node

// AutopilotConfig gives the thresholds.
func (v *pilotView) AutopilotConfig() *autopilot.Config {
	return &autopilot.Config{
		LastContactThreshold:    3 * v.o.Tuning.Heartbeat,
		MaxTrailingLogs:         v.o.Tuning.MaxTrailing,
		ServerStabilizationTime: v.o.Tuning.Stabilization,
	}
}

// FetchServerStats gives what followers answered. The library's heartbeats carry it all, so nobody is asked.
func (v *pilotView) FetchServerStats(_ context.Context, servers map[raft.ServerID]*autopilot.Server) map[raft.ServerID]*autopilot.ServerStats {
	term := v.raft.CurrentTerm()
	stats := make(map[raft.ServerID]*autopilot.ServerStats, len(servers))
	for id := range servers {
		if id == v.id {
			stats[id] = &autopilot.ServerStats{LastTerm: term, LastIndex: v.raft.LastIndex()}
		} else if p, ok := v.seen.seen(id, term); ok && p.matched {
			stats[id] = &autopilot.ServerStats{LastContact: time.Since(p.at), LastTerm: term, LastIndex: p.lastLog}
		}
	}
	return stats
}

// KnownServers gives every server of the configuration; whether one is alive is told by FetchServerStats.
func (v *pilotView) KnownServers() map[raft.ServerID]*autopilot.Server {
	known := map[raft.ServerID]*autopilot.Server{}
	for _, s := range v.raft.GetConfiguration().Configuration().Servers {
		known[s.ID] = &autopilot.Server{
			ID: s.ID, Name: NameOf(string(s.ID)), Address: s.Address,
			NodeStatus: autopilot.NodeAlive, NodeType: autopilot.NodeVoter, IsLeader: s.ID == v.id,
		}
	}
	return known
}

// NotifyState is told of every new assessment; Status shows what is needed of it.
func (v *pilotView) NotifyState(*autopilot.State) {}

// RemoveFailedServer is never called: CleanupDeadServers is off.
func (v *pilotView) RemoveFailedServer(*autopilot.Server) {}
