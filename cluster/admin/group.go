// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"io"
	"time"
)

// Group is the member behind the services. What only the leader can do fails with NotLeader elsewhere, and is
// then surely not done. Errors that a person can mend are *Refusal; an error after which nobody knows is
// UnknownOutcome.
type Group interface {
	// Self is this member, as far as it can tell; only its names and addresses count.
	Self() Member
	// Leader is who leads as this member knows; ok is false while there is nobody.
	Leader() (leader Member, ok bool)
	// Leaderless is what it knows of why, while Leader knows nobody.
	Leaderless() Leaderless
	// Status is what this member knows by itself. It must not wait for others.
	Status(ctx context.Context) (Status, error)

	// DigestAt is that of this member's record at an index, in hex, once it got there; false if it does not know, or ctx ended.
	DigestAt(ctx context.Context, index uint64) (digest string, known bool)

	// AddVoter, AddNonvoter, Demote and Remove change the configuration. The quorum was judged on the
	// configuration at Change.Index; an implementation that can, refuses with NotReady if it is newer by now.
	AddVoter(ctx context.Context, server Member, change Change) error
	AddNonvoter(ctx context.Context, server Member, change Change) error
	Demote(ctx context.Context, id string, change Change) error
	Remove(ctx context.Context, id string, change Change) error

	// Transfer hands leadership to a voter, or to the most advanced one if id is empty.
	Transfer(ctx context.Context, id string, change Change) error
	// Snapshot takes one now and shortens the log.
	Snapshot(ctx context.Context, change Change) (Snapshot, error)
	// Backup writes the record. Without Change.Force it makes sure that this member leads.
	Backup(ctx context.Context, w io.Writer, change Change) (Backup, error)
	// Restore replaces the record by a backup in a new epoch, or tells with dryRun what would differ. It must
	// read to io.EOF before it changes anything: any other error of r means that the backup is not whole.
	Restore(ctx context.Context, r io.Reader, dryRun bool, change Change) (Restored, error)
	// Finalize raises the committed format, unless it is that new already, and gives the one that holds then. Every
	// server was asked whether it knows it; one that once reported otherwise has it refused.
	Finalize(ctx context.Context, format uint32, change Change) (uint32, error)
}

// Joiner is the part of a member that brings members together.
type Joiner interface {
	// Confirm is asked of members that are to found a group. Errors: BootstrapMismatch.
	Confirm(ctx context.Context, token string, members []Founder) (Confirmation, error)
	// Join takes the calling server in. Errors: NotLeader, Removed, RolledBack, NotReady.
	Join(ctx context.Context, request Joining) (Joined, error)
	// Report takes note of what a member runs and how far it is; it gives the committed format. Errors: NotLeader.
	Report(ctx context.Context, report Report) (format uint32, err error)
	// Leave forgets the calling server, which was removed and of which no switch holds a path. Errors: NotLeader; Invalid
	// if it still belongs.
	Leave(ctx context.Context, server Member) error
	// Remember gives what this member remembers of the calling server.
	Remember(server Member) Remembered
}

// Remembered is what a server told a member of itself, since that one started, and what the member holds itself.
type Remembered struct{ Term, Voted, LastTerm, LastIndex, HeldTerm, HeldIndex uint64 }

// Change says who wants a change, and why.
type Change struct {
	Actor  string // "operator/alice", proven by a certificate
	Reason string // the actor's words; may be empty
	Force  bool
	Index  uint64 // of the configuration that the change was judged on; 0: not judged
}

// Revision orders what a group decided.
type Revision struct{ Epoch, Index uint64 }

// Status is how a member sees the group.
type Status struct {
	Group         string
	Epoch         uint64
	Format        uint32 // committed
	Term          uint64
	Configuration uint64 // log index of the configuration; 0 if not known
	Former        bool   // it belonged to the group, and does not any more
	Members       []MemberStatus
}

// MemberStatus is one member with what is known of it. What only it can know is filled in for this member alone.
type MemberStatus struct {
	Member
	State       string        // Leader, Follower, Candidate, Shutdown; empty if not known
	Heard       bool          // LastContact counts
	LastContact time.Duration // since it last heard from the leader; 0 on the leader itself
	Term        uint64
	Applied     uint64
	Commit      uint64
	Format      uint32 // newest that its binary knows
	Version     string
	Group       string
	Epoch       uint64
	Digest      string // of its record at DigestAt, hex
	DigestAt    uint64
	ReachedAt   string        // where it says itself that its Raft port is; Address is what the configuration has
	Writing     time.Duration // for how long a write of its log or a vote has been waited for
	Announced   Revision
}

// Snapshot describes one.
type Snapshot struct {
	ID        string
	Index     uint64
	Term      uint64
	SizeBytes uint64
}

// Backup describes what was written.
type Backup struct {
	Group    string
	Revision Revision
	Format   uint32
	// SizeBytes and the SHA-256 are counted by the service.
}

// Restored tells what a restore did, or would do.
type Restored struct {
	Revision    Revision
	Differences []string // a line each, at most MaxDifferences
	More        uint64   // differences beyond those
}

// MaxDifferences bounds the answer of a dry run.
const MaxDifferences = 1000

// Founder is one of the members that are to found a group.
type Founder struct{ Name, Address string }

// Confirmation is a founder's answer.
type Confirmation struct {
	ServerID string
	Empty    bool // nothing was ever kept there; else there is a group already
}

// Joining is a server that wants to belong.
type Joining struct {
	Member
	Last    uint64 // newest log index that it holds, 0 for a new one
	Format  uint32
	Version string
}

// Joined tells what it belongs to now.
type Joined struct {
	Group  string
	Epoch  uint64
	Leader string // name
}

// Report is what a member tells the leader now and then.
type Report struct {
	Member
	Format    uint32
	Version   string
	Applied   Revision
	Announced Revision
}
