// SPDX-License-Identifier: Apache-2.0

package fsm

// Register is a value that tests write and read, to see whether the record is one (linearizability), and that nothing acts on.
type Register struct {
	seal
	ID      RegisterID `pb:"1" json:"id"`
	UID     string     `pb:"2" json:"uid"`
	Version uint64     `pb:"3" json:"version"`
	Spec    []byte     `pb:"4" json:"spec" max:"1048576"`
	History Trail      `pb:"5" json:"history"`
}

// Table is TableRegisters.
func (*Register) Table() Table { return TableRegisters }

// Key is the register's id.
func (p *Register) Key() string { return string(p.ID) }

// PutRegister adds or replaces a register; an older version of the same object is refused.
type PutRegister struct {
	ID      RegisterID `pb:"1"`
	UID     string     `pb:"2"`
	Version uint64     `pb:"3"`
	Spec    []byte     `pb:"4" max:"1048576"`
}

// Kind is KindPutRegister.
func (*PutRegister) Kind() Kind { return KindPutRegister }

func (c *PutRegister) apply(tx *txn) Outcome {
	if c.ID == "" {
		return refuse(RejectInvalid, "register", "", "an id")
	}
	next := &Register{ID: c.ID, UID: c.UID, Version: c.Version, Spec: c.Spec}
	old, ok := find[*Register](tx.rows, TableRegisters, string(c.ID))
	if ok && old.UID == c.UID && c.Version < old.Version {
		return refuse(RejectStaleRevision, "register "+string(c.ID), utoa(old.Version), utoa(c.Version))
	}
	if ok {
		next.History = tx.step(old.History, "changed")
	} else {
		next.History = tx.step(nil, "added")
	}
	tx.put(next)
	return tx.ok()
}

// DeleteRegister removes a register.
type DeleteRegister struct {
	ID RegisterID `pb:"1"`
}

// Kind is KindDeleteRegister.
func (*DeleteRegister) Kind() Kind { return KindDeleteRegister }

func (c *DeleteRegister) apply(tx *txn) Outcome {
	p, ok := find[*Register](tx.rows, TableRegisters, string(c.ID))
	if !ok {
		return refuse(RejectNotFound, "register "+string(c.ID), "", "")
	}
	if out, wait := tx.quarantined("register " + string(c.ID)); wait {
		return out
	}
	tx.bury(p, p.History, "gone")
	return tx.ok()
}
