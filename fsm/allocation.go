// SPDX-License-Identifier: Apache-2.0

package fsm

import "net/netip"

// Protocol is the IANA number of a transport protocol.
type Protocol uint8

// Protocols that a frontend may have.
const (
	TCP  Protocol = 6
	UDP  Protocol = 17
	SCTP Protocol = 132
)

// String is the name Kubernetes uses, in lower case.
func (p Protocol) String() string {
	switch p {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	case SCTP:
		return "sctp"
	}
	return "unknown"
}

// Port is one protocol and port that a service answers on.
type Port struct {
	Protocol Protocol `pb:"1" json:"protocol"`
	Number   uint16   `pb:"2" json:"number"`
}

// String is a port as people write it.
func (p Port) String() string { return utoa(uint64(p.Number)) + "/" + p.Protocol.String() }

// Allocation says that a service owns an address. Services that agreed on a sharing key have one each (S3).
type Allocation struct {
	seal
	Address netip.Addr `pb:"1" json:"address"`
	Service ServiceID  `pb:"2" json:"service"`
	// Claim is shared by very many, so that each has a pointer to it; the record has one in each. Nobody writes to it.
	*Claim `pb:"inline"`
	// Releasing is set once the service gave the address up; nobody else gets it until no path can lead to it.
	Releasing bool     `pb:"6" json:"releasing"`
	Since     Revision `pb:"7" json:"since"`
}

// Claim is what a service owns of an address, and where it has that from.
type Claim struct {
	Pool  PoolName `pb:"3" json:"pool,omitempty"` // empty: typed by the user
	Ports []Port   `pb:"4" json:"ports"`
	// SharingKey is equal for services that agreed to share; empty shares with nobody.
	SharingKey string `pb:"5" json:"sharingKey,omitempty" max:"4096"`
}

// noClaim is that of an allocation that is nobody's yet.
var noClaim Claim //nolint:gochecknoglobals // for reading

// claim is for reading.
func (a *Allocation) claim() *Claim {
	if a.Claim == nil {
		return &noClaim
	}
	return a.Claim
}

// Pool is where the address is from; empty for one that the user typed.
func (a *Allocation) Pool() PoolName { return a.claim().Pool }

// Ports are those that the service answers on.
func (a *Allocation) Ports() []Port { return a.claim().Ports }

// SharingKey is Claim.SharingKey.
func (a *Allocation) SharingKey() string { return a.claim().SharingKey }

// Table is TableAllocations.
func (*Allocation) Table() Table { return TableAllocations }

// Key is address and owner.
func (a *Allocation) Key() string { return allocationKey(a.Address, a.Service) }

func allocationKey(a netip.Addr, s ServiceID) string {
	var room [keyRoom]byte
	return string(appendAllocationKey(room[:0], a, s))
}

func appendAllocationKey(b []byte, a netip.Addr, s ServiceID) []byte {
	return append(append(a.AppendTo(b), ' '), s...)
}

// ownersOf lists the allocations of one address, with which their keys begin.
func ownersOf(r *rows, address string) (out []*Allocation) {
	of, err := netip.ParseAddr(address)
	if err != nil {
		return nil
	}
	r.tables[TableAllocations].eachFrom(address+" ", func(rec Record) bool {
		a := rec.(*Allocation)
		if a.Address != of {
			return false
		}
		unchanged(a)
		out = append(out, a)
		return true
	})
	return out
}

// allocationsOf lists the allocations of one service, in order of address text.
func allocationsOf(r *rows, s ServiceID) (out []*Allocation) {
	r.tables[TableAllocations].eachRegrouped(string(s), func(rec Record) bool {
		unchanged(rec)
		out = append(out, rec.(*Allocation))
		return true
	})
	return out
}

// Allocate makes a service an owner of an address, or changes the ports of one that it is already. A port that another
// one gave up is refused until no node can pass it to that one any more.
type Allocate struct {
	Address    netip.Addr `pb:"1"`
	Service    ServiceID  `pb:"2"`
	Pool       PoolName   `pb:"3"`
	Ports      []Port     `pb:"4"`
	SharingKey string     `pb:"5" max:"4096"`
}

// Kind is KindAllocate.
func (*Allocate) Kind() Kind { return KindAllocate }

func (c *Allocate) apply(tx *txn) Outcome { return c.give(tx, false) }

// give makes a service an owner. What is adopted is nothing new to the outside, so that the quarantine does not hold it back.
func (c *Allocate) give(tx *txn, adopted bool) Outcome {
	subject := "address " + c.Address.String()
	if !plain(c.Address) {
		return refuse(RejectInvalid, subject, "", "an address without zone, and as IPv4 if it is")
	}
	svc, ok := find[*Service](tx.rows, TableServices, string(c.Service))
	if !ok {
		return refuse(RejectNotFound, "service "+string(c.Service), "", "")
	}
	for _, other := range ownersOf(tx.rows, c.Address.String()) {
		if other.Service != c.Service && !c.mayShare(other) {
			return refuse(RejectAddressTaken, subject, string(other.Service), string(c.Service))
		}
	}
	old, owned := find[*Allocation](tx.rows, TableAllocations, allocationKey(c.Address, c.Service))
	if !owned {
		if out, wait := tx.quarantined(subject); wait && !adopted {
			return out
		}
		old = &Allocation{}
	}
	if out, free := tx.portFree(c); !free {
		return out
	}
	tx.portsChanged(c.Address, c.Service, old.Ports(), c.Ports)
	next := &Allocation{
		Address: c.Address, Service: svc.ID, Claim: tx.state.alike.sameClaim(Claim{c.Pool, c.Ports, c.SharingKey}), Since: tx.revision(),
	}
	switch {
	case owned && !old.Releasing:
		next.Since = old.Since
	case adopted:
		tx.note(svc, "address "+c.Address.String()+" taken over")
	default:
		tx.note(svc, "address "+c.Address.String()+" allocated")
	}
	tx.put(next)
	return tx.ok()
}

func (c *Allocate) mayShare(other *Allocation) bool {
	if c.SharingKey == "" || c.SharingKey != other.SharingKey() {
		return false
	}
	for _, p := range c.Ports {
		for _, q := range other.Ports() {
			if p == q {
				return false
			}
		}
	}
	return true
}

// ReleaseAllocation gives an address up. It stays taken until FreeAllocation.
type ReleaseAllocation struct {
	Address netip.Addr `pb:"1"`
	Service ServiceID  `pb:"2"`
}

// Kind is KindReleaseAllocation.
func (*ReleaseAllocation) Kind() Kind { return KindReleaseAllocation }

func (c *ReleaseAllocation) apply(tx *txn) Outcome {
	subject := "address " + c.Address.String()
	a, ok := find[*Allocation](tx.rows, TableAllocations, allocationKey(c.Address, c.Service))
	if !ok {
		return refuse(RejectNotFound, subject, "", string(c.Service))
	}
	if out, wait := tx.quarantined(subject); wait {
		return out
	}
	if a.Releasing {
		return tx.ok()
	}
	next := *a
	next.Releasing = true
	tx.put(&next)
	if svc, ok := find[*Service](tx.rows, TableServices, string(c.Service)); ok {
		tx.note(svc, "address "+c.Address.String()+" released")
	}
	return tx.ok()
}

// FreeAllocation makes a released address free for others. It is refused while a route for the address has any
// next hop, withdrawing ones included, or a node's lease on it lasts, unless another owner shares it: then its ports
// are what is waited for (Closing).
type FreeAllocation struct {
	Address netip.Addr `pb:"1"`
	Service ServiceID  `pb:"2"`
}

// Kind is KindFreeAllocation.
func (*FreeAllocation) Kind() Kind { return KindFreeAllocation }

func (c *FreeAllocation) apply(tx *txn) Outcome {
	subject := "address " + c.Address.String()
	a, ok := find[*Allocation](tx.rows, TableAllocations, allocationKey(c.Address, c.Service))
	if !ok {
		return refuse(RejectNotFound, subject, "", string(c.Service))
	}
	if !a.Releasing {
		return refuse(RejectWrongState, subject, "owned", "releasing")
	}
	if out, wait := tx.quarantined(subject); wait {
		return out
	}
	if owners := ownersOf(tx.rows, c.Address.String()); len(owners) == 1 {
		if _, routed := find[*Route](tx.rows, TableRoutes, HostPrefix(c.Address).String()); routed {
			return refuse(RejectNotWithdrawn, subject, "a route", "none")
		}
		if l, leased := find[*Lease](tx.rows, TableLeases, c.Address.String()); leased {
			return refuse(RejectLeaseHeld, subject, string(l.Holder), "nobody")
		}
	}
	tx.portsChanged(c.Address, c.Service, a.Ports(), nil)
	tx.remove(a)
	return tx.ok()
}

// plain tells whether a is written in the one way that compares equal to itself: an IPv4-mapped address or a
// zone would make a second owner's address look like another one (S3).
func plain(a netip.Addr) bool { return a.IsValid() && !a.Is4In6() && a.Zone() == "" }

// HostPrefix is the /32 or /128 of an address.
func HostPrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
