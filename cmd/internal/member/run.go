// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"fairlead.io/fairlead/cmd/internal/health"
	"fairlead.io/fairlead/cmd/internal/passwords"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/k8s/secrets"
)

// errStopped ends the parts of a member when one of them has ended without an error: none should.
var errStopped = errors.New("stopped")

// Run takes part in the group until ctx ends or the member fails, then closes everything. It returns nil when
// ctx ended. A member that leaves does so as for a planned restart: switches keep its paths, unless the group removed it.
func (m *Member) Run(ctx context.Context) error {
	defer m.Close()
	group, running := errgroup.WithContext(ctx)
	part := func(name string, run func(context.Context) error) {
		group.Go(func() error {
			err := run(running)
			if err == nil && running.Err() == nil {
				err = errStopped
			}
			if err != nil && running.Err() == nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	part("raft", m.node.Run)
	part("api", func(ctx context.Context) error { return m.network.ServeAPI(ctx, m.server) })
	part("record", m.comparer.Run)
	part("stale", m.endStale)
	part("report", m.reporter.run)
	part("agents", m.agents.Run)
	part("liveness", m.liveness.Run)
	part("identity", m.belonging.follow)
	part("aside", m.aside.run)
	for _, s := range m.work.sources {
		part("source", s.Run)
	}
	if m.cidrs != nil {
		part("service-cidrs", m.cidrs.Run)
	}
	if m.holder != nil {
		part("certificate", m.holder.Run)
	}
	if m.network.ServeHealth != nil {
		part("health", func(ctx context.Context) error {
			return m.network.ServeHealth(ctx, m.pages())
		})
	}
	if m.network.ServeMetrics != nil {
		part("metrics", func(ctx context.Context) error {
			return m.network.ServeMetrics(ctx, health.Guarded(health.Metrics(m.registry), m.config.Metrics.ServiceAccounts, m.whose))
		})
	}
	if m.judges != nil {
		part("admission", func(ctx context.Context) error { return m.network.Admission.Serve(ctx, m.judges) })
	}
	if m.speaker != nil {
		part("routes", m.routes.follow)
		part("announcer", m.announcer.Run)
		part("passwords", m.passwords.Run)
		part("own passwords", func(ctx context.Context) error { return m.routes.followOwnPasswords(ctx, ownPasswordsEvery) })
	} else {
		silent := noSpeaker{state: m.state, store: m.keptState(), tell: m.reporter.withdrawn, log: m.log}
		part("withdrawals", silent.run)
	}
	err := m.belonging.learn(group.Wait())
	m.leave(context.WithoutCancel(ctx), err)
	return err
}

// ready tells why this member should not be counted on, nil if it may be.
func (m *Member) ready() error {
	if err := unready(m.node.Contact(), m.leaderless, time.Now()); err != nil {
		return err
	}
	if m.network.Endpoint != nil {
		if err := ending(m.network.Endpoint.Source.Material().Certificate.Leaf, time.Now()); err != nil {
			return err
		}
	}
	switch {
	case m.speaker != nil && !m.announcer.Status().Open:
		return fmt.Errorf("not announcing yet: %s", m.announcer.Status().Reason)
	}
	return nil
}

// openBGP starts the speaker, without peers: the announcer gives it those when it may.
func (m *Member) openBGP() (err error) {
	self := fsm.Member{
		Server: fsm.ServerID(m.self.ID), Name: m.self.Name, Raft: m.self.Address, API: m.self.APIAddress,
		Format: fsm.NewestFormat, Version: m.version, Run: m.run,
	}
	m.reporter = newReporter(m.node, m.state, self, m.log)
	if m.config.BGP.ASN == 0 {
		return nil
	}
	if m.speaker, err = m.edges.Speaker(m.config.BGP, m.log); err != nil {
		return err
	}
	m.reporter.links = m.speaker.Links
	store := m.keptState()
	m.passwords = m.openPasswords(store)
	m.routes = newRoutes(m.state, m.self.Name, m.config.BGP, secretsOf(m.config.BGP, m.state, m.work.worlds, m.passwords.Of), m.log)
	m.passwords.News = m.routes.again
	m.routes.holding = newHolding(store, m.reporter.withdrawn)
	m.announcer = bgp.NewAnnouncer(bgp.AnnouncerConfig{
		Source: m.routes, Group: standing{m.node}, Speaker: m.speaker,
		Store:  store,
		Rules:  bgp.Rules{DemoteAfter: m.config.BGP.DemoteAfter, RestartWindow: m.config.BGP.RestartWindow},
		Turn:   func() int { return before(m.state.Read(), m.self.Name) },
		Logger: m.log, Announced: m.reporter.announced, Withdrawn: m.routes.holding.withdrawn,
	})
	missing := passwords.Missing(m.routes.without)
	if err := errors.Join(m.announcer.Register(m.registry), m.registry.Register(m.speaker), m.registry.Register(missing)); err != nil {
		return fmt.Errorf("register metrics of bgp: %w", err)
	}
	return nil
}

// keptState is what this member announced last.
func (m *Member) keptState() keptState {
	return keptState{folder: m.folder.Path(), group: func() string {
		self := m.belonging.self()
		return cmp.Or(self.Group, self.Record.Group)
	}}
}

// openPasswords finds passwords of peers in Secrets, where there is an API server, and in files.
func (m *Member) openPasswords(store bgp.Store) *passwords.Keeper {
	o := passwords.Options{
		Named:  func() []string { return namedElsewhere(m.state, m.work.worlds) },
		Folder: m.config.BGP.PasswordDir, Stored: store.Load, Log: m.log,
	}
	if m.kube != nil {
		core := m.kube.Client.CoreV1()
		o.Secrets = secrets.New(func(namespace string) secrets.Getter { return core.Secrets(namespace) }, time.Now).Read
	}
	return passwords.New(o)
}
