// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"net/netip"
	"time"
)

// Lease is a node's right to answer for an address. Its term is waited out on the monotonic clocks of holder
// and leader (design §7 l2); the record holds who and under which fence, never until when.
type Lease struct {
	seal
	VIP     netip.Addr    `pb:"1" json:"vip"`
	Holder  NodeID        `pb:"2" json:"holder"`
	Fence   Revision      `pb:"3" json:"fence"` // of the grant, carried by every effect
	Term    time.Duration `pb:"4" json:"term"`
	History Trail         `pb:"5" json:"history"`
	// Keep says that the holder answers on when it cannot reach the group, past Term: the lease ends by its word or an
	// operator's. From format 2 on.
	Keep bool `pb:"60" json:"keep,omitempty"`
}

// Table is TableLeases.
func (*Lease) Table() Table { return TableLeases }

// Key is the address.
func (l *Lease) Key() string { return l.VIP.String() }

// GrantLease gives a node the right to an address that nobody holds.
type GrantLease struct {
	VIP    netip.Addr    `pb:"1"`
	Holder NodeID        `pb:"2"`
	Term   time.Duration `pb:"3"`
	Keep   bool          `pb:"60"` // from format 2 on
}

// Kind is KindGrantLease.
func (*GrantLease) Kind() Kind { return KindGrantLease }

func (c *GrantLease) apply(tx *txn) Outcome {
	subject := "lease " + c.VIP.String()
	if c.Holder == "" || c.Term <= 0 || !c.VIP.IsValid() {
		return refuse(RejectInvalid, subject, "", "an address, a holder and a term")
	}
	if out, old := tx.formatBelow(formatL2, subject); old && c.Keep {
		return out
	}
	if have, ok := find[*Lease](tx.rows, TableLeases, c.VIP.String()); ok {
		return refuse(RejectLeaseHeld, subject, string(have.Holder), string(c.Holder))
	}
	if !tx.allocated(c.VIP) {
		return refuse(RejectNoAllocation, subject, "", "an owner")
	}
	if out, wait := tx.quarantined(subject); wait {
		return out
	}
	fence, ok := tx.fence(subject)
	if !ok {
		return refuse(RejectLeaseHeld, subject, tx.revision().String(), string(c.Holder))
	}
	tx.put(&Lease{
		VIP: c.VIP, Holder: c.Holder, Fence: fence, Term: c.Term, Keep: c.Keep,
		History: tx.step(nil, "granted to "+string(c.Holder)),
	})
	return tx.ok()
}

// Word is why a lease is over.
type Word uint8

// A lease that its holder keeps is never over because time has passed.
const (
	WordTime     Word = iota // its term was waited out
	WordHolder               // its holder said that it uses it no more
	WordOperator             // an operator vouches for that
)

var wordNames = [...]string{"ended", "given back", "ended at an operator's word"}

// EndLease takes a lease back once its term was waited out, its holder let go, or an operator said so.
type EndLease struct {
	VIP   netip.Addr `pb:"1"`
	Fence Revision   `pb:"2"`
	Word  Word       `pb:"60"` // other than WordTime from format 2 on
}

// Kind is KindEndLease.
func (*EndLease) Kind() Kind { return KindEndLease }

func (c *EndLease) apply(tx *txn) Outcome {
	subject := "lease " + c.VIP.String()
	l, ok := find[*Lease](tx.rows, TableLeases, c.VIP.String())
	if !ok {
		return refuse(RejectNotFound, subject, "", "")
	}
	if l.Fence != c.Fence {
		return refuse(RejectStaleFence, subject, l.Fence.String(), c.Fence.String())
	}
	if out, old := tx.formatBelow(formatL2, subject); old && c.Word != WordTime {
		return out
	}
	switch {
	case c.Word > WordOperator:
		return refuse(RejectInvalid, subject, "", "why it is over")
	case l.Keep && c.Word == WordTime:
		return refuse(RejectLeaseHeld, subject, string(l.Holder)+" keeps it", "the word of its holder or of an operator")
	}
	tx.bury(l, l.History, wordNames[c.Word])
	return tx.ok()
}
