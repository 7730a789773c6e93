// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents"
	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/cluster/leases"
	"fairlead.io/fairlead/cluster/liveness"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/cluster/store/disk"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/k8s/client"
)

// Edges are what a member touches of its machine and its network, beyond files, the standard library's clock and its
// random numbers. Package machine has the real ones; a simulator brings its own, and everything else is what ships.
// Fields without "optional" are required, if the configuration asks for what they open.
type Edges struct {
	// Folder opens the data folder of a member, by its name.
	Folder func(path, name string) (*disk.Folder, error)
	// Floor opens what a server promised since its machine booted, in a folder that a boot loses; optional: nothing is kept outside the
	// data folder.
	Floor func(dir, server string) *store.Floor
	// Narrow takes the rights of others from what is in the data folder already, and gives the paths of what was open to
	// them; optional: there are no others. Errors: not all of it could be changed.
	Narrow func(path string, names ...string) (wider []string, err error)
	// Network has the member listen, and opens its ways to the others.
	Network func(NetworkOptions) (*Network, error)
	// Kubernetes makes the clients of the API server that a configuration names.
	Kubernetes func(config.Kubernetes) (*client.API, error)
	// Speaker starts a BGP speaker that has no peers yet. A member without an AS number has none.
	Speaker func(config.BGP, *slog.Logger) (Speaker, error)
	// Prober makes what asks silent nodes for a sign of life, at a TCP port (0: its default) among others.
	Prober func(port uint16, log *slog.Logger) liveness.Prober
	// Clock is what the leader's work waits by.
	Clock leader.Clock
	// Drivers finds the driver of an outside load balancer, by its name in the record; optional: those of the record, called
	// over HTTP. It replaces nothing but how drivers are called.
	Drivers func(name string) (leader.Driver, bool)
	// Unshown says that bindings are somebody's who needs no objects of LBCF for them: they are not shown in Kubernetes, and
	// nobody looks for an LBCF controller. Optional.
	Unshown bool
	// HTTP carries calls to drivers; optional: connections of this machine. Its errors wrap driver.ErrNotSent where nothing
	// of a request was written.
	HTTP http.RoundTripper
	// Random spreads calls to drivers, and names them. It is used by this member alone.
	Random *rand.Rand
	// Machine stands between the log and the record, to see what is applied; optional.
	Machine func(cluster.Record) cluster.Machine
	// Tuning is beyond what a configuration says; optional.
	Tuning Tuning
}

// Tuning is what tests, simulations and unusual networks change. Zero fields take their default; what the configuration
// says goes before Raft.
type Tuning struct {
	Raft     cluster.Tuning
	Agents   agents.Tuning
	Liveness liveness.Timing
	Leases   leases.Timing
	Leader   leader.Timing
}

// NetworkOptions are what a network has to know of its member.
type NetworkOptions struct {
	Config  config.Controller
	Self    pki.Self // what the member belongs to, for handshakes
	Revoked pki.Revoked
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Network is how a member is reached, and reaches others. Fields without "optional" are required.
type Network struct {
	Raft  cluster.Transport
	Peers *admin.Peers // to the APIs of other members
	// Endpoint is what connections of the API are made with, and Files where its certificate is kept renewed. Optional:
	// without, ServeAPI establishes callers in another way, and this member has no certificate to look after.
	Endpoint *pki.Endpoint
	Files    pki.Files
	// EndStale ends connections whose other ends would be refused by now. It is called now and then, and when something was revoked.
	// Optional: none is ended.
	EndStale func()
	// ServeAPI answers calls until ctx ends, and returns nil then.
	ServeAPI func(ctx context.Context, server *admin.Server) error
	// ServeHealth does so for the pages of package health; optional.
	ServeHealth func(ctx context.Context, pages http.Handler) error
	// ServeMetrics does so where metrics.listen says; optional.
	ServeMetrics func(ctx context.Context, pages http.Handler) error
	// Admission is how the API server asks this member; optional.
	Admission *Admission
	// Close gives everything back, also if nothing was served. It may be repeated.
	Close func()
}

// Admission is how the API server reaches a member, and knows it. Both fields are required.
type Admission struct {
	// Serve answers until ctx ends, and returns nil then.
	Serve func(ctx context.Context, pages http.Handler) error
	// Bundle gives the CAs, in PEM, by which the API server knows members; empty where somebody else tells it.
	Bundle func() ([]byte, error)
}

// Speaker announces routes, and tells of its sessions. Its methods may be called from several goroutines.
type Speaker interface {
	bgp.Speaker
	prometheus.Collector
	// Sessions gives the state of each session as BGP names it, by the peer's name; where it is down, a colon, the reason and
	// the remedy follow, as far as they are known.
	Sessions(ctx context.Context) (map[string]string, error)
	// Detach leaves all sessions such that switches keep the paths for a while. The speaker is of no use then.
	Detach(ctx context.Context) error
	// Drain leaves all sessions for good: switches drop the paths at once. The speaker is of no use then.
	Drain(ctx context.Context) error
}
