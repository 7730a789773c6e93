// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/agent"
)

// Options is what a NAT is made of. Only Node is required.
type Options struct {
	Node string // this node's name in Kubernetes
	// ClusterCIDRs are where clients inside the cluster come from: the pods' ranges, and the nodes' if their own
	// programs shall count as inside when they dial by way of another node.
	ClusterCIDRs []netip.Prefix
	// NodeAddresses are this node's own, which source ranges may name. Default: those of its interfaces now.
	NodeAddresses []netip.Addr
	MasqueradeAll bool // rewrite the source of all translated connections
	WithoutSCTP   bool // the kernel cannot translate SCTP; New finds out by itself
	// Consistent are the Services whose policy is Cluster that choose the endpoint by a hash of the flow, or with affinity
	// of the client, so that every node of the same list chooses alike: namespace/name, with patterns as path.Match has.
	Consistent []string
	// NodePortAddresses are ranges of this node's own addresses where the node ports of the Services are served, as
	// kube-proxy does otherwise: whatever addresses of them the node has when a packet comes, but for loopback and
	// link-local ones. None: nowhere.
	NodePortAddresses []netip.Prefix
	Audit             time.Duration // between two full comparisons with the kernel. Default 5 minutes
	// Mark is a bit of packets' marks that nobody else uses. Default DefaultMark
	Mark uint32
	// NodePortMark is another such bit, for node ports where they are served. Default DefaultNodePortMark
	NodePortMark uint32
	// Table is the name of the table, of family inet; empty: TableName. Two NATs of one namespace need two, and marks of their own.
	Table string
	// LeaveOthers has packets to a port that no Service has go on; otherwise they are refused.
	LeaveOthers bool
	// NetNS is a file descriptor of the network namespace to work in, open as long as the NAT is used; 0 is the
	// process's own.
	NetNS   int
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// NAT keeps the table `inet fairlead-nat`, or another one, of this network namespace as a State wants it. It is an agent.Applier.
type NAT struct {
	log     *slog.Logger
	metrics *metrics
	audit   time.Duration
	table   string // its name

	mu      sync.Mutex
	edge    Edge
	planner *Planner
	sets    map[string]Set // that planner says there are
	told    bool           // a State was ever to be carried out
	known   bool           // the table holds what planner says, as far as we know
	flows   Flows          // still to be looked through
	ahead   string         // what Edge.Ahead told last

	// Of balance, which Run alone calls:
	balanced  bool // something was counted last time
	uncounted bool // it failed
}

// Over makes a NAT over another kernel than this host's, as simulations have. It does not touch it.
//
// Errors: no node, marks that share bits, metrics that are registered already.
func Over(o Options, e Edge) (*NAT, error) {
	if o.Node == "" {
		return nil, fmt.Errorf("nat: no node name")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	m, err := newMetrics(o.Metrics, e, o.Log)
	if err != nil {
		return nil, err
	}
	at := func(a netip.Addr) bool { return servesNodePortsAt(a.Unmap(), o.NodePortAddresses) }
	if len(o.NodePortAddresses) > 0 && !slices.ContainsFunc(o.NodeAddresses, at) {
		o.Log.Warn("node ports are served at none of the addresses that this node has now", "ranges", o.NodePortAddresses)
	}
	if o.Audit <= 0 {
		o.Audit = 5 * time.Minute
	}
	config := Config{
		Node: o.Node, ClusterCIDRs: o.ClusterCIDRs, NodeAddresses: o.NodeAddresses, MasqueradeAll: o.MasqueradeAll,
		WithoutSCTP: o.WithoutSCTP, Consistent: o.Consistent, NodePortAddresses: o.NodePortAddresses, Mark: o.Mark,
		NodePortMark: o.NodePortMark, LeaveOthers: o.LeaveOthers,
	}
	if len(o.NodePortAddresses) > 0 && config.mark()&config.nodePortMark() != 0 {
		return nil, fmt.Errorf("nat: the marks %#x, and %#x of node ports, share bits; give each its own", config.mark(), config.nodePortMark())
	}
	return &NAT{
		log: o.Log, metrics: m, audit: o.Audit, table: cmp.Or(o.Table, TableName), edge: e, planner: NewPlanner(config), sets: config.layout().Sets, flows: Flows{},
	}, nil
}

// Apply brings the table to what is wanted, in one transaction, and then ends UDP flows to endpoints that left. The
// first time, and after something went wrong, it reads the table and changes what differs. It returns the addresses
// of which something cannot be translated.
//
// Errors: what the kernel refuses; the table is then as it was before.
func (n *NAT) Apply(ctx context.Context, want desired.State) ([]agent.Failure, error) {
	return n.follow(ctx, want.Zone, telling(want.Told()))
}

// Serve is Apply for Services that no State has.
func (n *NAT) Serve(ctx context.Context, services []*desired.Service) ([]agent.Failure, error) {
	return n.apply(ctx, "", services)
}

func (n *NAT) apply(ctx context.Context, zone string, want []*desired.Service) ([]agent.Failure, error) {
	return n.follow(ctx, zone, holding(want))
}

func (n *NAT) follow(ctx context.Context, zone string, want iter.Seq[desired.Source]) ([]agent.Failure, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	start := time.Now()
	n.told = true
	n.planner.Move(zone)
	d := newDelta()
	d.blind = !n.known // all is compared then
	change, flows := n.planner.step(want, d)
	for _, s := range change.AddSets {
		n.sets[s.Name] = s
	}
	if len(n.flows) > 0 { // from an earlier failure: what may go on may be more by now
		maps.Copy(n.flows, n.planner.Flows())
	}
	maps.Copy(n.flows, flows)
	err := n.carryOut(ctx, change)
	for _, name := range change.DropSets {
		delete(n.sets, name)
	}
	if err != nil {
		n.metrics.failures.Inc()
		return nil, err
	}
	if err := n.endFlows(); err != nil {
		n.metrics.failures.Inc()
		return nil, err
	}
	n.metrics.seconds.Observe(time.Since(start).Seconds())
	n.metrics.shape.is(n.planner.sizes())
	var failed []agent.Failure
	for _, p := range n.planner.Problems() {
		failed = append(failed, agent.Failure{Prefix: netip.PrefixFrom(p.Address, p.Address.BitLen()), Why: p.Why})
	}
	return failed, nil
}

// carryOut commits a change of a table that is known, and else compares.
func (n *NAT) carryOut(ctx context.Context, change Change) error {
	if n.known {
		if change.Empty() {
			return nil
		}
		err := n.edge.Commit(ctx, change, n.sets)
		if err == nil {
			n.metrics.changed(change)
			return nil
		}
		n.known = false
		n.log.Warn("change refused, table is compared", "error", err)
	}
	_, err := n.compare(ctx)
	return err
}

// compare reads the table and changes what differs from the plan; it tells what that was. A table that cannot be
// changed into ours, such as another release's, is replaced within the transaction.
func (n *NAT) compare(ctx context.Context) (Change, error) {
	n.known = false
	want := n.planner.Ruleset()
	have, exists, err := n.edge.Read(ctx, want)
	if err != nil {
		return Change{}, err
	}
	n.metrics.away.Look() // chains that are made anew begin at nought
	n.lookAhead()
	replaced := !exists || !Compatible(have, want)
	if replaced && exists {
		want = n.planner.Ruleset() // Read may have taken some out
	}
	change := Diff(have, want)
	switch {
	case replaced:
		err = n.edge.Replace(ctx, want, exists)
	case !change.Empty():
		sets := maps.Clone(have.Sets)
		maps.Copy(sets, want.Sets)
		err = n.edge.Commit(ctx, change, sets)
	}
	if err != nil {
		return Change{}, err
	}
	n.known, n.sets = true, want.Sets
	n.metrics.changed(change)
	return change, nil
}

// lookAhead says whose chain decides about this host's own packets before they are translated, once.
func (n *NAT) lookAhead() {
	if n.table != TableName {
		return // another NAT of this host says it
	}
	ahead := n.edge.Ahead()
	if ahead != n.ahead && ahead != "" {
		n.log.Warn("programs of this node hear nothing from Services with externalTrafficPolicy Local that have no endpoint here: kube-proxy before 1.34 "+
			"drops what they send before it is translated; update kube-proxy, or have it run in another mode than nftables. Pods and clients outside are served", "chain", ahead)
	}
	n.ahead = ahead
}

func (n *NAT) endFlows() error {
	if len(n.flows) == 0 {
		return nil
	}
	ended, err := n.edge.EndFlows(n.flows)
	n.metrics.flows.Add(float64(ended))
	if err != nil {
		return err
	}
	clear(n.flows)
	return nil
}
