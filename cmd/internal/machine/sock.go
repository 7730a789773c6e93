// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/health"
	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/dataplane/sock/ending"
	"fairlead.io/fairlead/dataplane/sock/origin"
	"fairlead.io/fairlead/dataplane/sock/program"
)

// resolution is resolution at sockets of this machine.
type resolution struct {
	*sock.Sock
	program *program.Program
	limit   *limit // nil: it stays as it is
	events  bool   // are logged
	log     *slog.Logger
}

// Run puts tables right, and logs events, until ctx ends or one of them fails.
func (r resolution) Run(ctx context.Context) error {
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return r.Sock.Run(running) })
	if r.limit != nil {
		group.Go(func() error { return r.limit.run(running) })
	}
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

func (p *probing) openSock(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) (node.Resolving, error) {
	o := program.Options{Cgroup: c.Sock.Cgroup, Pins: c.Sock.Pins, Sizes: sizesOf(c.Sock), Log: log}
	programs, err := program.Open(o)
	if err != nil {
		return nil, err
	}
	options := node.SockOptions(c, o.Sizes.Capacity, log, metrics)
	options.Usable, options.Reconsider = p.checker.Usable, p.checker.Changed()
	cgroups := origin.New(programs.Cgroup(), cmp.Or(c.Sock.PodLogs, origin.Logs))
	options.Events.Origin = cgroups.Of
	options.Ending = sock.Ending{
		TCP: c.Sock.EndTCP, Records: programs.Records, End: ending.Ender{Proc: "/proc", Namespaces: cmp.Or(c.Sock.Namespaces, ending.Namespaces)}.End,
	}
	options.Clients, options.Asked = programs.Clients, programs.Asked
	options.Sparing = sock.Sparing{Cgroups: cgroups.Pods, Hold: programs.Spare}
	s, err := sock.Over(options, programs)
	set := func(limit uint32) error {
		return programs.Set(program.Settings{IPv4: c.Sock.Resolves(false), IPv6: c.Sock.Resolves(true), Events: c.Sock.Events > 0, Limit: limit, ExemptPriority: health.Priority})
	}
	now := uint32(c.Sock.RedirectLimit)
	if err == nil {
		err = set(now)
	}
	if err != nil {
		return nil, errors.Join(err, programs.Close())
	}
	r := resolution{Sock: s, program: programs, events: c.Sock.Events > 0, log: log}
	if c.Reread != nil {
		r.limit = &limit{now: now, reread: c.Reread, set: set, log: log}
	}
	return r, nil
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
