// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/raft"
	autopilot "github.com/hashicorp/raft-autopilot"
)

// runAutopilot gives new servers their vote once they caught up and stayed healthy. Removing lost ones is not left to
// it: a server goes when its replacement comes (Admit) or when an operator says so.
func (n *Node) runAutopilot(ctx context.Context, _ uint64) {
	every := max(n.o.Tuning.Stabilization/4, 50*time.Millisecond)
	pilot := autopilot.New(&pilotRaft{n.raft, n, ctx}, (*pilotView)(n),
		autopilot.WithLogger(newRaftLog(n.log)),
		autopilot.WithUpdateInterval(every),
		autopilot.WithReconcileInterval(2*every),
		autopilot.WithPromoter(n.promoter(ctx)),
	)
	pilot.Start(ctx)
	<-ctx.Done()
	<-pilot.Stop()
}

// pilotRaft is the library for autopilot, until ctx ends: a library that is shut down at the wrong moment never answers what it committed
// (v1.7.3, runFSM), and autopilot would wait for that, and the member with it, for ever.
type pilotRaft struct {
	*raft.Raft
	node *Node
	ctx  context.Context
}

// AddVoter is the library's, for who is a member still: what autopilot knows of a server is some time old, its address too.
func (r *pilotRaft) AddVoter(id raft.ServerID, _ raft.ServerAddress, _ uint64, timeout time.Duration) raft.IndexFuture {
	s, at, err := r.node.look(string(id))
	if err != nil {
		return refused{err}
	}
	return &pilotFuture{r.Raft.AddVoter(id, s.Address, at, timeout), r}
}

// refused is the future of a change that was not asked for.
type refused struct{ err error }

func (f refused) Error() error { return f.err }
func (refused) Index() uint64  { return 0 }

type pilotFuture struct {
	raft.IndexFuture
	of *pilotRaft
}

// Error waits for the answer, or for the end.
func (f *pilotFuture) Error() error { return f.of.node.await(f.of.ctx, f.IndexFuture) }

// verifiedPromoter gives votes only while a majority of those who have one answers. A leader that lost its majority goes on for its lease,
// and by a vote that it gives then it may get one again, together with the new voter alone. When it goes next, those who were away know nothing
// of the new voter; they vote for it only by what this release passes on to the library (enfranchise), which members of older ones do not do.
type verifiedPromoter struct {
	autopilot.Promoter
	verify func() error
	waits  func(raft.ServerID) bool // it is a member without a vote, by the newest configuration
}

// promoter gives what decides for autopilot, until ctx ends.
func (n *Node) promoter(ctx context.Context) autopilot.Promoter {
	return &verifiedPromoter{
		Promoter: autopilot.DefaultPromoter(),
		verify:   func() error { return n.Barrier(ctx) },
		waits: func(id raft.ServerID) bool {
			s, err := n.server(string(id))
			return err == nil && s.Suffrage != raft.Voter
		},
	}
}

// CalculatePromotionsAndDemotions gives what the embedded promoter does, without promotions where the majority does not answer, and without
// those of servers that were removed since autopilot looked: they would be members again, with a vote that nobody gives.
func (p *verifiedPromoter) CalculatePromotionsAndDemotions(c *autopilot.Config, s *autopilot.State) autopilot.RaftChanges {
	changes := p.Promoter.CalculatePromotionsAndDemotions(c, s)
	if len(changes.Promotions) > 0 && p.verify() != nil {
		changes.Promotions = nil // they are looked at again, if it leads on
	}
	changes.Promotions = slices.DeleteFunc(changes.Promotions, func(id raft.ServerID) bool { return !p.waits(id) })
	return changes
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
