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
	if old, ok := find[*Member](tx.rows, TableMembers, string(c.Server)); ok && old.Run == c.Run {
		next.Announced = old.Announced
	}
	tx.put(next)
	return tx.ok()
}

// ReportAnnounced carries the high-water marks of members' BGP sides, coalesced by the proposer.
type ReportAnnounced struct {
	Marks []AnnouncedMark `pb:"1"`
}

// AnnouncedMark says that everything up to a revision is on the wire of one member's sessions.
type AnnouncedMark struct {
	Server ServerID `pb:"1"`
	Run    string   `pb:"2"`
	Upto   Revision `pb:"3"`
}

// Kind is KindReportAnnounced.
func (*ReportAnnounced) Kind() Kind { return KindReportAnnounced }

// Marks that are stale, or of a run that ended, are skipped one by one: they come from different members.
func (c *ReportAnnounced) apply(tx *txn) Outcome {
	out := tx.ok()
	for _, mark := range c.Marks {
		m, ok := find[*Member](tx.rows, TableMembers, string(mark.Server))
		if !ok || m.Run != mark.Run || !m.Announced.Before(mark.Upto) || tx.revision().Before(mark.Upto) {
			out = refuse(RejectStaleRevision, "member "+string(mark.Server), "", mark.Upto.String())
			continue
		}
		next := *m
		next.Announced = mark.Upto
		tx.put(&next)
	}
	return out
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
	return tx.ok()
}
