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
	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/dataplane/sock/ending"
	"fairlead.io/fairlead/dataplane/sock/origin"
	"fairlead.io/fairlead/dataplane/sock/program"
)

// resolution is resolution at sockets of this machine.
type resolution struct {
	*sock.Sock
	program *program.Program
	events  bool // are logged
	log     *slog.Logger
}

// Run puts tables right, and logs events, until ctx ends or either fails.
func (r resolution) Run(ctx context.Context) error {
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return r.Sock.Run(running) })
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
	options := node.SockOptions(c, o.Sizes.Capacity, log, metrics)
	cgroups := origin.New(p.Cgroup(), cmp.Or(c.Sock.PodLogs, origin.Logs))
	options.Events.Origin = cgroups.Of
	options.Ending = sock.Ending{
		TCP: c.Sock.EndTCP, Records: p.Records, End: ending.Ender{Proc: "/proc", Namespaces: cmp.Or(c.Sock.Namespaces, ending.Namespaces)}.End,
	}
	options.Sparing = sock.Sparing{Cgroups: cgroups.Pods, Hold: p.Spare}
	s, err := sock.Over(options, p)
	if err == nil {
		err = p.Set(program.Settings{IPv4: true, IPv6: true, Events: c.Sock.Events > 0, Limit: uint32(c.Sock.RedirectLimit)})
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return resolution{s, p, c.Sock.Events > 0, log}, nil
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
