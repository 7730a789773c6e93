// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"time"
)

// formatPolicies is the first format with policies.
const formatPolicies uint32 = 2

// Policy is a policy of client-side balancing as the group last agreed to see it: what programs dial on the hosts where it is
// effective, and the backends that they get. What the object chooses by labels or names is resolved by the proposer. From format 2 on.
type Policy struct {
	seal
	ID      PolicyID `pb:"1" json:"id"`
	UID     string   `pb:"2" json:"uid"`
	Version uint64   `pb:"3" json:"version"`
	// Number is its id on hosts and in events. Apply gives it: no two policies have the same, it is never 0, and stays as long as the
	// object does.
	Number uint32 `pb:"4" json:"number"`
	// Created is in seconds since 1970. Of two of a kind that capture the same on a host the older one counts, then the first by ID.
	Created int64 `pb:"5" json:"created"`
	// Nodes are those on which it is effective, unless EveryNode is; Outside says that it is on hosts that are none.
	Nodes     []NodeID `pb:"6" json:"nodes,omitempty"`
	EveryNode bool     `pb:"7" json:"everyNode"`
	Outside   bool     `pb:"8" json:"outside"`
	// Service is the one whose ClusterIPs are captured; empty for an address of its own.
	Service  ServiceID `pb:"9" json:"service,omitempty"`
	Captures []Capture `pb:"10" json:"captures"` // in order, each place once
	// Mode says what its backends are, as package world has it.
	Mode     string          `pb:"11" json:"mode"`
	Backends []PolicyBackend `pb:"12" json:"backends"`
	// Probe is how listed addresses are checked; zero for not at all.
	Probe Probe `pb:"13" json:"probe,omitzero"`
	// SpareOwn leaves connections alone that its own backends make. FallThrough has those of others go on, as if it were not there,
	// while it has no backend.
	SpareOwn    bool `pb:"14" json:"spareOwn,omitempty"`
	FallThrough bool `pb:"15" json:"fallThrough,omitempty"`
	// Pending says why it is not carried out as it asks.
	Pending Pending `pb:"16" json:"pending"`
	History Trail   `pb:"17" json:"history"`
	// Since is when what hosts are told of it last changed, other than verdicts. Apply gives it. A node that acknowledged this has it as it is.
	Since Revision `pb:"18" json:"since"`
	// Generation is the object's, of which this was made.
	Generation int64 `pb:"19" json:"generation,omitempty"`
	// Verdicts are what the nodes that probe listed addresses think of them, in order of place; of one that is not there nobody knows.
	// They are as of when a majority last changed its mind. Apply keeps them while probe, address and port stay.
	Verdicts []ProbeVerdict `pb:"20" json:"verdicts,omitempty"`
	// Proxied are the pods behind proxy addresses of nodes, of which Backends has the addresses.
	Proxied []ProxiedPod `pb:"22" json:"proxied,omitempty"`
}

// Capture is a place that programs dial, and the port of backends that it becomes.
type Capture struct {
	Address netip.Addr `pb:"1" json:"address"`
	Port    Port       `pb:"2" json:"port"`
	Target  uint16     `pb:"3" json:"target"`
}

// PolicyBackend is an address that connections get; one that is listed twice gets twice as many. Pod is "namespace/name" of the pod
// that is behind it, UID that pod's and Node the one that it is on; all are empty for an address that the policy lists itself.
// HostUID is the one by which that node's kubelet knows the pod, if that is another one: a static pod's.
type PolicyBackend struct {
	Address netip.Addr `pb:"1" json:"address"`
	Node    NodeID     `pb:"2" json:"node,omitempty"`
	Pod     string     `pb:"3" json:"pod,omitempty"`
	UID     string     `pb:"4" json:"uid,omitempty"`
	Ready   bool       `pb:"5" json:"ready"`
	HostUID string     `pb:"6" json:"hostUID,omitempty"`
}

// ProbeVerdict is what most of the nodes that probe an address think of it.
type ProbeVerdict struct {
	Address netip.Addr `pb:"1" json:"address"`
	Port    Port       `pb:"2" json:"port"` // a target port
	Healthy bool       `pb:"3" json:"healthy"`
	Say     uint32     `pb:"4" json:"say"` // how many nodes say so
	Of      uint32     `pb:"5" json:"of"`  // of so many that probe
}

// ProxiedPod is a pod behind the proxy address of its node, or some proxy ports of it: a pod may be there for each of them, so that each has
// a Since. Apply keeps Since, when it came to be as it is: a node that acknowledged that leads its proxy ports there. The proposer's is ignored.
type ProxiedPod struct {
	Node    NodeID     `pb:"1" json:"node"`
	Pod     string     `pb:"2" json:"pod"`
	UID     string     `pb:"3" json:"uid"`
	Address netip.Addr `pb:"4" json:"address"`
	Ready   bool       `pb:"5" json:"ready"`
	// Ports are where it answers, by proxy port. None are led there if the proxy address is somebody else's than the group's.
	Ports []ProxyPort `pb:"6" json:"ports,omitempty"`
	Since Revision    `pb:"7" json:"since"`
}

// Alike tells whether two are the same but for since when.
func (p ProxiedPod) Alike(o ProxiedPod) bool {
	return p.Node == o.Node && p.Pod == o.Pod && p.UID == o.UID && p.Address == o.Address && p.Ready == o.Ready && slices.Equal(p.Ports, o.Ports)
}

// SamePlace tells whether a node that leads to one leads to the other, too, or does so at once when it is told: where a proxy port leads to
// another port of the pod nobody comes in vain meanwhile.
func (p ProxiedPod) SamePlace(o ProxiedPod) bool { return p.place() == o.place() }

// ProxyPort is a port of a node's proxy address, and the pod's behind it.
type ProxyPort struct {
	Port   Port   `pb:"1" json:"port"`
	Target uint16 `pb:"2" json:"target"`
}

// Probe is how an address is checked, in the words of package world.
type Probe struct {
	Type     string        `pb:"1" json:"type,omitempty"`
	Port     uint16        `pb:"2" json:"port,omitempty"` // 0 for each target port
	Path     string        `pb:"3" json:"path,omitempty"`
	Statuses []uint32      `pb:"4" json:"statuses,omitempty"`
	Interval time.Duration `pb:"5" json:"interval,omitempty"`
	Timeout  time.Duration `pb:"6" json:"timeout,omitempty"`
	// Healthy and Unhealthy are how many answers in a row change what is thought of an address.
	Healthy   uint32 `pb:"7" json:"healthy,omitempty"`
	Unhealthy uint32 `pb:"8" json:"unhealthy,omitempty"`
}

// Table is TablePolicies.
func (*Policy) Table() Table { return TablePolicies }

// Key is the policy's id.
func (r *Policy) Key() string { return string(r.ID) }

// EffectiveOn tells whether it is effective on a node.
func (r *Policy) EffectiveOn(n NodeID) bool { return r.EveryNode || slices.Contains(r.Nodes, n) }

// PutPolicy adds or replaces a policy. Its history is kept by Apply; the proposer's is ignored. Number is the one that a new object
// asks for, or 0: it gets that if no other policy has it and no host may hold it as another's, else one that none had before. An older
// version of the same object is refused.
type PutPolicy struct {
	Policy Policy `pb:"1"`
}

// Kind is KindPutPolicy.
func (*PutPolicy) Kind() Kind { return KindPutPolicy }

func (c *PutPolicy) apply(tx *txn) Outcome {
	next := c.Policy
	subject := "policy " + string(next.ID)
	if out, old := tx.formatBelow(formatPolicies, subject); old {
		return out
	}
	if next.ID == "" {
		return refuse(RejectInvalid, subject, "", "an id")
	}
	old, ok := find[*Policy](tx.rows, TablePolicies, string(next.ID))
	if ok && old.UID == next.UID && next.Version < old.Version {
		return refuse(RejectStaleRevision, subject, utoa(old.Version), utoa(next.Version))
	}
	next.History, next.Verdicts = nil, nil
	what := "added"
	if ok {
		next.History, what = old.History, policyChange(old, &next)
		next.Verdicts = old.verdictsFor(&next)
	}
	if ok && old.UID == next.UID {
		next.Number = old.Number
	} else if !tx.numberFree(next.Number, next.ID) {
		next.Number = tx.nextNumber()
	}
	if ok && old.Number != next.Number {
		tx.giveUp(old.Number, old.ID)
	}
	next.Proxied = tx.proxied(old, next.Proxied)
	if next.Since = tx.revision(); ok && toldAlike(old, &next) {
		next.Since = old.Since
	}
	if what != "" {
		next.History = tx.step(next.History, what)
	}
	tx.put(&next)
	return tx.ok()
}

// proxied says since when pods are as they are; old may be nil. What it costs grows with the number of both.
func (tx *txn) proxied(old *Policy, pods []ProxiedPod) []ProxiedPod {
	since := map[proxiedPlace]Revision{}
	if old != nil {
		for _, p := range slices.Backward(old.Proxied) { // of two in one place the first counts
			since[p.place()] = p.Since
		}
	}
	out := slices.Clone(pods)
	for i := range out {
		before, ok := since[out[i].place()]
		if !ok {
			before = tx.revision()
		}
		out[i].Since = before
	}
	return out
}

// proxiedPlace is what is equal of two pods that are in the same place.
type proxiedPlace struct {
	node     NodeID
	pod, uid string
	address  netip.Addr
	ports    string // each in three bytes
}

func (p ProxiedPod) place() proxiedPlace {
	ports := make([]byte, 0, 3*len(p.Ports))
	for _, one := range p.Ports {
		ports = append(binary.BigEndian.AppendUint16(ports, one.Port.Number), byte(one.Port.Protocol))
	}
	return proxiedPlace{p.Node, p.Pod, p.UID, p.Address, string(ports)}
}

// toldAlike tells whether hosts are told the same of two versions of a policy, or what says more than that.
func toldAlike(a, b *Policy) bool {
	told := func(r *Policy) Digest {
		c := *r
		c.Version, c.Pending, c.History, c.Since, c.Generation, c.Verdicts = 0, Pending{}, nil, Revision{}, 0, nil
		sum, _ := sumOf(&c, nil)
		return sum
	}
	return told(a) == told(b)
}

// policyChange names the change that a reader of the history would ask about; backends come and go too often.
func policyChange(old, next *Policy) string {
	switch {
	case old.UID != next.UID:
		return "created anew under the same name"
	case old.Pending.Code != next.Pending.Code && next.Pending.Code != "":
		return "pending: " + next.Pending.Text
	case old.Pending.Code != "" && next.Pending.Code == "":
		return "no longer pending"
	}
	return ""
}

// DeletePolicy removes a policy.
type DeletePolicy struct {
	ID  PolicyID `pb:"1"`
	UID string   `pb:"2"`
}

// Kind is KindDeletePolicy.
func (*DeletePolicy) Kind() Kind { return KindDeletePolicy }

func (c *DeletePolicy) apply(tx *txn) Outcome {
	subject := "policy " + string(c.ID)
	r, ok := find[*Policy](tx.rows, TablePolicies, string(c.ID))
	if !ok {
		return refuse(RejectNotFound, subject, "", "")
	}
	if r.UID != c.UID {
		return refuse(RejectStaleRevision, subject, r.UID, c.UID)
	}
	if out, wait := tx.quarantined(subject); wait {
		return out
	}
	tx.giveUp(r.Number, r.ID)
	tx.bury(r, r.History, "gone")
	return tx.ok()
}
