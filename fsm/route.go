// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"net/netip"
	"slices"
	"strconv"
)

// NextHop is one node that an address is, or was, routed to.
type NextHop struct {
	_ [0]func() // == would tell apart what only stands at two places in memory, and is refused so
	// Hop is shared by very many, so that each has a pointer to it; the record has one in each. Nobody writes to it.
	*Hop `pb:"inline"`
	// Since is the revision at which the hop came to be wanted, or to be withdrawn.
	Since Revision `pb:"3" json:"since"`
	// Withdrawing is set from the decision until no path to the node can be left anywhere; the node keeps its
	// rules so long. A hop that is not withdrawing counts as acknowledged once its node acknowledged Since.
	Withdrawing bool `pb:"4" json:"withdrawing"`
}

// Hop is a node, and the address of it that packets are sent to.
type Hop struct {
	Node    NodeID     `pb:"1" json:"node"`
	Address netip.Addr `pb:"2" json:"address"`
}

func (n NextHop) hop() Hop {
	if n.Hop == nil {
		return Hop{}
	}
	return *n.Hop
}

// Node is who carries the packets; empty in no NextHop of the record.
func (n NextHop) Node() NodeID {
	if n.Hop == nil {
		return ""
	}
	return n.Hop.Node
}

// Address is that of the node which they are sent to.
func (n NextHop) Address() netip.Addr {
	if n.Hop == nil {
		return netip.Addr{}
	}
	return n.Hop.Address
}

// String is a next hop in messages.
func (n NextHop) String() string {
	text := string(n.Node()) + " " + n.Address().String() + " since " + n.Since.String()
	if n.Withdrawing {
		text += ", withdrawing"
	}
	return text
}

// Route is the announcement of one address.
type Route struct {
	seal
	Prefix   netip.Prefix `pb:"1" json:"prefix"`
	NextHops []NextHop    `pb:"2" json:"nextHops"` // by node, then address
	History  Trail        `pb:"3" json:"history"`
	// Closing are ports that Services gave up and nobody else can have yet. From format 2 on.
	Closing []Closing `pb:"4" json:"closing"`
}

// Table is TableRoutes.
func (*Route) Table() Table { return TableRoutes }

// Key is the prefix.
func (r *Route) Key() string { return r.Prefix.String() }

// HopState is where a next hop stands on its way to the switch and back.
type HopState string

// A hop goes from wanted to announced and, at its end, through withdrawing.
const (
	HopWanted       HopState = "wanted"
	HopAcknowledged HopState = "acknowledged"
	HopAnnounced    HopState = "announced"
	HopWithdrawing  HopState = "withdrawing"
)

// HopSpec is a next hop as the planner wants it.
type HopSpec struct {
	Node    NodeID     `pb:"1"`
	Address netip.Addr `pb:"2"`
}

// SetRoute says which next hops an address shall have. New ones are wanted from now on; those not named are
// withdrawn from now on, and stay in the record as such until FinishWithdrawal. Closing ports that no node can pass on
// any more are forgotten.
type SetRoute struct {
	Prefix netip.Prefix `pb:"1"`
	Hops   []HopSpec    `pb:"2"`
}

// Kind is KindSetRoute.
func (*SetRoute) Kind() Kind { return KindSetRoute }

func (c *SetRoute) apply(tx *txn) Outcome {
	subject := "route " + c.Prefix.String()
	if !c.Prefix.IsValid() || !c.Prefix.IsSingleIP() {
		return refuse(RejectInvalid, subject, "", "one address")
	}
	for _, h := range c.Hops {
		if h.Node == "" || h.Address.BitLen() != c.Prefix.Addr().BitLen() {
			return refuse(RejectInvalid, subject, "hop "+h.Address.String(), "a node and an address of the route's family")
		}
	}
	if len(c.Hops) > 0 && !tx.allocated(c.Prefix.Addr()) {
		return refuse(RejectNoAllocation, subject, "", "an owner")
	}
	old, existed := find[*Route](tx.rows, TableRoutes, c.Prefix.String())
	if !existed {
		if len(c.Hops) == 0 {
			return tx.ok()
		}
		old = &Route{Prefix: c.Prefix}
	}
	next := &Route{Prefix: c.Prefix, NextHops: tx.state.alike.sameHops(merge(old.NextHops, c.wanted(), tx.revision())), History: old.History, Closing: old.Closing}
	next.Closing = tx.lingering(next)
	if what := hopChange(old.NextHops, next.NextHops, tx.hopsTold()); what != "" {
		next.History = tx.step(old.History, what)
	}
	tx.put(next)
	return tx.ok()
}

// allocated tells whether some service owns a and is not giving it up.
func (tx *txn) allocated(a netip.Addr) bool {
	owners := ownersOf(tx.rows, a.String())
	return slices.ContainsFunc(owners, func(o *Allocation) bool { return !o.Releasing })
}

// routeBy gives the first route that names a node; nil for none, which takes no look at the routes.
func (tx *txn) routeBy(id NodeID) (found *Route) {
	routes := tx.rows.tables[TableRoutes]
	if routes.none(refHop, string(id)) {
		return nil
	}
	routes.each(func(rec Record) bool {
		r := rec.(*Route)
		if slices.ContainsFunc(r.NextHops, func(h NextHop) bool { return h.Node() == id }) {
			found = r
		}
		return found == nil
	})
	return found
}

// FinishWithdrawal removes a withdrawn next hop: every member reported that no switch holds the path of it any more, or
// is excused because the proposer waited out hold, restart and stale time for it on its own clock (S9). The same holds for
// its node, if that announces itself; nor does the node answer for the address on its segment.
type FinishWithdrawal struct {
	Prefix  netip.Prefix `pb:"1"`
	Node    NodeID       `pb:"2"`
	Address netip.Addr   `pb:"3"`
	Since   Revision     `pb:"4"`
	Excused []ServerID   `pb:"5"`
	// NodeExcused says that the node's own speaker was waited out. From format 2 on.
	NodeExcused bool `pb:"65"`
}

// Kind is KindFinishWithdrawal.
func (*FinishWithdrawal) Kind() Kind { return KindFinishWithdrawal }

func (c *FinishWithdrawal) apply(tx *txn) Outcome {
	subject := "route " + c.Prefix.String()
	if c.NodeExcused {
		if out, old := tx.formatBelow(formatBGP, subject); old {
			return out
		}
	}
	r, ok := find[*Route](tx.rows, TableRoutes, c.Prefix.String())
	if !ok {
		return refuse(RejectNotFound, subject, "", "")
	}
	i := slices.IndexFunc(r.NextHops, func(n NextHop) bool { return n.Node() == c.Node && n.Address() == c.Address })
	if i < 0 {
		return refuse(RejectNotFound, subject+" via "+c.Address.String(), "", "")
	}
	if h := r.NextHops[i]; !h.Withdrawing || h.Since != c.Since {
		return refuse(RejectStaleRevision, subject+" via "+c.Address.String(), h.Since.String(), c.Since.String())
	}
	if l, ok := find[*Lease](tx.rows, TableLeases, c.Prefix.Addr().String()); ok && l.Holder == c.Node && tx.group().Format >= formatL2 {
		return refuse(RejectLeaseHeld, subject+" via "+c.Address.String(), string(l.Holder), "nobody") // packets are led there
	}
	for _, m := range list[*Member](tx.rows, TableMembers) {
		if have := m.WithdrawnIn(tx.group().Format); have.Before(c.Since) && !slices.Contains(c.Excused, m.Server) {
			return refuse(RejectNotWithdrawn, subject+" at "+m.Name, have.String(), c.Since.String())
		}
	}
	if n := tx.node(c.Node); n != nil && n.Speaking.MayBeHeld(c.Since) && !c.NodeExcused {
		return refuse(RejectNotWithdrawn, subject+" at node "+string(n.ID), n.Speaking.Withdrawn.String(), c.Since.String())
	}
	if out, wait := tx.quarantined(subject); wait {
		return out
	}
	tx.excuse(c)
	gone := "withdrawn " + string(c.Node) + " " + c.Address.String()
	next := *r
	next.NextHops = tx.state.alike.sameHops(slices.Delete(slices.Clone(r.NextHops), i, i+1))
	if len(next.NextHops) == 0 {
		tx.bury(r, r.History, gone)
		return tx.ok()
	}
	next.History = tx.step(r.History, gone)
	next.Closing = tx.lingering(&next)
	tx.put(&next)
	return tx.ok()
}

// excuse notes of members and of the node what a withdrawal did not wait for.
func (tx *txn) excuse(c *FinishWithdrawal) {
	if tx.group().Format < FormatWithdrawn {
		return
	}
	for _, m := range list[*Member](tx.rows, TableMembers) {
		if m.Withdrawn.Before(c.Since) && m.Excused.Before(c.Since) {
			next := *m
			next.Excused = c.Since
			tx.put(&next)
		}
	}
	if n := tx.node(c.Node); n != nil && n.Speaking.MayBeHeld(c.Since) && n.Speaking.Excused.Before(c.Since) {
		next := *n
		next.Speaking.Excused = c.Since
		tx.put(&next)
	}
}

func utoa(v uint64) string { return strconv.FormatUint(v, 10) }
