// SPDX-License-Identifier: Apache-2.0

package node

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/nat"
	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/dataplane/steer"
)

// SteerOptions are what a configuration says of steering, over whatever kernel.
func SteerOptions(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) steer.Options {
	return steer.Options{
		Folder:     c.StateDir,
		PriorityIn: c.Priorities.In, PriorityOut: c.Priorities.Out, PriorityMark: c.Priorities.Mark,
		Reread: c.SyncPeriod,
		MarkIn: c.Marks.In, MarkOut: c.Marks.Out, RulesMax: c.RulesMax, Interfaces: c.Interfaces, SysNet: c.SysNet, Namespace: c.Namespace,
		Log: log, Metrics: metrics,
	}
}

// NATOptions are what a configuration says of translation.
func NATOptions(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) nat.Options {
	return nat.Options{
		Node: c.Node, ClusterCIDRs: c.ClusterRanges(), MasqueradeAll: c.MasqueradeAll, Consistent: c.Consistent,
		NodePortAddresses: c.NodePortRanges(), NodePortMark: c.Marks.NodePort,
		Audit: c.SyncPeriod, Mark: c.Marks.NAT, NetNS: c.Namespace, Log: log, Metrics: metrics,
	}
}

// SockOptions are what a configuration says of resolution at sockets, for tables with room for so much.
func SockOptions(c config.Agent, room sock.Capacity, log *slog.Logger, metrics prometheus.Registerer) sock.Options {
	return sock.Options{
		Config: sock.Config{Node: c.Node, Outside: c.OutOfCluster, Tunnels: c.Tunnel != nil, StrictExternalLocal: c.Sock.StrictExternalLocal}, Room: room, Audit: c.SyncPeriod, Events: sock.Events{Rate: c.Sock.Events}, Log: log, Metrics: metrics,
	}
}
