// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents"
	"fairlead.io/fairlead/cluster/compare"
	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/leases"
	"fairlead.io/fairlead/cluster/liveness"
	"fairlead.io/fairlead/cluster/store/disk"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/passwords"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/driver/pool"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/client"
	"fairlead.io/fairlead/k8s/handover"
	"fairlead.io/fairlead/k8s/objects"
	"fairlead.io/fairlead/k8s/servicecidrs"
	"fairlead.io/fairlead/k8s/status"
)

// Member is one member of the group, open but not running until Run.
type Member struct {
	config   config.Controller
	version  string
	edges    Edges
	log      *slog.Logger
	registry *prometheus.Registry

	folder    *disk.Folder
	state     *fsm.State
	belonging *belonging
	network   *Network
	node      *cluster.Node
	server    *admin.Server
	clients   *admin.Peers
	others    *others
	comparer  *compare.Comparer
	self      admin.Member
	run       string          // drawn at this start
	read      atomic.Bool     // see hasRead
	open      context.Context // until Close
	close     context.CancelFunc
	kube      *client.API                     // nil: no cluster is read
	cidrs     *servicecidrs.Follower          // nil without one
	shown     *status.Store                   // what the cluster shows of its Services; nil without one
	showing   func(world.Kind, world.ID, any) // is shown policies and Nodes as the cluster has them; nil: nobody looks
	judges    http.Handler                    // answers the API server; nil: admission is not served
	drivers   *pool.Pool
	stored    *objects.Store  // what webhook calls and admission need of the cluster
	handover  *handover.Check // nil: no cluster is read

	agents    *agents.Service
	grantor   *leases.Leader // of leases to nodes
	aside     *aside
	holder    *enrol.Holder // of this member's own certificate; nil without one
	liveness  *liveness.Service
	work      *leaderWork
	speaker   Speaker // nil: this member does not speak BGP
	announcer *bgp.Announcer
	routes    *routes
	passwords *passwords.Keeper // of peers
	reporter  *reporter
}

// Open builds a member bottom-up and starts listening. After an error nothing is left open.
func Open(c config.Controller, version string, edges Edges, log *slog.Logger) (*Member, error) {
	m := &Member{
		config: c, version: version, log: log.With("member", c.Name), registry: prometheus.NewRegistry(),
		edges: edges, state: fsm.New(), run: rand.Text(),
	}
	m.open, m.close = context.WithCancel(context.Background())
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, step := range []func() error{
		m.useLegacyGlobals, m.openKubernetes, m.openFolder, m.openNetwork, m.openNode, m.openComparer, m.openDrivers, m.openOutside, m.openServices, m.openEnrolment, m.openLiveness, m.openBGP,
		m.openAdmission,
	} {
		if err := step(); err != nil {
			m.Close()
			return nil, err
		}
	}
	return m, nil
}

func (m *Member) openFolder() (err error) {
	if m.folder, err = m.edges.Folder(m.config.DataDir, m.config.Name); err != nil {
		return err
	}
	m.narrow()
	m.belonging = newBelonging(m.state, m.folder)
	return cmp.Or(knows(m.folder), belongs(m.folder), agrees(m.folder))
}

// narrow keeps what the data folder holds from other users of the machine: the record, passwords of peers, keys. Whoever made the
// folder, such as a kubelet, may have left it open to them, and former releases left snapshots so.
func (m *Member) narrow() {
	if m.edges.Narrow == nil {
		return
	}
	wider, err := m.edges.Narrow(m.config.DataDir)
	if len(wider) > 0 {
		m.log.Warn("data folder was open to other users of this machine, and is not any more", "path", m.config.DataDir, "files", len(wider), "first", wider[0])
	}
	if err != nil {
		m.log.Error("data folder is open to other users of this machine", "path", m.config.DataDir, "err", err)
	}
}

// openNetwork has this member listen, and opens its ways to the others.
func (m *Member) openNetwork() (err error) {
	m.network, err = m.edges.Network(NetworkOptions{Config: m.config, Self: m.belonging.self, Revoked: enrol.Revocations{Record: m.state}.Why, Log: m.log, Metrics: m.registry})
	if err != nil {
		return err
	}
	m.clients = m.network.Peers
	m.belonging.renew = m.clients.Close
	m.others = &others{clients: m.clients, apiOf: m.apiOf}
	for _, other := range m.config.Members {
		m.others.names = append(m.others.names, other.Name)
	}
	m.self = admin.Member{
		ID:   cluster.ServerID(m.config.Name, m.folder.Identity().Instance),
		Name: m.config.Name, Address: m.config.Advertise.Raft, APIAddress: m.config.Advertise.API,
	}
	return nil
}

// apiOf tells where a member's API is: what the record says, else the configuration.
func (m *Member) apiOf(name string) string {
	recorded, configured := "", ""
	for _, known := range fsm.List[*fsm.Member](m.state.Read(), fsm.TableMembers) {
		if known.Name == name && known.API != "" {
			recorded = known.API
		}
	}
	if i := slices.IndexFunc(m.config.Members, func(c config.Member) bool { return c.Name == name }); i >= 0 {
		configured = m.config.Members[i].API
	}
	if !m.hasRead() { // what the record has may be of a time before all of them moved
		return cmp.Or(configured, recorded)
	}
	return cmp.Or(recorded, configured)
}

func (m *Member) openNode() (err error) {
	options := cluster.Options{
		Name: m.config.Name, Instance: m.folder.Identity().Instance,
		Stores: m.folder.Stores(), Path: m.folder.Path(), Transport: m.network.Raft,
		Machine:    m.machine(),
		NewMachine: newRecord,
		Fit:        func(p cluster.Proposal) (int, error) { return m.state.Read().Fit(p) },
		Encode: func(ps []cluster.Proposal) ([]byte, error) {
			_, epoch, _ := m.state.Identity()
			return m.state.Read().EncodeEntry(epoch, ps)
		},
		Opening: m.opening,
		Renew:   renewAfter(m.state, "restore"),
		Forward: m.forward, Join: m.others.join(m.self, m.version), Bootstrap: m.bootstrap(),
		Log: m.log, Metrics: m.registry,
		Tuning: m.raftTuning(),
	}
	options.Floor, options.Fresh, options.Recall = m.edges.floor(m.config, m.self.ID), m.folder.Fresh(), m.others.recall(m.self)
	if m.node, err = cluster.Open(options); err != nil {
		return err
	}
	return m.belonging.begin()
}

func newRecord() cluster.Machine { return cluster.Record{State: fsm.New()} }

// machine is what entries of the log are applied to.
func (m *Member) machine() cluster.Machine {
	record := cluster.Record{State: m.state}
	if m.edges.Machine == nil {
		return record
	}
	return m.edges.Machine(record)
}

// raftTuning is what the configuration says, over what the edges do.
func (m *Member) raftTuning() cluster.Tuning {
	c, t := m.config.Raft, m.edges.Tuning.Raft
	t.Heartbeat, t.Election = cmp.Or(c.Heartbeat, t.Heartbeat), cmp.Or(c.Election, t.Election)
	t.SnapshotThreshold, t.SnapshotInterval = cmp.Or(c.SnapshotThreshold, t.SnapshotThreshold), cmp.Or(c.SnapshotInterval, t.SnapshotInterval)
	t.TrailingLogs, t.MaxLogBytes = cmp.Or(c.TrailingLogs, t.TrailingLogs), cmp.Or(c.MaxLogBytes, t.MaxLogBytes)
	return t
}

func (m *Member) bootstrap() *cluster.Bootstrap {
	if m.config.BootstrapToken == "" {
		return nil
	}
	b := &cluster.Bootstrap{Token: m.config.BootstrapToken, Confirm: m.others.confirm}
	for _, c := range m.config.Members {
		b.Members = append(b.Members, cluster.Peer{Name: c.Name, Address: c.Raft})
	}
	return b
}

// opening is what the first leader of a new group commits before anything else.
func (m *Member) opening() []cluster.Proposal {
	if id, _, _ := m.state.Identity(); id != "" {
		return nil
	}
	return []cluster.Proposal{{
		Actor: "member/" + m.config.Name, Reason: "bootstrap", AtUnixMilli: time.Now().UnixMilli(),
		Command: &fsm.InitGroup{
			Group: fsm.GroupID(rand.Text()), Format: fsm.NewestFormat,
			Settings: fsm.Settings{Unsteered: m.config.Unsteered},
		},
	}}
}

// Record is this member's copy, for those in the same process who show it.
func (m *Member) Record() *fsm.State { return m.state }

// Name is the member's name.
func (m *Member) Name() string { return m.config.Name }

// Leads tells whether this member leads the group now.
func (m *Member) Leads() bool { return m.node.LeadingTerm() != 0 }

// WhileLeader has f run in every term that this member leads, beside the work of a leader. Call it before Run.
func (m *Member) WhileLeader(f cluster.LeaderFunc) { m.node.WhileLeader(f) }

// Contact tells how this member stands with the group.
func (m *Member) Contact() cluster.Contact { return m.node.Contact() }

// Close gives back everything that Open took. Run does it itself.
func (m *Member) Close() {
	m.close()
	if m.drivers != nil {
		m.drivers.Close()
	}
	if m.network != nil {
		m.network.Close()
	}
	if m.folder != nil {
		if err := m.folder.Close(); err != nil {
			m.log.Error("data folder not closed", "err", err)
		}
	}
}
