// SPDX-License-Identifier: Apache-2.0

package fsm

import "slices"

// Hold is a mass change that waits for an operator's word (design §5): what would be removed, and why it
// looks more like a fault than like a wish.
type Hold struct {
	seal
	ID       HoldID   `pb:"1" json:"id"`
	Of       string   `pb:"2" json:"of"` // kind of the objects
	Subjects []string `pb:"3" json:"subjects"`
	Why      string   `pb:"4" json:"why"`
	Since    Revision `pb:"5" json:"since"`
	Released bool     `pb:"6" json:"released"`
	History  Trail    `pb:"7" json:"history"`
}

// OfSource is what a hold is of that stands for a whole source which ran back, by its name.
const OfSource = "Source"

// Table is TableHolds.
func (*Hold) Table() Table { return TableHolds }

// Key is the hold's id.
func (h *Hold) Key() string { return string(h.ID) }

// PutHold records a hold, or what it holds by now. A released one stays released for its subjects only: a
// changed set waits for a new word.
type PutHold struct {
	ID       HoldID   `pb:"1"`
	Of       string   `pb:"2"`
	Subjects []string `pb:"3"`
	Why      string   `pb:"4"`
}

// Kind is KindPutHold.
func (*PutHold) Kind() Kind { return KindPutHold }

func (c *PutHold) apply(tx *txn) Outcome {
	if c.ID == "" || len(c.Subjects) == 0 {
		return refuse(RejectInvalid, "hold "+string(c.ID), "", "an id and subjects")
	}
	next := &Hold{ID: c.ID, Of: c.Of, Subjects: c.Subjects, Why: c.Why, Since: tx.revision()}
	old, ok := find[*Hold](tx.rows, TableHolds, string(c.ID))
	if ok {
		next.Since, next.History = old.Since, tx.step(old.History, "holds "+utoa(uint64(len(c.Subjects))))
		next.Released = old.Released && slices.Equal(old.Subjects, c.Subjects)
	} else {
		next.History = tx.step(nil, "holds "+utoa(uint64(len(c.Subjects))))
	}
	tx.put(next)
	return tx.ok()
}

// ReleaseHold is the operator's word: the change may go ahead.
type ReleaseHold struct {
	ID HoldID `pb:"1"`
}

// Kind is KindReleaseHold.
func (*ReleaseHold) Kind() Kind { return KindReleaseHold }

func (c *ReleaseHold) apply(tx *txn) Outcome {
	h, ok := find[*Hold](tx.rows, TableHolds, string(c.ID))
	if !ok {
		return refuse(RejectNotFound, "hold "+string(c.ID), "", "")
	}
	if h.Released {
		return tx.ok()
	}
	next := *h
	next.Released = true
	next.History = tx.step(h.History, "released")
	tx.put(&next)
	return tx.ok()
}

// DeleteHold removes a hold that is over: carried out, or no longer asked for.
type DeleteHold struct {
	ID HoldID `pb:"1"`
}

// Kind is KindDeleteHold.
func (*DeleteHold) Kind() Kind { return KindDeleteHold }

func (c *DeleteHold) apply(tx *txn) Outcome {
	h, ok := find[*Hold](tx.rows, TableHolds, string(c.ID))
	if !ok {
		return refuse(RejectNotFound, "hold "+string(c.ID), "", "")
	}
	tx.bury(h, h.History, "over")
	return tx.ok()
}
