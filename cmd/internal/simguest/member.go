// SPDX-License-Identifier: Apache-2.0

//go:build wasip1 || simulated

package main

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/cluster/liveness"
	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/cluster/store/disk"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/member"
	"fairlead.io/fairlead/k8s/client"
	"fairlead.io/fairlead/sim/guest/driver"
	"fairlead.io/fairlead/sim/guest/fact"
	"fairlead.io/fairlead/sim/guest/journal"
	"fairlead.io/fairlead/sim/guest/port"
	"fairlead.io/fairlead/sim/guest/start"
)

// member runs a member of the controller group.
func (g *guest) member(ctx context.Context) error {
	clock := bootClock{time.Now()}
	m, err := member.Open(g.controller(), g.start.Release, member.Edges{
		Folder:     openFolder,
		Floor:      openFloor,
		Network:    g.openNetwork,
		Kubernetes: g.openKubernetes,
		Speaker:    g.openSpeaker,
		Prober:     func(uint16, *slog.Logger) liveness.Prober { return prober{g.port} },
		Clock:      clock,
		Drivers:    g.drivers(clock),
		Unshown:    !g.start.Shown,
		Random:     rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		Machine:    g.watchRecord,
		Tuning: member.Tuning{Leader: leader.Timing{
			RetryFloor: g.start.Tuning.RetryFloor, RetryCap: g.start.Tuning.RetryCap, Drift: g.start.Tuning.Drift,
		}},
	}, g.log)
	if err != nil {
		return err
	}
	m.WhileLeader(watchLeading)
	go func() { _ = watchContact(ctx, m) }() // it ends with the process
	return m.Run(ctx)
}

// recover makes a group of one of the member's folder.
func (g *guest) recover(context.Context) error {
	done, err := member.Recover(g.controller(), member.Edges{Folder: openFolder, Floor: openFloor}, nil, g.log)
	if err == nil {
		g.log.Info("recovered", "server", done.ServerID, "index", done.Index)
	}
	return err
}

// demoteAfter is the default of members.
const demoteAfter = 3 * time.Second

// controller is the member's controller.yaml.
func (g *guest) controller() config.Controller {
	c := config.Controller{
		Name: g.start.Name, DataDir: start.DataDir, BootstrapToken: g.start.Token,
		Advertise: config.Advertise{API: g.start.Name + ":" + start.APIPort, Raft: g.start.Name + ":" + start.RaftPort},
		BGP:       config.BGP{ASN: g.start.ASN, RouterID: g.start.Address, DemoteAfter: demoteAfter},
		Raft: config.Raft{
			SnapshotThreshold: g.start.Raft.SnapshotThreshold, SnapshotInterval: g.start.Raft.SnapshotInterval,
			TrailingLogs: g.start.Raft.TrailingLogs,
		},
		// Users of a world type what they like, and what they had is what checkers ask for: policies of addresses are not what worlds are about.
		ExternalIPs:       config.ExternalIPsWarn,
		BalancingPolicies: g.start.Sockets.Policies, ClusterIPs: g.start.Sockets.ClusterIPs, NodePorts: g.start.Sockets.NodePorts,
	}
	if g.start.Sockets.Tunnels {
		c.Tunnels = &config.Tunnels{Range4: start.Tunnels4, Range6: start.Tunnels6, Port: 7446, VNI: 7446}
	}
	for _, name := range g.start.Members {
		c.Members = append(c.Members, config.Member{Name: name, API: name + ":" + start.APIPort, Raft: name + ":" + start.RaftPort})
	}
	if g.start.Kubernetes {
		c.Sources.Kubernetes = &config.Kubernetes{InCluster: true}
		// What has no namespace counts from a folder, and who asks what a folder's objects would do has them in this one (sim/whatif).
		c.Sources.ConfigNamespaces = append(c.ConfigNamespaces(), "default")
	}
	return c
}

// drivers finds drivers by name, by whose clock deadlines are. Where there are none it finds none: a member that is given
// nothing calls the drivers of the record by itself, and looks for them in ways that no world has.
func (g *guest) drivers(clock leader.Clock) func(string) (leader.Driver, bool) {
	known := map[string]*driver.Driver{}
	for _, d := range g.start.Drivers {
		known[d.Known] = driver.New(driver.Options{
			Name: d.Name, URL: "http://" + start.Driver(d.Name) + ":" + start.DriverPort,
			Terms: leader.Terms{Timeout: g.start.Tuning.Timeout, Settle: g.start.Tuning.Settle},
			HTTP:  port.RoundTripper{Port: g.port}, Now: clock.Now, Tell: func(f fact.Drive) { tell(f) },
		})
	}
	return func(name string) (leader.Driver, bool) {
		d, ok := known[name]
		return d, ok
	}
}

// openFolder opens the data folder with a log that needs no memory maps. The world runs a process once at a time.
func openFolder(path, name string) (*disk.Folder, error) {
	f, err := disk.OpenWith(path, name, disk.Options{
		Lock: func(f *os.File) (io.Closer, error) { return f, nil }, MakeLog: journal.Make, OpenLog: journal.Open,
	})
	if err == nil {
		tellHolds(f.Stores())
	}
	return f, err
}

// openFloor opens what is kept in the memory of the machine, which a boot empties.
func openFloor(dir, server string) *store.Floor { return store.OpenFloor(dir, server, "this boot") }

func (g *guest) openKubernetes(config.Kubernetes) (*client.API, error) {
	return client.New(&rest.Config{
		Host: "http://" + start.Kubernetes + ":" + start.KubernetesPort, Transport: port.RoundTripper{Port: g.port},
	})
}

// bootClock goes on from the start of the process: a world's machines do not sleep.
type bootClock struct{ began time.Time }

func (c bootClock) Now() time.Duration { return time.Since(c.began) }

func (bootClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

func (bootClock) Wall() time.Time { return time.Now() }

// prober asks a machine at a port where nobody listens: a refusal is a sign of life.
type prober struct{ port *port.Port }

// Answers implements liveness.Prober.
func (p prober) Answers(ctx context.Context, addresses []netip.Addr) bool {
	answers := make(chan bool, len(addresses))
	for _, a := range addresses {
		go func() { answers <- p.asks(ctx, a) }()
	}
	for range addresses {
		if <-answers {
			return true
		}
	}
	return false
}

func (p prober) asks(ctx context.Context, a netip.Addr) bool {
	c, err := p.port.Dial(ctx, a.String(), start.ProbePort, nil)
	if err != nil {
		return false
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Reset() })
	defer stop()
	_, err = c.ReadPiece()
	_ = c.Reset()
	return ctx.Err() == nil && err != nil
}
