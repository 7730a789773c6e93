// SPDX-License-Identifier: Apache-2.0

//go:build wasip1 || simulated

package main

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/health"
	"fairlead.io/fairlead/dataplane/l2"
	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/sim/guest/fact"
	"fairlead.io/fairlead/sim/guest/kernel"
	"fairlead.io/fairlead/sim/guest/port"
	"fairlead.io/fairlead/sim/guest/segment"
	"fairlead.io/fairlead/sim/guest/start"
)

// agent runs the agent of a node.
func (g *guest) agent(ctx context.Context) error {
	k := kernel.Open(g.dial, g.start.Name)
	var checker *health.Checker // nil until Probing made it, which is before Sock asks for it
	edges := node.Edges{
		Lock: func(string) (io.Closer, error) { return io.NopCloser(nil), nil }, // the world runs a process once at a time
		Boot: func() (string, error) { return k.Boot(ctx) },
		Steer: func(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) (node.Steering, error) {
			s, err := k.Steer(node.SteerOptions(c, log, metrics))
			if err != nil {
				return nil, err
			}
			return watchedSteering{s}, nil
		},
		NAT: func(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) (node.Part, error) {
			o := node.NATOptions(c, log, metrics)
			o.NodeAddresses = []netip.Addr{g.start.Address}
			return k.NAT(o)
		},
		Sock: func(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) (node.Resolving, error) {
			o := node.SockOptions(c, kernel.SocketRoom(g.start.Sockets.Room), log, metrics)
			if g.start.Sockets.Probes {
				o.Usable, o.Reconsider = checker.Usable, checker.Changed()
			}
			s, err := k.Sock(o)
			return resolving{s}, err
		},
		Tunnel: func(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) (node.Tunnelling, error) {
			return node.OpenProxying(c, log, metrics, k.NAT, k.Tunnel, nil) // no other programs run there
		},
		L2: func(_ config.Agent, log *slog.Logger, metrics prometheus.Registerer) (node.Answering, error) {
			clock := bootClock{time.Now().Add(-g.start.Uptime)}
			return l2.New(l2.Options{Edge: segment.Open(g.port, g.start.Name), Clock: clock, Log: log, Metrics: metrics})
		},
		Connect: g.connect,
	}
	if g.start.Sockets.Probes { // elsewhere nobody asks for any
		edges.Probing = func(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) (_ node.Probing, err error) {
			checker, err = health.New(health.Options{
				Node: c.Node, Prober: dialler{g.port}, Random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), Log: log, Metrics: metrics,
			})
			return node.ProbingOver(c, checker), err
		}
	}
	if g.handshakes.on() {
		edges.EndRevoked = g.handshakes.endStale
	}
	p, err := node.Open(g.node(), edges, g.log)
	if err != nil {
		return err
	}
	return p.Run(ctx)
}

// node is the agent's agent.yaml.
func (g *guest) node() config.Agent {
	c := config.Agent{
		Node: g.start.Name, StateDir: start.DataDir, Steer: true, NAT: config.NATNftables, DrainDelay: start.DrainDelay,
		L2: g.start.Segments,
	}
	if g.start.Sockets.Any() {
		c.Sock = &config.Sock{}
	}
	if g.start.Sockets.Tunnels {
		c.Tunnel = &config.Tunnel{}
	}
	for _, name := range g.start.Members {
		c.Members = append(c.Members, name+":"+start.APIPort)
	}
	return c
}

func (g *guest) connect(self pki.Self, revoked pki.Revoked, address string) agent.Conn {
	g.handshakes.revoked = revoked
	of := func() pki.Membership {
		m := self()
		m.OrNewer = true
		return m
	}
	return node.Over(g.client(of, address))
}

// resolving is balancing at sockets. The kernel is closed with steering.
type resolving struct{ *sock.Sock }

// Close implements node.Resolving.
func (resolving) Close() {}

// watchedSteering lets the world see what was carried out.
type watchedSteering struct{ node.Steering }

// Apply implements agent.Applier.
func (w watchedSteering) Apply(ctx context.Context, want desired.State) ([]agent.Failure, error) {
	failed, err := w.Steering.Apply(ctx, want)
	if err == nil {
		rev := want.Revision
		tell(fact.Acted{Epoch: uint64(rev.Epoch), Index: uint64(rev.Index)})
	}
	return failed, err
}

// dialler probes by connections of the simulated world: whoever is there says something at once.
type dialler struct{ port *port.Port }

// Probe implements health.Prober.
func (d dialler) Probe(ctx context.Context, t health.Target) health.Result {
	conn, err := d.port.Dial(ctx, t.At.Addr().String(), strconv.Itoa(int(t.At.Port())), nil)
	if err != nil {
		return health.Result{Void: true, Why: err.Error()}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Reset() })
	defer stop()
	_, err = conn.ReadPiece()
	_ = conn.Reset()
	if err != nil {
		return health.Result{Why: err.Error()}
	}
	return health.Result{OK: true}
}
