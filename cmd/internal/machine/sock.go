// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/health"
	"fairlead.io/fairlead/dataplane/health/prober"
	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/dataplane/sock/ending"
	"fairlead.io/fairlead/dataplane/sock/origin"
	"fairlead.io/fairlead/dataplane/sock/program"
)

// resolution is resolution at sockets of this machine.
type resolution struct {
	*sock.Sock
	program *program.Program
	health  *health.Checker
	events  bool // are logged
	log     *slog.Logger
}

// Apply has listed addresses probed as policies ask, and brings the tables to a state.
func (r resolution) Apply(ctx context.Context, want desired.State) ([]agent.Failure, error) {
	r.health.Take(want.Redirects())
	return r.Sock.Apply(ctx, want)
}

// Report implements agent.Probes.
func (r resolution) Report(told uint64) ([]*fairleadv1.ProbeReport, uint64) {
	return r.health.Report(told)
}

// Run puts tables right, probes, and logs events, until ctx ends or one of them fails.
func (r resolution) Run(ctx context.Context) error {
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return r.Sock.Run(running) })
	group.Go(func() error { return r.health.Run(running) })
	if r.events {
		group.Go(func() error { return r.program.Events(running, r.Tell) })
	}
	return group.Wait()
}

func (r resolution) Close() {
	if err := r.program.Close(); err != nil {
		r.log.Warn("tables of resolution not closed", "err", err)
	}
}

func openSock(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) (node.Resolving, error) {
	o := program.Options{Cgroup: c.Sock.Cgroup, Pins: c.Sock.Pins, Sizes: sizesOf(c.Sock), Log: log}
	p, err := program.Open(o)
	if err != nil {
		return nil, err
	}
	probes, err := health.New(health.Options{
		Node: c.Node, Outside: c.OutOfCluster, Prober: prober.Prober{Namespace: c.Namespace, Exempt: true}, Random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), Log: log, Metrics: metrics,
		Show: func(states []health.State) {
			if err := show(c.StateDir, states); err != nil {
				log.Warn("what is thought of listed addresses is not written down", "err", err)
			}
		},
	})
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	options := node.SockOptions(c, o.Sizes.Capacity, log, metrics)
	options.Usable, options.Reconsider = probes.Usable, probes.Changed()
	cgroups := origin.New(p.Cgroup(), cmp.Or(c.Sock.PodLogs, origin.Logs))
	options.Events.Origin = cgroups.Of
	options.Ending = sock.Ending{
		TCP: c.Sock.EndTCP, Records: p.Records, End: ending.Ender{Proc: "/proc", Namespaces: cmp.Or(c.Sock.Namespaces, ending.Namespaces)}.End,
	}
	options.Sparing = sock.Sparing{Cgroups: cgroups.Pods, Hold: p.Spare}
	s, err := sock.Over(options, p)
	if err == nil {
		err = p.Set(program.Settings{IPv4: c.Sock.Resolves(false), IPv6: c.Sock.Resolves(true), Events: c.Sock.Events > 0, Limit: uint32(c.Sock.RedirectLimit), ExemptPriority: health.Priority})
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return resolution{s, p, probes, c.Sock.Events > 0, log}, nil
}

// show writes down what is thought of listed addresses, whole or not at all.
func show(folder string, states []health.State) error {
	if states == nil {
		states = []health.State{}
	}
	data, err := json.Marshal(states)
	if err != nil {
		return err
	}
	path := filepath.Join(folder, node.ProbesFile)
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// sizesOf are the sizes that a configuration asks for, over the default ones.
func sizesOf(c *config.Sock) program.Sizes {
	out := program.DefaultSizes
	out.Places, out.Slots = cmp.Or(c.Places, out.Places), cmp.Or(c.Slots, out.Slots)
	out.Records, out.Affinity, out.Flows = cmp.Or(c.Records, out.Records), cmp.Or(c.Affinity, out.Affinity), cmp.Or(c.Flows, out.Flows)
	return out
}

// cleanSock removes what agents pinned, where this configuration has it and where it is by default.
func cleanSock(c config.Agent) error {
	err := program.Remove(program.DefaultPins)
	if c.Sock != nil && c.Sock.Pins != "" {
		err = errors.Join(err, program.Remove(c.Sock.Pins))
	}
	return err
}
