// SPDX-License-Identifier: Apache-2.0

package fsm

import "slices"

// Drain is an operator's word that new flows shall go elsewhere: past a node, or past a Service; or that the group shall do
// without a member. It lasts until an operator ends it, or until what it is of is gone. How far it has come is derived from
// routes and marks.
type Drain struct {
	seal
	Of      DrainOf  `pb:"1" json:"of"`
	Name    string   `pb:"2" json:"name"`
	Since   Revision `pb:"3" json:"since"`
	History Trail    `pb:"4" json:"history"`
	// Aside is when a member that is drained said that the others do without it; zero before. See StepAside.
	Aside Revision `pb:"70" json:"aside"`
}

// DrainOf says what kind of thing is drained.
type DrainOf string

// What can be drained.
const (
	DrainNode    DrainOf = "node"    // by NodeID
	DrainService DrainOf = "service" // by ServiceID
	DrainMember  DrainOf = "member"  // by Member.Name
)

// FormatDrains is the first format with drains: members before it cannot read them, and end where they come to one.
const FormatDrains = 2

// Table is TableDrains.
func (*Drain) Table() Table { return TableDrains }

// Key is the kind and the name of what is drained.
func (d *Drain) Key() string { return drainKey(d.Of, d.Name) }

func drainKey(of DrainOf, name string) string { return string(of) + "/" + name }

// Drained tells whether something is being drained.
func (v *View) Drained(of DrainOf, name string) bool {
	_, drained := Get[*Drain](v, TableDrains, drainKey(of, name))
	return drained
}

// BeginDrain has new flows go past something that the record knows, or the group do without a member. To say so again
// changes nothing. Only a minority of members can be drained at a time, and one of two.
type BeginDrain struct {
	Of   DrainOf `pb:"1"`
	Name string  `pb:"2"`
}

// Kind is KindBeginDrain.
func (*BeginDrain) Kind() Kind { return KindBeginDrain }

func (c *BeginDrain) apply(tx *txn) Outcome {
	subject := string(c.Of) + " " + c.Name
	if out, old := tx.formatBelow(FormatDrains, "drain of "+subject); old {
		return out
	}
	if !tx.drainable(c.Of, c.Name) {
		return refuse(RejectNotFound, subject, "", "")
	}
	if tx.drained(c.Of, c.Name) {
		return tx.ok()
	}
	if c.Of == DrainMember && !tx.mayDrain(c.Name) {
		return refuse(RejectInUse, subject, "", "a majority of members that are not drained")
	}
	tx.put(&Drain{Of: c.Of, Name: c.Name, Since: tx.revision(), History: tx.step(nil, "drain")})
	return tx.ok()
}

// EndDrain takes a drain back. To say so again changes nothing.
type EndDrain struct {
	Of   DrainOf `pb:"1"`
	Name string  `pb:"2"`
}

// Kind is KindEndDrain.
func (*EndDrain) Kind() Kind { return KindEndDrain }

func (c *EndDrain) apply(tx *txn) Outcome {
	if !tx.endDrain(c.Of, c.Name, "ended") && !tx.drainable(c.Of, c.Name) {
		return refuse(RejectNotFound, string(c.Of)+" "+c.Name, "", "")
	}
	return tx.ok()
}

// drainable tells whether the record knows something of a kind that can be drained.
func (tx *txn) drainable(of DrainOf, name string) bool {
	known := false
	switch of {
	case DrainNode:
		_, known = find[*Node](tx.rows, TableNodes, name)
	case DrainService:
		_, known = find[*Service](tx.rows, TableServices, name)
	case DrainMember:
		known = slices.ContainsFunc(list[*Member](tx.rows, TableMembers), func(m *Member) bool { return m.Name == name })
	}
	return known
}

// endDrain ends the drain of something, if there is one.
func (tx *txn) endDrain(of DrainOf, name, why string) bool {
	d, drained := find[*Drain](tx.rows, TableDrains, drainKey(of, name))
	if drained {
		tx.bury(d, d.History, why)
	}
	return drained
}
