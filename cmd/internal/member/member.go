// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents"
	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/liveness"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/store/disk"
	"fairlead.io/fairlead/cluster/transport"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/gobgp"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/client"
	"fairlead.io/fairlead/k8s/status"
)

// Listeners are the sockets of a member. Those left nil are opened as the configuration says.
type Listeners struct {
	API, Raft, Health net.Listener
}

// Member is one member of the group, open but not running until Run.
type Member struct {
	config   config.Controller
	version  string
	log      *slog.Logger
	registry *prometheus.Registry

	folder    *disk.Folder
	state     *fsm.State
	belonging *belonging
	files     pki.Files // of the certificate that is kept fresh
	endpoint  *pki.Endpoint
	listeners Listeners
	transport *transport.Transport
	node      *cluster.Node
	server    *admin.Server
	clients   *admin.Peers
	others    *others
	self      admin.Member
	run       string          // drawn at this start
	open      context.Context // until Close
	close     context.CancelFunc
	kube      *client.API   // nil: no cluster is read
	shown     *status.Store // what the cluster shows of its Services; nil without one

	agents    *agents.Service
	holder    *enrol.Holder // of this member's own certificate
	liveness  *liveness.Service
	work      *leaderWork
	speaker   *gobgp.Speaker // nil: this member does not speak BGP
	announcer *bgp.Announcer
	routes    *routes
	reporter  *reporter
}

// Open builds a member bottom-up and starts listening. After an error nothing is left open.
func Open(c config.Controller, version string, listeners Listeners, log *slog.Logger) (*Member, error) {
	m := &Member{
		config: c, version: version, log: log.With("member", c.Name), registry: prometheus.NewRegistry(),
		state: fsm.New(), listeners: listeners, run: rand.Text(),
	}
	m.open, m.close = context.WithCancel(context.Background())
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, step := range []func() error{
		m.useLegacyGlobals, m.openKubernetes, m.openFolder, m.openIdentity, m.listen, m.openNode, m.openServices, m.openEnrolment, m.openLiveness, m.openBGP,
	} {
		if err := step(); err != nil {
			m.Close()
			return nil, err
		}
	}
	return m, nil
}

func (m *Member) openFolder() (err error) {
	if m.folder, err = disk.Open(m.config.DataDir, m.config.Name); err != nil {
		return err
	}
	m.belonging = newBelonging(m.state, m.folder)
	return nil
}

func (m *Member) openIdentity() error {
	var err error
	if m.files, err = pki.Files(m.config.TLS.TLS).Renewable(filepath.Join(m.config.DataDir, "tls")); err != nil {
		return err
	}
	source, err := pki.OpenSource(m.files, m.log)
	if err != nil {
		return err
	}
	if id := source.Material().Identity; id.Role != pki.Member || id.Name != m.config.Name {
		return fmt.Errorf("%s: the certificate is %s's, this member is member/%s; issue one with `fairlead pki issue member %s`",
			m.config.TLS.Cert, id, m.config.Name, m.config.Name)
	}
	refusals, err := pki.NewRefusals(m.log, m.registry, time.Now)
	if err != nil {
		return err
	}
	m.endpoint = &pki.Endpoint{Source: source, Self: m.belonging.self, Refusals: refusals, Strangers: &pki.Strangers{}}
	m.clients = admin.NewPeers(m.endpoint, m.dial)
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
	for _, known := range fsm.List[*fsm.Member](m.state.Read(), fsm.TableMembers) {
		if known.Name == name && known.API != "" {
			return known.API
		}
	}
	i := slices.IndexFunc(m.config.Members, func(c config.Member) bool { return c.Name == name })
	if i < 0 {
		return ""
	}
	return m.config.Members[i].API
}

func (m *Member) listen() (err error) {
	open := func(l *net.Listener, field, address string) {
		if *l != nil || address == "" || err != nil {
			return
		}
		if *l, err = net.Listen("tcp", address); err != nil {
			err = fmt.Errorf("%s %s: %w; is another process there, or the address not this machine's?", field, address, err)
		}
	}
	open(&m.listeners.API, "listen.api", m.config.Listen.API)
	open(&m.listeners.Raft, "listen.raft", m.config.Listen.Raft)
	open(&m.listeners.Health, "listen.health", m.config.Listen.Health)
	return err
}

func (m *Member) openNode() (err error) {
	m.transport, err = transport.Listen(transport.Options{
		Listener: m.listeners.Raft, Advertise: m.config.Advertise.Raft, Server: m.endpoint.Server(pki.Raft), Log: m.log,
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			return m.endpoint.Dial(ctx, m.dial, pki.Raft, address)
		},
	})
	if err != nil {
		return err
	}
	options := cluster.Options{
		Name: m.config.Name, Instance: m.folder.Identity().Instance,
		Stores: m.folder.Stores(), Path: m.folder.Path(), Transport: m.transport,
		Machine:    cluster.Record{State: m.state},
		NewMachine: func() cluster.Machine { return cluster.Record{State: fsm.New()} },
		Encode: func(ps []cluster.Proposal) ([]byte, error) {
			_, epoch, _ := m.state.Identity()
			return fsm.EncodeEntry(epoch, ps)
		},
		Opening: m.opening,
		Renew:   renewAfter(func() fsm.Epoch { _, epoch, _ := m.state.Identity(); return epoch }, "restore"),
		Forward: m.forward, Join: m.others.join(m.self, m.version), Bootstrap: m.bootstrap(),
		Log: m.log, Metrics: m.registry,
		Tuning: cluster.Tuning{
			Heartbeat: m.config.Raft.Heartbeat, Election: m.config.Raft.Election,
			SnapshotThreshold: m.config.Raft.SnapshotThreshold, SnapshotInterval: m.config.Raft.SnapshotInterval,
			TrailingLogs: m.config.Raft.TrailingLogs,
		},
	}
	if m.node, err = cluster.Open(options); err != nil {
		return err
	}
	return m.belonging.begin()
}

// dial connects from the address that this member listens on, where it is a particular one: on a machine with
// several, firewalls and logs of the others know that one.
func (m *Member) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	if host, _, err := net.SplitHostPort(m.config.Listen.Raft); err == nil {
		if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() {
			d.LocalAddr = &net.TCPAddr{IP: ip}
		}
	}
	return d.DialContext(ctx, network, address)
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

// Close gives back everything that Open took. Run does it itself.
func (m *Member) Close() {
	m.close()
	if m.transport != nil {
		_ = m.transport.Close()
	}
	for _, l := range []net.Listener{m.listeners.API, m.listeners.Raft, m.listeners.Health} {
		if l != nil {
			_ = l.Close()
		}
	}
	if m.clients != nil {
		m.clients.Close()
	}
	if m.folder != nil {
		if err := m.folder.Close(); err != nil {
			m.log.Error("data folder not closed", "err", err)
		}
	}
}
