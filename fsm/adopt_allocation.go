// SPDX-License-Identifier: Apache-2.0

package fsm

// AdoptAllocation makes a service an owner of an address that users were told is its own, and that the record does not know
// of: it was given after the backup that the record was restored from. Who owns the address by the record keeps it.
// Otherwise it is Allocate, and is what the quarantine is waiting for. From format 2 on.
type AdoptAllocation struct {
	Allocation Allocate `pb:"1"`
}

// FormatAdoption is the first format that knows AdoptAllocation.
const FormatAdoption uint32 = 2

// Kind is KindAdoptAllocation.
func (*AdoptAllocation) Kind() Kind { return KindAdoptAllocation }

func (c *AdoptAllocation) apply(tx *txn) Outcome {
	if out, old := tx.formatBelow(FormatAdoption, "address "+c.Allocation.Address.String()); old {
		return out
	}
	return c.Allocation.give(tx, true)
}
