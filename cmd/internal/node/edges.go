// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/bgp"
)

// Edges are what an agent touches of its machine and its network, beyond files, the standard library's clock and its
// random numbers. Package machine has the real ones; a simulator brings its own, and everything else is what ships.
// Fields without "optional" are required, if the configuration asks for what they open.
type Edges struct {
	// Lock keeps other processes out of a folder until it is closed. Errors: disk.ErrLocked.
	Lock func(dir string) (io.Closer, error)
	// Narrow takes the rights of others from entries of a folder, and from the folder if it holds nothing else, and gives the
	// paths of what was open to them; optional: there are no others. Errors: not all of it could be changed.
	Narrow func(dir string, names ...string) (wider []string, err error)
	// Boot tells what the machine drew at its last boot.
	Boot func() (string, error)
	// Listen opens the socket that a field of the configuration names, for the pages of package health.
	Listen func(field, address string) (net.Listener, error)
	// Steer and NAT open the parts of the kernel, where the configuration asks for them. Nothing is changed before the
	// first Apply.
	Steer func(config.Agent, *slog.Logger, prometheus.Registerer) (Steering, error)
	NAT   func(config.Agent, *slog.Logger, prometheus.Registerer) (Part, error)
	// Sock opens the programs at sockets, where the configuration asks for them. Optional: without, that is refused.
	Sock func(config.Agent, *slog.Logger, prometheus.Registerer) (Resolving, error)
	// Tunnel opens tunnels to other hosts and proxy ports, where the configuration asks for them. Optional: without, that is refused.
	Tunnel func(config.Agent, *slog.Logger, prometheus.Registerer) (Tunnelling, error)
	// Underlay tells from which addresses of the machine members are reached, where the configuration does not say where other machines
	// reach it. Optional.
	Underlay func(members []string) []netip.Addr
	// Probing makes what probes addresses, where the node has a use for what it finds out; before Sock is called, which may go by it. Optional:
	// without, nothing is probed.
	Probing func(config.Agent, *slog.Logger, prometheus.Registerer) (Probing, error)
	// L2 opens what answers for addresses on the node's segments, where the configuration asks for it.
	L2 func(config.Agent, *slog.Logger, prometheus.Registerer) (Answering, error)
	// ListenEverywhere opens a TCP port on all addresses of the node, for health checks, where the configuration asks for them.
	// Optional: without, that is refused.
	ListenEverywhere func(c config.Agent, port uint16) (net.Listener, error)
	// Flows makes what counts the connections that come in by the node. Optional: without, the agent says that it counts none.
	Flows func(config.Agent) agent.Flows
	// Speaker starts the node's own BGP speaker, where the configuration asks for it. Optional: without, it is refused.
	Speaker func(config.Agent, *slog.Logger) (Announcing, error)
	// Link makes what finds the router behind an interface, for that speaker; changed is called when it finds another one. Optional:
	// without, peers behind interfaces are left out.
	Link func(name string, changed func()) Link
	// CleanSteer, CleanNAT and CleanSock remove what those made; only for Cleanup.
	CleanSteer func(context.Context, config.Agent, *slog.Logger) error
	CleanNAT   func(context.Context, config.Agent) error
	CleanSock  func(config.Agent) error
	// CleanTunnel removes what Tunnel made, for Cleanup, and where the configuration has no tunnel any more. Optional.
	CleanTunnel func(context.Context, config.Agent) error
	// Dial makes what opens connections to members, from which that mutual TLS is made. Optional: plain ones.
	Dial func(config.Agent) pki.DialFunc
	// Connect makes a way to the member whose API is at an address. Optional: without, it is mutual TLS with the
	// certificate that the configuration names. Self is what the agent belongs to, as handshakes name it. Revoked tells which members
	// are not to be dealt with; nil without EndRevoked.
	Connect func(self pki.Self, revoked pki.Revoked, address string) agent.Conn
	// EndRevoked ends what Connect opened to members that are revoked by now. Optional: the agent is told of revocations by nobody then.
	EndRevoked func()
	// Tuning is beyond what a configuration says; optional.
	Tuning agent.Tuning
}

// Part is what brings one aspect of the kernel to a state, and keeps it there while Run does.
type Part interface {
	agent.Applier
	Run(ctx context.Context) error
}

// Probing is the part that finds out which addresses answer, as policies and Services ask for it.
type Probing interface {
	Part
	agent.Probes
}

// Resolving is the part that has sockets of this host get to endpoints at once.
type Resolving interface {
	Part
	// Close ends the use of the kernel; what is there stays.
	Close()
}

// Tunnelling is the part that joins this host with others by tunnels, and has its proxy ports lead to pods.
type Tunnelling interface {
	Part
	// Prepare adds the ways to other hosts that a State has in addition, and takes nothing away. Apply comes later, also where it fails, and tells.
	Prepare(ctx context.Context, want desired.State)
	// Close ends the use of the kernel; what is there stays.
	Close()
}

// Announcing announces routes, and tells of its sessions. Its methods may be called from several goroutines.
type Announcing interface {
	bgp.Speaker
	prometheus.Collector
	// Sessions gives the state of each session as BGP names it, by the peer's name; where it is down, a colon, the reason and
	// the remedy follow, as far as they are known.
	Sessions(ctx context.Context) (map[string]string, error)
	// Detach leaves all sessions such that switches keep the paths for a while. The speaker is of no use then.
	Detach(ctx context.Context) error
}

// Answering answers for the addresses that the node holds leases of, while Run runs.
type Answering interface {
	agent.Leases
	Run(ctx context.Context) error
}

// Steering is the part that has packets to service addresses come in, and answers leave by the switch.
type Steering interface {
	Part
	// Found lists the addresses that an earlier agent left.
	Found(ctx context.Context) ([]desired.Address, error)
	// Close ends the use of the kernel; what is there stays.
	Close()
}
