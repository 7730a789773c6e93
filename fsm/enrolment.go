// SPDX-License-Identifier: Apache-2.0

package fsm

import "time"

// Enrolment is the group's word that whoever shows a certain token once gets the certificate of a node's agent, or of a host's that is
// outside the cluster.
// The token itself is never in the record: ID is its SHA-256.
type Enrolment struct {
	seal
	ID   EnrolmentID `pb:"1" json:"id"`
	Node NodeID      `pb:"2" json:"node"`
	// TTL is how long the token is good for. It is waited out on the leader's monotonic clock, which then proposes
	// DeleteEnrolment; a new leader waits all of it.
	TTL     time.Duration `pb:"3" json:"ttl"`
	Since   Revision      `pb:"4" json:"since"`
	Used    bool          `pb:"5" json:"used"`
	History Trail         `pb:"6" json:"history"`
	// Outside says that Node is the name of a host outside the cluster, which is taken in when the token is used.
	Outside bool `pb:"50" json:"outside,omitempty"`
}

// EnrolmentID is the SHA-256 of a token, in lower-case hexadecimal.
type EnrolmentID string

// Table is TableEnrolments.
func (*Enrolment) Table() Table { return TableEnrolments }

// Key is the id.
func (e *Enrolment) Key() string { return string(e.ID) }

// PutEnrolment makes a token good for one use.
type PutEnrolment struct {
	ID   EnrolmentID   `pb:"1"`
	Node NodeID        `pb:"2"`
	TTL  time.Duration `pb:"3"`
	// Outside says that Node is the name of a host outside the cluster.
	Outside bool `pb:"50"`
}

// Kind is KindPutEnrolment.
func (*PutEnrolment) Kind() Kind { return KindPutEnrolment }

// formatEnrolments is the first format with enrolments: members before it cannot read them.
const formatEnrolments = 2

func (c *PutEnrolment) apply(tx *txn) Outcome {
	subject := "enrolment of node " + string(c.Node)
	if out, old := tx.formatBelow(formatEnrolments, subject); old {
		return out
	}
	if !hexSum(string(c.ID)) || c.Node == "" || c.TTL <= 0 {
		return refuse(RejectInvalid, subject, "", "a SHA-256 in hexadecimal, a node and a time")
	}
	if _, exists := find[*Enrolment](tx.rows, TableEnrolments, string(c.ID)); exists {
		return refuse(RejectExists, subject, string(c.ID), "a token of its own")
	}
	kind := "node "
	if c.Outside {
		kind = "host "
	}
	tx.put(&Enrolment{
		ID: c.ID, Node: c.Node, TTL: c.TTL, Outside: c.Outside, Since: tx.revision(), History: tx.step(nil, "offered to "+kind+string(c.Node)),
	})
	return tx.ok()
}

// hexSum tells whether text is 32 bytes in lower-case hexadecimal.
func hexSum(text string) bool {
	return len(text) == 64 && hexadecimal(text)
}

// UseEnrolment spends a token: of several who show it at once, one is accepted.
type UseEnrolment struct {
	ID   EnrolmentID `pb:"1"`
	Node NodeID      `pb:"2"` // that asks
	// Outside says that it is a host outside the cluster.
	Outside bool `pb:"50"`
}

// Kind is KindUseEnrolment.
func (*UseEnrolment) Kind() Kind { return KindUseEnrolment }

func (c *UseEnrolment) apply(tx *txn) Outcome {
	subject := "enrolment of node " + string(c.Node)
	e, ok := find[*Enrolment](tx.rows, TableEnrolments, string(c.ID))
	switch {
	case !ok:
		return refuse(RejectNotFound, subject, "", "a token that was offered and has not ended")
	case e.Node != c.Node:
		return refuse(RejectInvalid, subject, string(e.Node), string(c.Node))
	case e.Outside != c.Outside:
		return refuse(RejectInvalid, subject, "a token for "+whereabouts(e.Outside), "one for "+whereabouts(c.Outside))
	case e.Used:
		return refuse(RejectWrongState, subject, "used", "unused")
	}
	if e.Outside {
		if out := tx.admitHost(HostID(c.Node), "enrolled"); out.Reject != Accepted {
			return out
		}
	}
	next := *e
	next.Used, next.History = true, tx.step(e.History, "used")
	tx.put(&next)
	return tx.ok()
}

// whereabouts says for whom a token is.
func whereabouts(outside bool) string {
	if outside {
		return "a host outside the cluster"
	}
	return "a node"
}

// DeleteEnrolment ends a token: its time is over, or an operator takes it back.
type DeleteEnrolment struct {
	ID EnrolmentID `pb:"1"`
}

// Kind is KindDeleteEnrolment.
func (*DeleteEnrolment) Kind() Kind { return KindDeleteEnrolment }

func (c *DeleteEnrolment) apply(tx *txn) Outcome {
	e, ok := find[*Enrolment](tx.rows, TableEnrolments, string(c.ID))
	if !ok {
		return refuse(RejectNotFound, "enrolment "+string(c.ID), "", "")
	}
	tx.bury(e, e.History, "over")
	return tx.ok()
}
