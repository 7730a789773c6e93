// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents"
	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/leases"
	"fairlead.io/fairlead/cluster/probes"
	"fairlead.io/fairlead/cluster/records"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/manifests"
)

// openServices mounts every service of the API, and joins the leader's work to the node.
func (m *Member) openServices() (err error) {
	if err = m.openStatus(); err != nil {
		return err
	}
	if err = m.openRedirects(); err != nil {
		return err
	}
	if m.work, err = m.newLeaderWork(); err != nil {
		return err
	}
	m.node.WhileLeader(m.work.lead)
	m.node.WhileLeader(m.comparer.Lead)
	m.server, err = admin.NewServer(admin.ServerOptions{
		Endpoint: m.network.Endpoint, Members: m.config.MemberAddresses(), Log: m.log, Metrics: m.registry, Now: time.Now,
		Standing: admin.Standing{Revoked: enrol.Revocations{Record: m.state}.Why, Serves: m.node.Serves, Starting: m.starting},
	})
	if err != nil {
		return err
	}
	group := &adminGroup{node: m.node, state: m.state, self: m.self, version: m.version, config: &m.config, apiOf: m.apiOf, doubts: m.comparer.Doubts}
	m.server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewRaftServiceHandler(admin.NewRaftService(group, m.clients, m.log), o...)
	})
	m.server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
		j := &joiner{node: m.node, state: m.state, self: m.self}
		return fairleadv1connect.NewJoinServiceHandler(admin.NewJoinService(group, j, m.clients), o...)
	})
	barrier := records.NewBarrier(m.node, m.reach)
	m.server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewRecordServiceHandler(records.New(records.Options{
			Member: m.config.Name, Record: m.state, Leader: m.node, Proposer: m.node, Barrier: barrier, Sessions: m.sessions, Flows: m.flows,
			NodeSessions: func(p fsm.PeerName) map[fsm.NodeID]string { return m.agents.SpeakerSessions(p) },
			Planner:      m.work, ToLeader: m.toLeader, Leaderless: m.leaderless, Manifests: manifests.Once(reviewLegacy, m.config.ConfigNamespaces()),
		}), o...)
	})
	if err := m.registry.Register(records.Collector{Record: m.state}); err != nil {
		return fmt.Errorf("register metrics of the record: %w", err)
	}
	timing := m.edges.Tuning.Leases
	timing.Term = cmp.Or(timing.Term, m.config.L2.Lease)
	m.grantor = leases.New(leases.Options{Record: m.state, Group: grantors{m.node}, Clock: m.edges.Clock, Log: m.log, Timing: timing})
	m.node.WhileLeader(m.grantor.Run)
	m.aside = &aside{node: m.node, state: m.state, name: m.self.Name, sessions: m.sessions, reach: m.reach, log: m.log}
	m.node.WhileLeader(m.aside.lead)
	m.agents, err = agents.New(agents.Options{
		Member: m.config.Name, Record: m.state, Proposer: m.node, Contact: m.node.Contact, Barrier: barrier, Leases: m.grantor, Shares: &shares{}, Log: m.log,
		Metrics: m.registry, Tuning: m.edges.Tuning.Agents,
	})
	if err != nil {
		return err
	}
	m.server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewAgentServiceHandler(m.agents, o...)
	})
	verdicts := probes.New(probes.Options{
		Record: m.state, Group: bulk{m.node}, Clock: m.edges.Clock, Heard: func() probes.Heard { return m.agents.Probed(probedWithin) }, Log: m.log,
	})
	m.node.WhileLeader(verdicts.Run)
	return nil
}

// probedWithin is for how long what a node said of addresses that it probes counts while the node is silent.
const probedWithin = 10 * time.Second

// bulk is the group to those who can wait.
type bulk struct{ node *cluster.Node }

func (b bulk) Propose(ctx context.Context, proposals []fsm.Proposal) ([]fsm.Outcome, error) {
	return b.node.ProposeLocal(ctx, cluster.Bulk, proposals...)
}

// grantors are the group to those who grant leases.
type grantors struct{ node *cluster.Node }

func (g grantors) Propose(ctx context.Context, proposals []fsm.Proposal) ([]fsm.Outcome, error) {
	return g.node.ProposeLocal(ctx, cluster.Urgent, proposals...)
}

func (g grantors) VerifyLeader(ctx context.Context) error { return g.node.VerifyLeader(ctx) }

// reach gives the record service of another member.
func (m *Member) reach(p cluster.Peer) (fairleadv1connect.RecordServiceClient, error) {
	return m.clients.Client(m.apiOf(p.Name)).Record, nil
}

// toLeader gives the name of the leader and its record service, as far as they are known.
func (m *Member) toLeader() (string, fairleadv1connect.RecordServiceClient) {
	p, ok := m.node.Leader()
	if !ok {
		return "", nil
	}
	address := m.apiOf(p.Name)
	if address == "" {
		return p.Name, nil
	}
	return p.Name, m.clients.Client(address).Record
}

// flowsWithin is for how long what a node counted of its connections is told on while the node is silent.
const flowsWithin = 5 * time.Second

// flows tells what a node counted of the connections that come in by it.
func (m *Member) flows(node fsm.NodeID) (records.Flows, bool) {
	f := m.agents.Flows(node, flowsWithin)
	if f == nil {
		return records.Flows{}, false
	}
	return records.Flows{Open: f.Open, Busy: f.Busy, Age: time.Since(f.At), Why: f.Why}, true
}

// sessions tells the state of this member's BGP sessions, by peer.
func (m *Member) sessions() map[fsm.PeerName]string {
	out := map[fsm.PeerName]string{}
	if m.speaker == nil {
		return out
	}
	ctx, cancel := context.WithTimeout(m.open, time.Second)
	defer cancel()
	states, err := m.speaker.Sessions(ctx)
	if err != nil {
		m.log.Warn("BGP sessions not read", "err", err)
		return out
	}
	for _, name := range m.routes.without() {
		out[fsm.PeerName(name)] = "left out: its password is not on this member; the log says why"
	}
	for name, state := range states {
		out[fsm.PeerName(name)] = state
	}
	return out
}
