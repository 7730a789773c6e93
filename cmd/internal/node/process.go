// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/health"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/agent/disk"
	"fairlead.io/fairlead/dataplane/agent/drain"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/healthcheck"
	"fairlead.io/fairlead/dataplane/steer"
)

// Process is `fairlead agent`: everything that runs on one node, open but not running until Run.
type Process struct {
	config   config.Agent
	edges    Edges
	log      *slog.Logger
	registry *prometheus.Registry
	lock     io.Closer    // of the state folder
	listener net.Listener // of health, nil for none
	limits   health.Counts
	kernel   *kernel
	drain    *drain.Drain // around the kernel
	applier  agent.Applier
	checks   *healthcheck.Checks // nil: none is answered
	l2       Answering           // nil: nothing is answered for
	speaking *speaking           // nil: the node announces nothing itself
	denied   *agent.DenyList     // nil: nobody tells it of revocations

	mu   sync.Mutex
	loop *loop // nil until the agent has a certificate
	lack error // why it has none, after the first attempt
}

// Open builds the agent of one node bottom-up and starts listening. After an error nothing is left open.
func Open(c config.Agent, e Edges, log *slog.Logger) (*Process, error) {
	p := &Process{config: c, edges: e, log: log.With("node", c.Node), registry: prometheus.NewRegistry()}
	p.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, step := range []func() error{p.takeLock, p.listen, p.openKernel, p.openChecks, p.openL2, p.openSpeaker, p.openAgent} {
		if err := step(); err != nil {
			p.Close()
			return nil, err
		}
	}
	tellCosts(c, p.log)
	return p, nil
}

func (p *Process) takeLock() (err error) {
	if p.lock, err = p.edges.Lock(p.config.StateDir); err != nil || p.edges.Narrow == nil {
		return err
	}
	names := append(made(p.config), tlsFolder, steer.MemoryFile)
	wider, err := p.edges.Narrow(p.config.StateDir, names...)
	if len(wider) > 0 {
		p.log.Warn("state folder was open to other users of this machine, and is not any more", "path", p.config.StateDir, "files", len(wider), "first", wider[0])
	}
	if err != nil {
		p.log.Error("state folder is open to other users of this machine", "path", p.config.StateDir, "err", err)
	}
	return nil
}

func (p *Process) listen() (err error) {
	if p.limits, err = health.NewCounts(p.registry); err != nil {
		return err
	}
	if p.config.Health == "" {
		return nil
	}
	p.listener, err = p.edges.Listen("health", p.config.Health)
	return err
}

func (p *Process) openKernel() (err error) {
	if p.kernel, err = openKernel(p.config, p.edges, p.log, p.registry); err != nil {
		return err
	}
	store, err := disk.Open(p.config.StateDir, drainingFile)
	if err != nil {
		return err
	}
	p.drain, err = drain.New(drain.Options{
		Applier: p.kernel, Delay: p.config.DrainDelay, Clock: clock{}, Log: p.log, Found: p.kernel.found, Store: store,
		Metrics: p.registry,
	})
	p.applier = p.drain
	return err
}

func (p *Process) openChecks() (err error) {
	if !p.config.HealthCheckNodePorts {
		return nil
	}
	if p.checks, err = openChecks(p.config, p.edges, p.alive, p.log, p.registry); err == nil {
		p.applier = checked{p.drain, p.checks}
	}
	return err
}

func (p *Process) openSpeaker() (err error) {
	if p.config.BGP == nil {
		return nil
	}
	p.speaking, err = openSpeaking(p.config, p.edges, p.silence, p.log, p.registry)
	return err
}

// silence is for how long no member can be said to lead the node; bgp.Never before one did.
func (p *Process) silence() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loop == nil {
		return bgp.Never
	}
	if silence, ever := p.loop.Silence(); ever {
		return silence
	}
	return bgp.Never
}

func (p *Process) openL2() (err error) {
	if p.config.L2 {
		p.l2, err = p.edges.L2(p.config, p.log, p.registry)
	}
	return err
}

// clock is time as the standard library has it, with its monotonic reading.
type clock struct{}

func (clock) Now() time.Time { return time.Now() }

func (clock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// openAgent makes the loop, unless there is no certificate yet: then Run gets one.
func (p *Process) openAgent() error {
	if p.edges.Connect != nil && p.edges.EndRevoked == nil {
		return p.openLoop()
	}
	var err error
	if p.denied, err = openDenyList(p.config.StateDir, p.log); err != nil {
		return err
	}
	if p.edges.Connect != nil {
		p.denied.OnChange(p.edges.EndRevoked)
		return p.openLoop()
	}
	if _, err := os.Stat(p.config.TLS.Cert); p.config.Enrol == nil || !errors.Is(err, fs.ErrNotExist) {
		return p.openLoop()
	}
	// What is missing now is missing for good.
	if _, err := pki.ReadRoots(p.config.Enrol.CA); err != nil {
		return fmt.Errorf("enrol.ca: %w", err)
	}
	if _, err := os.Stat(p.config.Enrol.TokenFile); err != nil {
		return fmt.Errorf("enrol.tokenFile: %w; mount the ServiceAccount token there, or write what `fairlead pki enrol` printed", err)
	}
	return nil
}

func (p *Process) openLoop() error {
	boot, err := p.edges.Boot()
	if err != nil {
		return err
	}
	tuning := p.edges.Tuning
	tuning.Between = p.config.MinSyncPeriod
	o := Options{
		Node: p.config.Node, Boot: boot, Servers: p.config.Members, State: p.config.StateDir,
		Applier: p.applier, AddressesOnly: !p.config.NeedsServices(),
		AllServices: p.config.NeedsAllServices(), Tunnels: p.config.Tunnel != nil, Redirects: p.config.Sock != nil, Log: p.log, Metrics: p.registry, Tuning: tuning,
	}
	if p.config.OutOfCluster {
		o.Outside = true
		if o.Underlay = p.config.Addresses; o.Underlay == nil && p.edges.Underlay != nil {
			o.Underlay = p.edges.Underlay(p.config.Members)
		}
	}
	if p.edges.Dial != nil {
		o.Dial = p.edges.Dial(p.config)
	}
	if p.l2 != nil {
		o.Leases = p.l2
	}
	if p.edges.Flows != nil {
		o.Flows = p.edges.Flows(p.config)
	}
	if p.speaking != nil {
		o.Speaker = p.speaking
	} else {
		o.Retire = retirement(p.config, p.log)
	}
	o.Probes, o.DenyList = p.kernel.probes, p.denied
	l, err := p.newLoop(o)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loop = l
	return nil
}

func (p *Process) newLoop(o Options) (_ *loop, err error) {
	if p.edges.Connect != nil {
		var revoked pki.Revoked
		if p.denied != nil {
			revoked = heeding(p.denied)
		}
		return openOver(o, func(self pki.Self, address string) agent.Conn { return p.edges.Connect(self, revoked, address) })
	}
	o.Enrol = p.enrol()
	if o.Files, err = pki.Files(p.config.TLS).Renewable(filepath.Join(p.config.StateDir, tlsFolder)); err != nil {
		return nil, err
	}
	source, err := pki.OpenTrusted(o.Files, p.log)
	if err != nil {
		return nil, err
	}
	p.registry.MustRegister(pki.ExpiryGauge(source))
	return open(o, source)
}

// enrol is how to get a first certificate, nil for not at all.
func (p *Process) enrol() enrol.Ask {
	e := p.config.Enrol
	if e == nil {
		return nil
	}
	return enrol.AsStranger(p.config.Node, p.config.OutOfCluster, e.CA, e.TokenFile, p.config.Members, heeding(p.denied))
}

// runAgent gets a certificate if there is none, and works with it.
func (p *Process) runAgent(ctx context.Context) error {
	if p.loop == nil {
		if err := p.getCertificate(ctx); err != nil {
			return err
		}
		if err := p.openLoop(); err != nil {
			return err
		}
	}
	return p.loop.run(ctx)
}

const enrolRetryMin, enrolRetryMax = time.Second, time.Minute

// getCertificate enrols, however often it takes.
func (p *Process) getCertificate(ctx context.Context) error {
	files := pki.Files(p.config.TLS)
	for pause := enrolRetryMin; ; pause = min(2*pause, enrolRetryMax) {
		err := enrol.Get(ctx, files, p.enrol())
		if err == nil {
			p.log.Info("enrolled", "cert", files.Cert)
			return nil
		}
		if ctx.Err() == nil {
			p.log.Error("not enrolled", "err", err)
		}
		p.mu.Lock()
		p.lack = err
		p.mu.Unlock()
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Run works until ctx ends or a part fails, then closes everything; the kernel stays as it is. It returns nil when ctx
// ended.
func (p *Process) Run(ctx context.Context) error {
	defer p.Close()
	group, running := errgroup.WithContext(ctx)
	part := func(name string, run func(context.Context) error) {
		group.Go(func() error {
			err := run(running)
			if running.Err() != nil {
				return nil
			}
			if err == nil {
				err = errStopped
			}
			return fmt.Errorf("%s: %w", name, err)
		})
	}
	part("agent", p.runAgent)
	part("drain", p.drain.Run)
	part("kernel", p.kernel.run)
	if p.config.Tunnel == nil && p.edges.CleanTunnel != nil {
		part("tunnel", p.takeTunnelBack)
	}
	if p.checks != nil {
		part("health checks", p.checks.Run)
	}
	if p.l2 != nil {
		part("l2", p.l2.Run)
	}
	if p.speaking != nil {
		part("bgp", p.speaking.run)
	}
	if p.listener != nil {
		part("health", func(ctx context.Context) error {
			return health.Serve(ctx, p.listener, health.Handler(p.registry, health.Checks{Alive: p.alive, Healthy: p.healthy, Ready: p.ready, About: p.synced}), p.limits)
		})
	}
	return group.Wait()
}

// errStopped ends the agent when one of its parts ended without an error: none should.
var errStopped = errors.New("stopped")

// Status tells how the agent stands; the zero Status while it has no certificate.
func (p *Process) Status() agent.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loop == nil {
		return agent.Status{}
	}
	return p.loop.Status()
}

// Close gives back everything that Open took. Run does it itself.
func (p *Process) Close() {
	var errs []error
	if p.listener != nil {
		if err := p.listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if p.speaking != nil {
		errs = append(errs, p.speaking.close())
	}
	if p.kernel != nil {
		p.kernel.close()
	}
	if p.lock != nil {
		errs = append(errs, p.lock.Close())
		p.lock = nil
	}
	if err := errors.Join(errs...); err != nil {
		p.log.Error("agent not closed in order", "err", err)
	}
}
