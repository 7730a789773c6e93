// SPDX-License-Identifier: Apache-2.0

package fsm

import "slices"

// StepAside is said by a member that is being drained, once the others do without it: its BGP sessions end when it reads
// this. They open again when the drain ends.
type StepAside struct {
	Name  string   `pb:"1"`
	Since Revision `pb:"2"` // of the drain
}

// Kind is KindStepAside.
func (*StepAside) Kind() Kind { return KindStepAside }

// It is refused to a member that announces while no other one that stays has announced what was there when the drain began:
// the last one never leaves.
func (c *StepAside) apply(tx *txn) Outcome {
	subject := "member " + c.Name
	d, drained := find[*Drain](tx.rows, TableDrains, drainKey(DrainMember, c.Name))
	switch {
	case !drained:
		return refuse(RejectNotFound, "drain of "+subject, "", "")
	case d.Since != c.Since:
		return refuse(RejectStaleRevision, "drain of "+subject, d.Since.String(), c.Since.String())
	case !d.Aside.IsZero():
		return tx.ok()
	case tx.announces(c.Name) && !slices.ContainsFunc(list[*Member](tx.rows, TableMembers), func(m *Member) bool {
		return !tx.drained(DrainMember, m.Name) && !m.Announced.Before(d.Since)
	}):
		return refuse(RejectInUse, subject, "", "another member that is not drained and announces")
	}
	next := *d
	next.Aside, next.History = tx.revision(), tx.step(d.History, "aside")
	tx.put(&next)
	return tx.ok()
}

// announces tells whether a member ever announced in its newest run.
func (tx *txn) announces(member string) bool {
	return slices.ContainsFunc(list[*Member](tx.rows, TableMembers), func(m *Member) bool {
		return m.Name == member && !m.Announced.IsZero()
	})
}

// Aside tells whether a member has stepped aside: it has no BGP sessions, or is about to end them.
func (v *View) Aside(member string) bool {
	d, drained := Get[*Drain](v, TableDrains, drainKey(DrainMember, member))
	return drained && !d.Aside.IsZero()
}

// Speakers lists the members that are to have BGP sessions: those that have not stepped aside, in order of their servers.
func (v *View) Speakers() []*Member {
	members := List[*Member](v, TableMembers)
	if v.Count(TableDrains) == 0 {
		return members
	}
	return slices.DeleteFunc(slices.Clone(members), func(m *Member) bool { return v.Aside(m.Name) })
}

// mayDrain tells whether a member may be drained besides those that are: the others have to be a majority, or, in a group of
// two, somebody.
func (tx *txn) mayDrain(member string) bool {
	names, drained := map[string]bool{}, 1
	for _, m := range list[*Member](tx.rows, TableMembers) {
		if !names[m.Name] && m.Name != member && tx.drained(DrainMember, m.Name) {
			drained++
		}
		names[m.Name] = true
	}
	return drained <= max((len(names)-1)/2, min(len(names)/2, 1))
}

func (tx *txn) drained(of DrainOf, name string) bool {
	_, drained := find[*Drain](tx.rows, TableDrains, drainKey(of, name))
	return drained
}
