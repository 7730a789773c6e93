// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"fmt"
	"os"
	"time"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/informers"
	"fairlead.io/fairlead/k8s/manifests"
	"fairlead.io/fairlead/k8s/manifests/notify"
	"fairlead.io/fairlead/k8s/servicecidrs"
)

// leaderWork is what this member does while it leads, and the sources that it reads all the time: a member that
// takes over has its view already.
type leaderWork struct {
	*leader.Leader
	sources []source
	cluster *informers.Source // of them; nil: no cluster is read
}

// source is a leader.Source that must be run.
type source interface {
	leader.Source
	Run(context.Context) error
}

func (m *Member) newLeaderWork() (*leaderWork, error) {
	w, c := &leaderWork{}, m.config
	options := leader.Config{
		Record: m.state, Group: leaderGroup{m.node}, Agree: m.comparer.Agree, Clock: m.edges.Clock, Log: m.log, Metrics: m.registry,
		Options: leader.Options{
			IgnoreUnclassed: c.OnlyClass, NodePorts: c.NodePorts, ClusterIPs: c.ClusterIPs, BalancingPolicies: c.BalancingPolicies,
			Tunnels:       c.Tunnels.Settings(),
			LegacyPeers:   legacyPeers,
			AsideCordoned: c.Nodes.Cordoned == config.CordonAside, AsideTaints: c.Nodes.Taints,
			ExternalIPs: externalIPs(&c), ClusterCIDRs: c.ClusterCIDRs,
		},
		Timing: m.edges.Tuning.Leader,
	}
	if m.kube != nil {
		m.cidrs = &servicecidrs.Follower{API: m.kube, Clock: wallClock{}, Log: m.log}
		options.ServiceCIDRs = m.cidrs.Prefixes
	}
	m.operates(&options)
	if c.LoadBalancerClass != "" {
		options.Options.Class = c.LoadBalancerClass
	}
	put := func(name string, s source) {
		w.sources = append(w.sources, s)
		options.Sources = append(options.Sources, leader.NamedSource{Name: name, Source: s})
	}
	if m.kube != nil {
		unread, err := m.openUnread()
		if err != nil {
			return nil, err
		}
		s, err := informers.New(informers.Options{
			API: m.kube, Unread: unread, Services: m.shown, Objects: m.stored, ConfigMaps: c.Sources.Kubernetes.ConfigMaps, Review: reviewLegacy, Redirects: c.BalancingPolicies, Show: m.showing, Namespaces: c.ConfigNamespaces(),
			Known: func(k world.Kind) []informers.Known { return known(m.state.Read(), k) },
			Dead:  func(k world.Kind, id world.ID) string { return dead(m.state.Read(), k, id) }, Logger: m.log, Metrics: m.registry,
		})
		if err != nil {
			return nil, err
		}
		w.cluster = s
		put(informers.Name, s)
	}
	add := func(name string, o manifests.Options) {
		o.Clock, o.Logger, o.Poll, o.Review, o.Namespaces = wallClock{}, m.log, manifestPoll, reviewLegacy, c.ConfigNamespaces()
		o.NoCluster = m.kube == nil
		if o.Notify != nil {
			o.Poll = watchedPoll
		}
		put(name, manifests.New(o))
	}
	for _, dir := range c.Sources.Manifests {
		changes, err := notify.Watch(m.open, dir, m.log)
		if err != nil {
			m.log.Warn("manifests are polled only", "err", err)
		}
		add("manifests:"+dir, manifests.Options{FS: os.DirFS(dir), Dir: dir, Notify: changes})
	}
	if f := c.BGP.ConfigFile; f != "" {
		add(legacyKey, manifests.Options{FS: legacyFolder{f}, Dir: f})
	}
	var err error
	w.Leader, err = leader.New(options)
	return w, err
}

// externalIPs is what becomes of an address in spec.externalIPs that no AddressPolicy allows.
func externalIPs(c *config.Controller) leader.ExternalIPs {
	if c.ExternalIPs == config.ExternalIPsWarn {
		return leader.WarnExternalIPs
	}
	return leader.DenyExternalIPs
}

// manifestPoll is how often folders are read through, and watchedPoll how often those are that the kernel tells changes of: on file systems
// of the network it does not tell all of them.
const (
	manifestPoll = 250 * time.Millisecond
	watchedPoll  = 2 * time.Second
)

// worlds are what the sources of this member show now.
func (w *leaderWork) worlds() []world.World {
	out := make([]world.World, 0, len(w.sources))
	for _, s := range w.sources {
		out = append(out, s.World())
	}
	return out
}

// Problems lists what is wrong with what this member's sources show, a line each: what is not used for it, and, apart, what is
// used without a part.
func (m *Member) Problems() (failed, degraded []string) {
	failed, degraded = []string{}, []string{}
	for _, w := range m.work.worlds() {
		for _, p := range w.Problems {
			switch p.Severity {
			case world.Failed:
				failed = append(failed, p.String())
			case world.Degraded:
				degraded = append(degraded, p.String())
			}
		}
	}
	return failed, degraded
}

// Unmet lists, while this member leads, what of the configuration of addresses and switches is not as its objects ask for, a line each.
func (m *Member) Unmet() (out []string) {
	for _, e := range m.work.Status().Waiting {
		switch fsm.Table(e.Kind) {
		case fsm.TablePools, fsm.TablePeers, fsm.TableAdvertisements, fsm.TableL2Advertisements, fsm.TableNodeConfigs:
			out = append(out, fmt.Sprintf("%s %s: %s: %s", e.Kind, e.Name, e.Code, e.Text))
		}
	}
	return out
}

// Shown lists the Services that this member's sources show. complete says that each has read all that it has.
func (m *Member) Shown() (services map[world.ID]bool, complete bool) {
	services, complete = map[world.ID]bool{}, true
	for _, w := range m.work.worlds() {
		complete = complete && w.Complete
		for _, s := range w.Services {
			services[s.ID] = true
		}
	}
	return services, complete
}

// lead runs the leader's work for one term.
func (w *leaderWork) lead(ctx context.Context, term uint64) {
	_ = w.Run(ctx, term) // it ends with the term, without an error
}

// leaderGroup shows the Raft node to the leader's work. Proposals never leave this member: once it no longer leads,
// they are somebody else's to make.
type leaderGroup struct{ node *cluster.Node }

func (g leaderGroup) Propose(ctx context.Context, u leader.Urgency, proposals []fsm.Proposal) ([]fsm.Outcome, error) {
	return g.node.ProposeLocal(ctx, cluster.Urgency(u), proposals...)
}

func (g leaderGroup) VerifyLeader(ctx context.Context) error { return g.node.VerifyLeader(ctx) }

func (g leaderGroup) Servers() []leader.Server {
	var out []leader.Server
	for _, p := range g.node.Peers() {
		out = append(out, leader.Server{ID: fsm.ServerID(p.ID), Answers: p.Answer})
	}
	return out
}

// wallClock is time as the standard library has it, with its monotonic reading.
type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

func (wallClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
