// SPDX-License-Identifier: Apache-2.0

package l2

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
)

// Lease is this node's right to answer for an address.
type Lease struct {
	Address netip.Addr
	Fence   fsm.Revision  // of the grant
	Term    time.Duration // for how long from sending a renewal, > 0
	// Keep has the node answer on after Term, until the group takes the lease back: nobody else gets it meanwhile.
	Keep bool
	// Interfaces are where it answers; none means all.
	Interfaces []string
}

// Held names a lease that may still be used.
type Held struct {
	Address netip.Addr
	Fence   fsm.Revision
}

// book is the leases of one node. Times are readings of a clock that does not stop while the machine sleeps.
type book struct {
	sent   time.Duration // of the newest renewal
	left   bool          // nothing is held any more, and nothing will be
	leases map[netip.Addr]*entry
}

type entry struct {
	Lease
	until time.Duration // what is not renewed later ends here
}

func newBook() book { return book{sent: -1, leases: map[netip.Addr]*entry{}} }

// valid tells whether an address may be answered for.
func (e *entry) valid(now time.Duration) bool { return e.Keep || now < e.until }

// renew begins a renewal that is sent now, and says which leases may still be used: what is not among them will not be
// used again unless this renewal, or a later one, is answered with it. Answers to earlier renewals count no more.
func (b *book) renew(now time.Duration) (sent time.Duration, held []Held) {
	b.sent = max(now, b.sent+1)
	maps.DeleteFunc(b.leases, func(_ netip.Addr, e *entry) bool { return !e.valid(now) })
	for a, e := range b.leases {
		held = append(held, Held{a, e.Fence})
	}
	slices.SortFunc(held, func(x, y Held) int { return x.Address.Compare(y.Address) })
	return b.sent, held
}

// grant takes in the answer to the renewal that was sent then: all leases of the node. It tells which addresses may be
// answered for now that could not a moment ago. An answer that was overtaken changes nothing.
func (b *book) grant(now, sent time.Duration, leases []Lease) (gained []netip.Addr) {
	if sent != b.sent || b.left {
		return nil
	}
	next := make(map[netip.Addr]*entry, len(leases))
	for _, l := range leases {
		e := &entry{Lease: l, until: sent + l.Term}
		old := b.leases[l.Address]
		next[l.Address] = e
		if e.valid(now) && (old == nil || old.Fence != l.Fence || !old.valid(now)) {
			gained = append(gained, l.Address)
		}
	}
	b.leases = next
	return gained
}

// leave drops all leases, for good.
func (b *book) leave() {
	b.left = true
	clear(b.leases)
}

// of gives the lease of an address, if it may be answered for now.
func (b *book) of(now time.Duration, a netip.Addr) (*entry, bool) {
	e, ok := b.leases[a]
	return e, ok && e.valid(now)
}
