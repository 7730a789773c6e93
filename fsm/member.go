// SPDX-License-Identifier: Apache-2.0

package fsm

import "fmt"

// Member is what one Raft server last said of itself.
type Member struct {
	seal
	Server  ServerID `pb:"1" json:"server"`
	Name    string   `pb:"2" json:"name"`
	Raft    string   `pb:"3" json:"raft"` // host:port of the Raft listener
	API     string   `pb:"4" json:"api"`  // host:port of the API listener
	Format  uint32   `pb:"5" json:"format"`
	Version string   `pb:"6" json:"version"`
	Run     string   `pb:"7" json:"run"` // drawn at every start; marks of an earlier run do not count
	// Announced is the newest revision whose routes this member has put on all its BGP sessions.
	Announced Revision `pb:"8" json:"announced"`
	// Withdrawn is the newest revision that no switch holds a path of this member against: what its routes lack has been
	// taken from each switch, or the switch cannot have kept it so long. From format 2 on; see WithdrawnIn.
	Withdrawn Revision `pb:"9" json:"withdrawn"`
	// Excused is the newest withdrawal that ended without this member's word: until Withdrawn is as new, its sessions may
	// announce what nobody else knows of. From format 2 on.
	Excused Revision `pb:"10" json:"excused,omitzero"`
	// Sessions are those that count as open. They outlive a run: a new one says nothing of them until it knows better. From format 2 on.
	Sessions Sessions `pb:"11" json:"sessions,omitzero"`
	// Absence is how long this run of it has been away. From format 2 on.
	Absence Absence `pb:"12" json:"absence,omitzero"`
}

// Alike tells whether two states of a member differ in nothing but what it announced, to whom, and how long it has been away.
func (m *Member) Alike(o *Member) bool {
	return m.Server == o.Server && m.Name == o.Name && m.Raft == o.Raft && m.API == o.API && m.Format == o.Format && m.Version == o.Version &&
		m.Run == o.Run && m.Withdrawn == o.Withdrawn && m.Excused == o.Excused
}

// FormatWithdrawn is the first format in which members tell apart what they announced and what they withdrew. Before it
// they report as announced what is both.
const FormatWithdrawn uint32 = 2

// WithdrawnIn is the revision up to which a member has withdrawn its paths, in a record of a format.
func (m *Member) WithdrawnIn(format uint32) Revision {
	if format < FormatWithdrawn {
		return m.Announced
	}
	return m.Withdrawn
}

// Table is TableMembers.
func (*Member) Table() Table { return TableMembers }

// Key is the server id.
func (m *Member) Key() string { return string(m.Server) }

// ReportMember is sent by a member after each start, before it counts for anything.
type ReportMember struct {
	Server  ServerID `pb:"1"`
	Name    string   `pb:"2"`
	Raft    string   `pb:"3"`
	API     string   `pb:"4"`
	Format  uint32   `pb:"5"`
	Version string   `pb:"6"`
	Run     string   `pb:"7"`
}

// Kind is KindReportMember.
func (*ReportMember) Kind() Kind { return KindReportMember }

func (c *ReportMember) apply(tx *txn) Outcome {
	if c.Server == "" || c.Run == "" {
		return refuse(RejectInvalid, "member "+string(c.Server), "", "a server id and a run")
	}
	if f := tx.group().Format; c.Format < f {
		return refuse(RejectFormat, "member "+string(c.Server), fmt.Sprint(f), fmt.Sprint(c.Format))
	}
	next := &Member{
		Server: c.Server, Name: c.Name, Raft: c.Raft, API: c.API, Format: c.Format, Version: c.Version, Run: c.Run,
	}
	if old, ok := find[*Member](tx.rows, TableMembers, string(c.Server)); ok {
		next.Excused, next.Sessions = old.Excused, old.Sessions
		if old.Run == c.Run {
			next.Announced, next.Withdrawn = old.Announced, old.Withdrawn
		}
	}
	tx.put(next)
	return tx.ok()
}

// ReportAnnounced carries the high-water marks of members' BGP sides, coalesced by the proposer.
type ReportAnnounced struct {
	Marks []AnnouncedMark `pb:"1"`
}

// AnnouncedMark says up to where one member's routes are on the wire of its sessions, and up to where no switch holds more
// than them. One that announces nothing, since it speaks no BGP, says the latter alone.
type AnnouncedMark struct {
	Server    ServerID `pb:"1"`
	Run       string   `pb:"2"`
	Upto      Revision `pb:"3"` // zero: nothing is said of what is on the wire
	Withdrawn Revision `pb:"4"` // see Member.Withdrawn; zero before format 2
}

// unsound tells whether a mark is of a record that is still to come, or takes back what it says is on the wire.
func (mark AnnouncedMark) unsound(now Revision) bool {
	return now.Before(mark.Upto) || now.Before(mark.Withdrawn) || !mark.Upto.IsZero() && mark.Upto.Before(mark.Withdrawn)
}

// Kind is KindReportAnnounced.
func (*ReportAnnounced) Kind() Kind { return KindReportAnnounced }

// Marks that are stale, or of a run that ended, are skipped one by one: they come from different members.
func (c *ReportAnnounced) apply(tx *txn) Outcome {
	out := tx.ok()
	for _, mark := range c.Marks {
		m, ok := find[*Member](tx.rows, TableMembers, string(mark.Server))
		if !ok || m.Run != mark.Run || !mark.News(m) || mark.unsound(tx.revision()) {
			out = refuse(RejectStaleRevision, "member "+string(mark.Server), "", mark.Upto.String())
			continue
		}
		if have := tx.group().Format; have < FormatWithdrawn && !mark.Withdrawn.IsZero() {
			out = refuse(RejectFormat, "member "+string(mark.Server), utoa(uint64(have)), utoa(uint64(FormatWithdrawn)))
			continue
		}
		next := *m
		next.Announced, next.Withdrawn = newer(m.Announced, mark.Upto), newer(m.Withdrawn, mark.Withdrawn)
		next.Absence = Absence{}
		tx.put(&next)
	}
	return out
}

// News tells whether a member's row lacks what a mark says.
func (mark AnnouncedMark) News(m *Member) bool {
	return m.Announced.Before(mark.Upto) || m.Withdrawn.Before(mark.Withdrawn)
}

func newer(a, b Revision) Revision {
	if a.Before(b) {
		return b
	}
	return a
}

// RemoveMember forgets a server that left the Raft configuration.
type RemoveMember struct {
	Server ServerID `pb:"1"`
}

// Kind is KindRemoveMember.
func (*RemoveMember) Kind() Kind { return KindRemoveMember }

func (c *RemoveMember) apply(tx *txn) Outcome {
	m, ok := find[*Member](tx.rows, TableMembers, string(c.Server))
	if !ok {
		return refuse(RejectNotFound, "member "+string(c.Server), "", "")
	}
	tx.remove(m)
	if !tx.drainable(DrainMember, m.Name) {
		tx.endDrain(DrainMember, m.Name, "the member is gone")
	}
	return tx.ok()
}
