// SPDX-License-Identifier: Apache-2.0

package fsm

import "net/netip"

// Range is a run of addresses of one family, both ends included.
type Range struct {
	From netip.Addr `pb:"1" json:"from"`
	To   netip.Addr `pb:"2" json:"to"`
}

// Contains tells whether a lies in the range.
func (r Range) Contains(a netip.Addr) bool {
	return a.BitLen() == r.From.BitLen() && r.From.Compare(a) <= 0 && a.Compare(r.To) <= 0
}

func (r Range) overlaps(o Range) bool {
	return r.From.BitLen() == o.From.BitLen() && r.From.Compare(o.To) <= 0 && o.From.Compare(r.To) <= 0
}

func (r Range) valid() bool {
	return plain(r.From) && plain(r.To) && r.From.BitLen() == r.To.BitLen() && r.From.Compare(r.To) <= 0
}

// Pool is where addresses for Services come from.
type Pool struct {
	seal
	Name       PoolName  `pb:"1" json:"name"`
	Ranges     []Range   `pb:"2" json:"ranges"`
	AutoAssign bool      `pb:"3" json:"autoAssign"` // given to Services that ask for no particular address
	Version    uint64    `pb:"4" json:"version"`    // of the object it came from
	Object     ObjectRef `pb:"70" json:"object"`
}

// Table is TablePools.
func (*Pool) Table() Table { return TablePools }

// Key is the pool's name.
func (p *Pool) Key() string { return string(p.Name) }

// Contains tells whether a is one of the pool's addresses.
func (p *Pool) Contains(a netip.Addr) bool {
	for _, r := range p.Ranges {
		if r.Contains(a) {
			return true
		}
	}
	return false
}

// PutPool adds or replaces a pool. Two pools never overlap, or an address would have two sets of rules.
type PutPool struct {
	Pool Pool `pb:"1"`
}

// Kind is KindPutPool.
func (*PutPool) Kind() Kind { return KindPutPool }

func (c *PutPool) apply(tx *txn) Outcome {
	p := c.Pool
	subject := "pool " + string(p.Name)
	if p.Name == "" || len(p.Ranges) == 0 {
		return refuse(RejectInvalid, subject, "", "a name and at least one range")
	}
	if out, old := tx.refersBelow(p.Object, subject); old {
		return out
	}
	for _, r := range p.Ranges {
		if !r.valid() {
			return refuse(RejectInvalid, subject, "", "first address not after the last, of one family")
		}
	}
	for _, other := range list[*Pool](tx.rows, TablePools) {
		if other.Name != p.Name && rangesOverlap(other.Ranges, p.Ranges) {
			return refuse(RejectOverlap, subject, "pool "+string(other.Name), "")
		}
	}
	tx.put(&p)
	return tx.ok()
}

func rangesOverlap(a, b []Range) bool {
	for _, x := range a {
		for _, y := range b {
			if x.overlaps(y) {
				return true
			}
		}
	}
	return false
}

// DeletePool removes a pool. Addresses given out of it stay with their owners.
type DeletePool struct {
	Name PoolName `pb:"1"`
}

// Kind is KindDeletePool.
func (*DeletePool) Kind() Kind { return KindDeletePool }

func (c *DeletePool) apply(tx *txn) Outcome {
	p, ok := find[*Pool](tx.rows, TablePools, string(c.Name))
	if !ok {
		return refuse(RejectNotFound, "pool "+string(c.Name), "", "")
	}
	tx.remove(p)
	return tx.ok()
}
