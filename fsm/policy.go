// SPDX-License-Identifier: Apache-2.0

package fsm

// Policy is a balancing policy that agents carry out. Spec is its canonical form, made by the planner, which
// alone gives it meaning.
type Policy struct {
	seal
	ID      PolicyID `pb:"1" json:"id"`
	UID     string   `pb:"2" json:"uid"`
	Version uint64   `pb:"3" json:"version"`
	Spec    []byte   `pb:"4" json:"spec" max:"1048576"`
	History Trail    `pb:"5" json:"history"`
}

// Table is TablePolicies.
func (*Policy) Table() Table { return TablePolicies }

// Key is the policy's id.
func (p *Policy) Key() string { return string(p.ID) }

// PutPolicy adds or replaces a policy; an older version of the same object is refused.
type PutPolicy struct {
	ID      PolicyID `pb:"1"`
	UID     string   `pb:"2"`
	Version uint64   `pb:"3"`
	Spec    []byte   `pb:"4" max:"1048576"`
}

// Kind is KindPutPolicy.
func (*PutPolicy) Kind() Kind { return KindPutPolicy }

func (c *PutPolicy) apply(tx *txn) Outcome {
	if c.ID == "" {
		return refuse(RejectInvalid, "policy", "", "an id")
	}
	next := &Policy{ID: c.ID, UID: c.UID, Version: c.Version, Spec: c.Spec}
	old, ok := find[*Policy](tx.rows, TablePolicies, string(c.ID))
	if ok && old.UID == c.UID && c.Version < old.Version {
		return refuse(RejectStaleRevision, "policy "+string(c.ID), utoa(old.Version), utoa(c.Version))
	}
	if ok {
		next.History = tx.step(old.History, "changed")
	} else {
		next.History = tx.step(nil, "added")
	}
	tx.put(next)
	return tx.ok()
}

// DeletePolicy removes a policy.
type DeletePolicy struct {
	ID PolicyID `pb:"1"`
}

// Kind is KindDeletePolicy.
func (*DeletePolicy) Kind() Kind { return KindDeletePolicy }

func (c *DeletePolicy) apply(tx *txn) Outcome {
	p, ok := find[*Policy](tx.rows, TablePolicies, string(c.ID))
	if !ok {
		return refuse(RejectNotFound, "policy "+string(c.ID), "", "")
	}
	if out, wait := tx.quarantined("policy " + string(c.ID)); wait {
		return out
	}
	tx.bury(p, p.History, "gone")
	return tx.ok()
}
