// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"cmp"
	"fmt"
	"strings"
)

// Index is a position in the Raft log. It starts anew in no epoch, but a restored group may lose some.
type Index uint64

// Epoch counts the lives of a group: it rises at bootstrap, recover and restore, and at nothing else.
type Epoch uint64

// Revision orders everything that a group ever decided: by epoch, then by log index. An agent or a driver that
// compares revisions therefore sees a restored group as newer, never as running back (S13).
type Revision struct {
	Epoch Epoch `pb:"1" json:"epoch"`
	Index Index `pb:"2" json:"index"`
}

// Compare returns -1, 0 or +1 as r is before, equal to or after o.
func (r Revision) Compare(o Revision) int {
	if c := cmp.Compare(r.Epoch, o.Epoch); c != 0 {
		return c
	}
	return cmp.Compare(r.Index, o.Index)
}

// Before tells whether r was decided before o.
func (r Revision) Before(o Revision) bool { return r.Compare(o) < 0 }

// IsZero tells whether r is no revision at all.
func (r Revision) IsZero() bool { return r == Revision{} }

// String renders "epoch.index", as the CLI shows it.
func (r Revision) String() string { return fmt.Sprintf("%d.%d", r.Epoch, r.Index) }

// Names of things. Distinct things have distinct types so that one is never passed for another.
type (
	// GroupID names a controller group for its whole life; drawn at bootstrap.
	GroupID string
	// ServerID is a Raft server: a member's name and the instance drawn when its data folder was made.
	ServerID string
	// ServiceID is "namespace/name" of a Kubernetes Service.
	ServiceID string
	// NodeID is the name of a node.
	NodeID string
	// BootID is drawn by the kernel at every boot; a new one voids what the node acknowledged before.
	BootID string
	// PoolName, PeerName, AdvertisementName and RegisterID are the names of configuration objects.
	PoolName          string
	PeerName          string
	AdvertisementName string
	RegisterID        string
	// PolicyID is "kind/name" of a policy of client-side balancing.
	PolicyID string
	// HostID is the name of a host outside the cluster. It may be the name of a node, which is another machine.
	HostID string
	// TunnelID names the host at the end of a tunnel: a node by its name, a host outside the cluster by "outside/" and its name. See
	// NodeTunnel and HostTunnel.
	TunnelID string
	// BalancerID names an object that means an outside load balancer: "LoadBalancer/namespace/name/uid" or
	// "Bind/namespace/name/uid/entry".
	BalancerID string
	// Identity names an outside load balancer by driver and canonical lbInfo, never by a Kubernetes object: two
	// objects may mean one. IdentityOf makes it.
	Identity string
	// BindingID names one backend on one load balancer: "namespace/name" of its BackendRecord.
	BindingID string
	// Subject is what at most one operation may be in flight for (S7); see SubjectOf.
	Subject string
	// HoldID names a mass change that waits for an operator.
	HoldID string
)

// outsideTunnel begins the ids of tunnels of hosts outside the cluster; nodes' names have no slash.
const outsideTunnel = "outside/"

// NodeTunnel names the tunnel of a node.
func NodeTunnel(id NodeID) TunnelID { return TunnelID(id) }

// HostTunnel names the tunnel of a host outside the cluster.
func HostTunnel(id HostID) TunnelID { return outsideTunnel + TunnelID(id) }

// Outside gives the host outside the cluster whose tunnel it is; false for a node's.
func (t TunnelID) Outside() (HostID, bool) {
	name, ok := strings.CutPrefix(string(t), outsideTunnel)
	return HostID(name), ok
}

// KV is one entry of a small map, kept as a sorted slice so that it has one encoding.
type KV struct {
	Key   string `pb:"1" json:"key"`
	Value string `pb:"2" json:"value"`
}
