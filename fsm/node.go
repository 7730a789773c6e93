// SPDX-License-Identifier: Apache-2.0

package fsm

import "net/netip"

// Liveness is the group's verdict on a node, reached by a majority of members (design §6).
type Liveness uint8

// A node is taken to be up until a majority says otherwise.
const (
	NodeUp    Liveness = iota
	AgentDown          // the node answers, its agent does not: no new addresses there
	NodeDown           // silence to a majority: out of the routes
)

var livenessNames = [...]string{"up", "agent-down", "down"}

// String is the name that tables and JSON show.
func (l Liveness) String() string {
	if int(l) < len(livenessNames) {
		return livenessNames[l]
	}
	return "unknown"
}

// MarshalText makes JSON show the name.
func (l Liveness) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Node is a machine that can be a next hop.
type Node struct {
	seal
	ID        NodeID       `pb:"1" json:"id"`
	UID       string       `pb:"2" json:"uid"`
	Version   uint64       `pb:"3" json:"version"`
	Addresses []netip.Addr `pb:"4" json:"addresses"` // at most one per family is used, the first
	// Eligible says that Kubernetes has nothing against it: ready, network available, not excluded. Why tells
	// what is in the way otherwise.
	Eligible bool   `pb:"5" json:"eligible"`
	Why      string `pb:"6" json:"why,omitempty"`

	Liveness Liveness `pb:"7" json:"liveness"`
	Boot     BootID   `pb:"8" json:"boot,omitempty" max:"128"`
	// Acknowledged is the newest revision that this boot of the node carried out; zero after a reboot.
	Acknowledged   Revision       `pb:"9" json:"acknowledged"`
	AcknowledgedAt Revision       `pb:"10" json:"acknowledgedAt"` // when that was committed
	Failed         []netip.Prefix `pb:"11" json:"failed"`         // what it could not carry out
	History        Trail          `pb:"12" json:"history"`
	// Zone is where it stands, empty if unknown. From format 2 on.
	Zone string `pb:"13" json:"zone,omitempty"`
	// Leaving says that the cluster's autoscaler is about to delete it. From format 2 on.
	Leaving bool `pb:"14" json:"leaving,omitempty"`
	// Tunnels says that its agent makes tunnels. From format 2 on.
	Tunnels bool `pb:"40" json:"tunnels,omitempty"`
	// Others are the rest of the addresses that the cluster says it has, at which programs dial its node ports, too. From format 2 on.
	Others []netip.Addr `pb:"50" json:"others,omitempty"`
	// Number is its id on hosts, unlike that of any other node; 0 until it is given one. From format 2 on.
	Number uint32 `pb:"60" json:"number,omitempty"`
	// Redirects says that its agent carries policies out. From format 2 on.
	Redirects bool `pb:"61" json:"policies,omitempty"`
	// Speaking is from format 2 on.
	Speaking Speaking `pb:"65" json:"speaking"`
}

// Table is TableNodes.
func (*Node) Table() Table { return TableNodes }

// Key is the node's name.
func (n *Node) Key() string { return string(n.ID) }

// Address gives the node's address of the family of a, if it has one.
func (n *Node) Address(a netip.Addr) (netip.Addr, bool) {
	for _, own := range n.Addresses {
		if own.BitLen() == a.BitLen() {
			return own, true
		}
	}
	return netip.Addr{}, false
}

// PutNode adds or replaces what the cluster says of a node. What the node and the group said stays.
type PutNode struct {
	ID        NodeID       `pb:"1"`
	UID       string       `pb:"2"`
	Version   uint64       `pb:"3"`
	Addresses []netip.Addr `pb:"4"`
	Eligible  bool         `pb:"5"`
	Why       string       `pb:"6"`
	Zone      string       `pb:"7"`
	Leaving   bool         `pb:"8"`
	Others    []netip.Addr `pb:"50"`
}

// Kind is KindPutNode.
func (*PutNode) Kind() Kind { return KindPutNode }

func (c *PutNode) apply(tx *txn) Outcome {
	if c.ID == "" {
		return refuse(RejectInvalid, "node", "", "a name")
	}
	next := &Node{}
	old, known := find[*Node](tx.rows, TableNodes, string(c.ID))
	if known {
		if old.UID == c.UID && c.Version < old.Version {
			return refuse(RejectStaleRevision, "node "+string(c.ID), utoa(old.Version), utoa(c.Version))
		}
		*next = *old
	}
	next.ID, next.UID, next.Version = c.ID, c.UID, c.Version
	next.Addresses, next.Eligible, next.Why, next.Zone, next.Leaving = c.Addresses, c.Eligible, c.Why, c.Zone, c.Leaving
	next.Others = c.Others
	switch {
	case !known:
		next.History = tx.step(nil, "joined")
	case old.Eligible && !c.Eligible:
		next.History = tx.step(old.History, "not eligible: "+c.Why)
	case !old.Eligible && c.Eligible:
		next.History = tx.step(old.History, "eligible")
	}
	tx.put(next)
	return tx.ok()
}

// DeleteNode removes a node that no route names any more.
type DeleteNode struct {
	ID NodeID `pb:"1"`
}

// Kind is KindDeleteNode.
func (*DeleteNode) Kind() Kind { return KindDeleteNode }

func (c *DeleteNode) apply(tx *txn) Outcome {
	subject := "node " + string(c.ID)
	n, ok := find[*Node](tx.rows, TableNodes, string(c.ID))
	if !ok {
		return refuse(RejectNotFound, subject, "", "")
	}
	if r := tx.routeBy(c.ID); r != nil {
		return refuse(RejectInUse, subject, "route "+r.Prefix.String(), "none")
	}
	if out, wait := tx.quarantined(subject); wait {
		return out
	}
	tx.endDrain(DrainNode, string(c.ID), "the node is gone")
	tx.endMovesTo(c.ID, "the node is gone")
	tx.bury(n, n.History, "gone")
	return tx.ok()
}

// RegisterBoot says that a node's agent runs under this boot. A new boot voids every acknowledgement, since
// the kernel forgot its rules (S9).
type RegisterBoot struct {
	Node NodeID `pb:"1"`
	Boot BootID `pb:"2" max:"128"`
}

// Kind is KindRegisterBoot.
func (*RegisterBoot) Kind() Kind { return KindRegisterBoot }

func (c *RegisterBoot) apply(tx *txn) Outcome {
	n, ok := find[*Node](tx.rows, TableNodes, string(c.Node))
	if !ok {
		return refuse(RejectNotFound, "node "+string(c.Node), "", "")
	}
	if c.Boot == "" {
		return refuse(RejectInvalid, "node "+string(c.Node), string(n.Boot), "a boot id")
	}
	if n.Boot == c.Boot {
		return tx.ok()
	}
	next := *n
	next.Boot, next.Acknowledged, next.AcknowledgedAt, next.Failed = c.Boot, Revision{}, Revision{}, nil
	next.Speaking.Absence = Absence{}
	next.History = tx.step(n.History, "booted "+string(c.Boot))
	tx.put(&next)
	return tx.ok()
}

// Acknowledge carries nodes' high-water marks, coalesced by the proposer.
type Acknowledge struct {
	Marks []AppliedMark `pb:"1"`
}

// AppliedMark says that a node carried out everything up to a revision, but for Failed.
type AppliedMark struct {
	Node   NodeID         `pb:"1"`
	Boot   BootID         `pb:"2" max:"128"`
	Upto   Revision       `pb:"3"`
	Failed []netip.Prefix `pb:"4"`
}

// Kind is KindAcknowledge.
func (*Acknowledge) Kind() Kind { return KindAcknowledge }

// Marks of another boot, and marks that run back, are skipped one by one: they come from different nodes.
func (c *Acknowledge) apply(tx *txn) Outcome {
	out := tx.ok()
	for _, m := range c.Marks {
		if o := tx.acknowledge(m); o.Reject != Accepted {
			out = o
		}
	}
	return out
}

// says gives the node whose agent says something of itself, under the boot that it is registered with, in a group of a format at least;
// nil with a refusal where that is not so.
func (tx *txn) says(id NodeID, boot BootID, format uint32) (*Node, Outcome) {
	subject := "node " + string(id)
	if out, old := tx.formatBelow(format, subject); old {
		return nil, out
	}
	n, ok := find[*Node](tx.rows, TableNodes, string(id))
	switch {
	case !ok:
		return nil, refuse(RejectNotFound, subject, "", "")
	case n.Boot != boot || boot == "":
		return nil, refuse(RejectStaleBoot, subject, string(n.Boot), string(boot))
	}
	return n, tx.ok()
}

func (tx *txn) acknowledge(m AppliedMark) Outcome {
	subject := "node " + string(m.Node)
	n, ok := find[*Node](tx.rows, TableNodes, string(m.Node))
	switch {
	case !ok:
		return refuse(RejectNotFound, subject, "", "")
	case n.Boot != m.Boot || m.Boot == "": // no boot can have acknowledged before one registered (S9)
		return refuse(RejectStaleBoot, subject, string(n.Boot), string(m.Boot))
	case m.Upto.Before(n.Acknowledged) || tx.revision().Before(m.Upto):
		return refuse(RejectStaleRevision, subject, n.Acknowledged.String(), m.Upto.String())
	}
	next := *n
	next.Acknowledged, next.AcknowledgedAt, next.Failed = m.Upto, tx.revision(), m.Failed
	if len(m.Failed) > 0 && len(n.Failed) == 0 {
		next.History = tx.step(n.History, "could not carry out "+m.Failed[0].String())
	}
	tx.put(&next)
	return tx.ok()
}

// SetLiveness commits the verdict of a majority of members on a node.
type SetLiveness struct {
	Node     NodeID   `pb:"1"`
	Boot     BootID   `pb:"2" max:"128"` // that the verdict is about
	Liveness Liveness `pb:"3"`
}

// Kind is KindSetLiveness.
func (*SetLiveness) Kind() Kind { return KindSetLiveness }

func (c *SetLiveness) apply(tx *txn) Outcome {
	subject := "node " + string(c.Node)
	n, ok := find[*Node](tx.rows, TableNodes, string(c.Node))
	switch {
	case !ok:
		return refuse(RejectNotFound, subject, "", "")
	case c.Liveness > NodeDown:
		return refuse(RejectInvalid, subject, "", c.Liveness.String())
	case n.Boot != c.Boot:
		return refuse(RejectStaleBoot, subject, string(n.Boot), string(c.Boot))
	case n.Liveness == c.Liveness:
		return tx.ok()
	}
	next := *n
	if next.Liveness = c.Liveness; c.Liveness == NodeUp {
		next.Speaking.Absence = Absence{}
	}
	next.History = tx.step(n.History, c.Liveness.String())
	tx.put(&next)
	return tx.ok()
}
