// SPDX-License-Identifier: Apache-2.0

package fsm

import "time"

// FormatAbsences is the first format in which the record says for how long speakers have been away. Before it each leader counts anew.
const FormatAbsences uint32 = 2

// Absence is for how long a speaker has been away, by what leaders counted one after the other, each by its own clock; time without a
// leader does not count. The zero value is of one that is there, or of which nobody said anything. From format 2 on.
type Absence struct {
	For time.Duration `pb:"1" json:"for"`
	// Holds is the longest that any peer asked its switch meanwhile to keep paths of a session that ended.
	Holds time.Duration `pb:"2" json:"holds"`
}

// ReportAbsences says how long speakers have been away that a leader does not hear; a zero Absence ends one. It ends by itself with the
// first that is committed of what a speaker says.
type ReportAbsences struct {
	Members []MemberAbsence `pb:"1"`
	Nodes   []NodeAbsence   `pb:"2"`
}

// MemberAbsence is that of one run of a member.
type MemberAbsence struct {
	Server  ServerID `pb:"1"`
	Run     string   `pb:"2"`
	Absence Absence  `pb:"3"`
}

// NodeAbsence is that of a node that announces itself, under one boot.
type NodeAbsence struct {
	Node    NodeID  `pb:"1"`
	Boot    BootID  `pb:"2" max:"128"`
	Absence Absence `pb:"3"`
}

// Kind is KindReportAbsences.
func (*ReportAbsences) Kind() Kind { return KindReportAbsences }

// What is of another run or boot, or runs back, is skipped, one by one: it concerns different speakers.
func (c *ReportAbsences) apply(tx *txn) Outcome {
	if out, old := tx.formatBelow(FormatAbsences, "absences of speakers"); old {
		return out
	}
	out := tx.ok()
	for _, a := range c.Members {
		subject := "absence of member " + string(a.Server)
		m, ok := find[*Member](tx.rows, TableMembers, string(a.Server))
		switch {
		case !ok || m.Run != a.Run:
			out = refuse(RejectStaleRevision, subject, "", a.Run)
		case !a.Absence.follows(m.Absence):
			out = refuse(RejectInvalid, subject, m.Absence.For.String(), a.Absence.For.String())
		case a.Absence != m.Absence:
			next := *m
			next.Absence = a.Absence
			tx.put(&next)
		}
	}
	for _, a := range c.Nodes {
		subject := "absence of node " + string(a.Node)
		n, ok := find[*Node](tx.rows, TableNodes, string(a.Node))
		switch {
		case !ok || n.Boot != a.Boot || !n.Speaking.Speaks || n.Liveness == NodeUp:
			out = refuse(RejectStaleBoot, subject, "", string(a.Boot))
		case !a.Absence.follows(n.Speaking.Absence):
			out = refuse(RejectInvalid, subject, n.Speaking.Absence.For.String(), a.Absence.For.String())
		case a.Absence != n.Speaking.Absence:
			next := *n
			next.Speaking.Absence = a.Absence
			tx.put(&next)
		}
	}
	return out
}

// follows tells whether a may be said after what was said before: it goes on from there, or ends it.
func (a Absence) follows(before Absence) bool {
	return a == Absence{} || a.For >= 0 && a.For >= before.For && a.Holds > 0 && a.Holds >= before.Holds
}

// String says it to people; empty of one that is there.
func (a Absence) String() string {
	if a == (Absence{}) {
		return ""
	}
	return a.For.Round(time.Second).String() + " of " + a.Holds.Round(time.Second).String()
}
