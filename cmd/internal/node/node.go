// SPDX-License-Identifier: Apache-2.0

// Package node puts the agent of one node together: its loop, the way to the members, the folder that keeps the last
// state, and what touches the kernel.
//
// It promises that the node keeps its state when the agent ends, for whatever reason, and that Cleanup leaves nothing
// of it. Start reading at Process.Run, which is `fairlead agent`, and Edges; Run is the loop alone, for `fairlead dev`.
package node

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/agent/disk"
)

// Files of the state folder.
const (
	// StateFile holds what the node was told last.
	StateFile = "desired.state"
	// ProbesFile holds what is thought of addresses that policies list, for people; the agent does not read it.
	ProbesFile   = "probes.json"
	drainingFile = "draining.state" // what left that and still has its rules
	revokedFile  = "revoked.state"  // which members it does not deal with
	tlsFolder    = "tls"            // a certificate that cannot be renewed where it was given
)

// Options say what an agent is made of.
type Options struct {
	Node    string // as in its certificate
	Boot    string // what the machine drew at its last boot
	Servers []string
	Files   pki.Files
	Dial    pki.DialFunc // opens connections to members; optional
	Enrol   enrol.Ask    // how to get another certificate once the present one has expired; optional
	State   string       // folder
	Applier agent.Applier
	// AddressesOnly says that the Applier has no use for Services. Optional.
	AddressesOnly bool
	// AllServices says that the Applier serves node ports or ClusterIPs. Optional.
	AllServices bool
	// Tunnels says that the Applier makes tunnels. Optional.
	Tunnels bool
	// Redirects says that the Applier carries redirects out. Optional.
	Redirects bool
	// Outside says that it is the agent of a host outside the cluster, which other machines reach at Underlay. Optional.
	Outside  bool
	Underlay []netip.Addr
	Leases   agent.Leases      // optional
	Flows    agent.Flows       // optional
	Speaker  agent.Speaker     // optional
	Probes   agent.Probes      // optional
	Retire   *agent.Retirement // optional
	DenyList *agent.DenyList   // optional: that of State
	Log      *slog.Logger
	Metrics  prometheus.Registerer // optional
	Tuning   agent.Tuning          // zero fields take their default
}

// conn is a way to one member.
type conn struct {
	fairleadv1connect.AgentServiceClient
	client *admin.Client
}

func (c conn) Close() { c.client.Close() }

// Over is a client of one member as the agent's way to it.
func Over(client *admin.Client) agent.Conn { return conn{client.Agent, client} }

// Run works until ctx ends, and returns its error. The node keeps its state at the end.
func Run(ctx context.Context, o Options) error {
	o.Log = o.Log.With("node", o.Node)
	source, err := pki.OpenTrusted(o.Files, o.Log)
	if err != nil {
		return err
	}
	a, err := open(o, source)
	if err != nil {
		return err
	}
	return a.run(ctx)
}

// loop is the agent's loop, and what keeps its certificate fresh.
type loop struct {
	*agent.Agent
	holder *enrol.Holder // nil without a certificate
	peers  *admin.Peers  // that are asked for certificates
}

func (l *loop) run(ctx context.Context) error {
	if l.holder == nil {
		return l.Run(ctx)
	}
	defer l.peers.Close()
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return l.Run(running) })
	group.Go(func() error { return l.holder.Run(running) })
	return group.Wait()
}

// openOver makes the agent's loop over ways to members that need no certificate.
func openOver(o Options, connect func(self pki.Self, address string) agent.Conn) (*loop, error) {
	l := &loop{}
	store, err := disk.Open(o.State, StateFile)
	if err != nil {
		return nil, err
	}
	l.Agent, err = agent.New(agent.Options{
		Node: o.Node, Boot: o.Boot, Seeds: o.Servers, Store: store, Applier: o.Applier, AddressesOnly: o.AddressesOnly, AllServices: o.AllServices, Tunnels: o.Tunnels,
		Redirects: o.Redirects, Underlay: o.Underlay, Leases: o.Leases, Flows: o.Flows,
		Speaker: o.Speaker, Retirement: o.Retire, Probes: o.Probes, DenyList: o.DenyList,
		Log: o.Log, Metrics: o.Metrics, Tuning: o.Tuning,
		Connect: func(address string) agent.Conn {
			return connect(pki.Naming(l.Membership), address)
		},
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// open makes the agent's loop over mutual TLS.
func open(o Options, source *pki.Source) (*loop, error) {
	role := pki.Agent
	if o.Outside {
		role = pki.Host
	}
	if id := source.Material().Identity; id.Role != role || id.Name != o.Node {
		return nil, fmt.Errorf("%s: the certificate is %s's, this is %s/%s; issue one with `fairlead pki issue %s %s`",
			o.Files.Cert, id, role, o.Node, role, o.Node)
	}
	if o.DenyList == nil {
		list, err := openDenyList(o.State, o.Log)
		if err != nil {
			return nil, err
		}
		o.DenyList = list
	}
	endpoint := &pki.Endpoint{Source: source, OrNewer: true, Revoked: heeding(o.DenyList), Dialed: &pki.Dialed{}}
	o.DenyList.OnChange(func() { endpoint.EndStale() })
	l, err := openOver(o, func(_ pki.Self, address string) agent.Conn {
		return Over(admin.NewClient(admin.ClientOptions{Endpoint: endpoint, Servers: []string{address}, Dial: o.Dial}))
	})
	if err != nil {
		return nil, err
	}
	endpoint.Self = pki.Naming(l.Membership)
	l.peers = admin.NewPeers(endpoint, o.Dial)
	l.holder, err = enrol.NewHolder(enrol.HolderOptions{
		Files: o.Files, Source: source, Log: o.Log, Metrics: o.Metrics, Enrol: o.Enrol,
		Renew: enrol.AsAgent(o.Node, func() []enrol.Other { return enrol.Members(l.peers, o.Servers) }),
	})
	return l, err
}

// openDenyList reads which members the agent does not deal with.
func openDenyList(dir string, log *slog.Logger) (*agent.DenyList, error) {
	store, err := disk.Open(dir, revokedFile)
	if err != nil {
		return nil, err
	}
	return agent.OpenDenyList(store, log)
}

// heeding asks a list about members, who alone are connected to.
func heeding(list *agent.DenyList) pki.Revoked {
	return func(id pki.Identity, serial string, issued time.Time) string {
		return list.Why(id.Name, serial, issued)
	}
}
