// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"strings"
	"unicode/utf8"
)

// Transition is one step in the life of a record, kept for `describe` and `why`. At is for people: no guard
// ever compares it.
type Transition struct {
	Revision    Revision `pb:"1" json:"revision"`
	AtUnixMilli int64    `pb:"3" json:"atUnixMilli"`
	What        string   `pb:"6" json:"what"`
	// Cause is shared by very many, so that each has a pointer to it; nobody writes to it.
	*Cause `pb:"inline"`
}

// Cause is who made a record take a step, in which term, and why.
type Cause struct {
	Term   uint64 `pb:"2" json:"term"`
	Actor  string `pb:"4" json:"actor"`
	Reason string `pb:"5" json:"reason,omitempty"`
}

// Who is the actor, without the certificate that proved it and the member that handed it on, which follow in parentheses.
func (c Cause) Who() string {
	who, _, _ := strings.Cut(c.Actor, " (")
	return who
}

// By gives the cause of a step, empty where nothing is known of it.
func (t Transition) By() Cause {
	if t.Cause == nil {
		return Cause{}
	}
	return *t.Cause
}

// Trail is a record's newest transitions, oldest first. Its bound is Settings.HistoryLimit.
type Trail []Transition

// with returns the trail plus one step, bounded; the receiver is left as it was, since records are immutable.
func (t Trail) with(step Transition, limit int) Trail {
	keep := t
	if len(keep) >= limit {
		keep = keep[len(keep)-limit+1:]
	}
	out := make(Trail, 0, len(keep)+1)
	return append(append(out, keep...), step)
}

// Grave keeps the trail of a record that is gone, so that "what became of it" has an answer. The number of
// graves is bounded by Settings.GraveLimit; the oldest go first, by index.
type Grave struct {
	seal
	Of      Table    `pb:"1" json:"of"`
	Name    string   `pb:"2" json:"name"`
	At      Revision `pb:"3" json:"at"`
	History Trail    `pb:"4" json:"history"`
	// UID tells lives of one name apart: that of a binding, a Service or a Node, for whoever still shows it. No two objects ever have one UID.
	UID string `pb:"5" json:"uid,omitempty"`
	// Origin is that of a binding.
	Origin Origin `pb:"6" json:"origin,omitzero"`
}

// Table is TableGraves.
func (g *Grave) Table() Table { return TableGraves }

// Key is the kind and name of what is gone: a newer grave replaces the older one of the same name.
func (g *Grave) Key() string {
	var room [keyRoom]byte
	return string(g.appendKey(room[:0]))
}

func (g *Grave) appendKey(b []byte) []byte { return append(append(append(b, g.Of...), '/'), g.Name...) }

// bury removes r and keeps its trail with one last step.
func (tx *txn) bury(r Record, trail Trail, what string) {
	tx.remove(r)
	limit := tx.group().Settings.graveLimit()
	g := &Grave{Of: r.Table(), Name: r.Key(), At: tx.revision(), History: tx.step(trail, what)}
	if tx.group().Format >= formatDrivers {
		g.lived(r)
	}
	tx.put(g)
	for tx.state.graves > limit {
		oldest, _ := firstRef[*Grave](tx.rows, TableGraves, string(refAge)+"\x00")
		tx.remove(oldest)
		tx.untrace(oldest.Origin)
	}
}

// lived keeps which life it is that ended.
func (g *Grave) lived(r Record) {
	switch r := r.(type) {
	case *Binding:
		g.UID, g.Origin = r.UID, r.Origin
	case *Service:
		g.UID = r.UID
	case *Node:
		g.UID = r.UID
	}
}

// maxStep is how long the text of one step may be, in bytes. It is for people, and a record has up to 64 of them.
const maxStep = 2 << 10

// step extends a trail by what the current command did.
func (tx *txn) step(trail Trail, what string) Trail {
	if tx.group().Format >= formatShortSteps && utf8.ValidString(what) { // what no record can hold is refused, and not mended
		what = Text(what, maxStep)
	}
	a := &tx.state.alike
	return trail.with(Transition{
		Revision: tx.revision(), AtUnixMilli: tx.item.AtUnixMilli, What: word(a, what),
		Cause: a.sameCause(Cause{Term: tx.term, Actor: tx.item.Actor, Reason: tx.item.Reason}),
	}, tx.group().Settings.historyLimit())
}
