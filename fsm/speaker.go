// SPDX-License-Identifier: Apache-2.0

package fsm

// Speaking is what a node says of its own BGP side. The zero value is a node that never had one. From format 2 on.
type Speaking struct {
	// Speaks says that the node may have announced something that a switch still holds: it says so before it is told what to
	// announce, and takes it back only once nothing can be left anywhere.
	Speaks bool `pb:"1" json:"speaks"`
	// Announced is the newest revision whose paths of this node are on the wire, Withdrawn the newest that no switch holds
	// a path of this node against. They outlive a boot: what a switch dropped it has not got back.
	Announced Revision `pb:"2" json:"announced"`
	Withdrawn Revision `pb:"3" json:"withdrawn"`
	// Excused is the newest withdrawal that ended without this node's word, as that of a Member.
	Excused Revision `pb:"4" json:"excused,omitzero"`
	// Absence is how long its agent has not been heard under this boot.
	Absence Absence `pb:"5" json:"absence,omitzero"`
	// Sessions are those that count as open, until it says something else. They outlive its boots.
	Sessions Sessions `pb:"6" json:"sessions,omitzero"`
}

// Equal tells whether s and o say the same.
func (s Speaking) Equal(o Speaking) bool {
	return s.Speaks == o.Speaks && s.Announced == o.Announced && s.Withdrawn == o.Withdrawn && s.Excused == o.Excused && s.Absence == o.Absence &&
		s.Sessions.Equal(o.Sessions)
}

// MayBeHeld tells whether a switch may hold a path of the node that was withdrawn at a revision.
func (s Speaking) MayBeHeld(since Revision) bool { return s.Speaks && s.Withdrawn.Before(since) }

// ReportSpeakers carries what nodes say of their BGP sides, coalesced by the proposer.
type ReportSpeakers struct {
	Marks []SpeakerMark `pb:"1"`
}

// SpeakerMark is what one node says. Its revisions are those of Speaking; older ones than are known count for nothing.
type SpeakerMark struct {
	Node      NodeID   `pb:"1"`
	Boot      BootID   `pb:"2" max:"128"`
	Speaks    bool     `pb:"3"`
	Announced Revision `pb:"4"`
	Withdrawn Revision `pb:"5"`
	// Sessions are those that count as open, in order of peers; not told, they are as they were.
	Sessions Sessions `pb:"6"`
}

// News tells whether a node's row lacks what a mark says.
func (m SpeakerMark) News(n *Node) bool {
	return n.Speaking.Speaks != m.Speaks || n.Speaking.Announced.Before(m.Announced) || n.Speaking.Withdrawn.Before(m.Withdrawn) || m.NewSessions(n)
}

// NewSessions tells whether a mark says of a node's sessions what its row does not have.
func (m SpeakerMark) NewSessions(n *Node) bool {
	return m.Sessions.Told && !m.Sessions.Equal(n.Speaking.Sessions)
}

// Kind is KindReportSpeakers.
func (*ReportSpeakers) Kind() Kind { return KindReportSpeakers }

// Marks of another boot are skipped one by one: they come from different nodes.
func (c *ReportSpeakers) apply(tx *txn) Outcome {
	if out, old := tx.formatBelow(formatBGP, "speakers of nodes"); old {
		return out
	}
	out := tx.ok()
	for _, m := range c.Marks {
		if o := tx.speaker(m); o.Reject != Accepted {
			out = o
		}
	}
	return out
}

func (tx *txn) speaker(m SpeakerMark) Outcome {
	subject := "speaker of node " + string(m.Node)
	n, ok := find[*Node](tx.rows, TableNodes, string(m.Node))
	switch {
	case !ok:
		return refuse(RejectNotFound, subject, "", "")
	case n.Boot != m.Boot || m.Boot == "":
		return refuse(RejectStaleBoot, subject, string(n.Boot), string(m.Boot))
	case tx.revision().Before(m.Announced) || tx.revision().Before(m.Withdrawn):
		return refuse(RejectStaleRevision, subject, n.Speaking.Withdrawn.String(), newer(m.Announced, m.Withdrawn).String())
	case !m.Sessions.inOrder():
		return refuse(RejectInvalid, subject, "", "peers in order")
	case !m.News(n) && n.Speaking.Absence == Absence{}:
		return tx.ok()
	}
	next := *n
	next.Speaking = Speaking{
		Speaks: m.Speaks, Announced: newer(n.Speaking.Announced, m.Announced), Withdrawn: newer(n.Speaking.Withdrawn, m.Withdrawn),
		Excused: n.Speaking.Excused, Sessions: n.Speaking.Sessions,
	}
	if m.Sessions.Told {
		next.Speaking.Sessions = m.Sessions
	}
	switch {
	case m.Speaks && !n.Speaking.Speaks:
		next.History = tx.step(n.History, "announces itself")
	case !m.Speaks && n.Speaking.Speaks:
		next.History = tx.step(n.History, "announces itself no more")
	}
	tx.put(&next)
	return tx.ok()
}
