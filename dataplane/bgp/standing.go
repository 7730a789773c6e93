// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Revision says how new a set of routes is: the epoch of the group, then the index in its log. It never runs back.
type Revision struct {
	Epoch, Index uint64
}

// Compare returns a negative number if r is older than s, 0 if they are equal, a positive one if r is newer.
func (r Revision) Compare(s Revision) int {
	return cmp.Or(cmp.Compare(r.Epoch, s.Epoch), cmp.Compare(r.Index, s.Index))
}

// String returns epoch/index.
func (r Revision) String() string { return fmt.Sprintf("%d/%d", r.Epoch, r.Index) }

// Never is the silence of a group that was not heard of in this run.
const Never time.Duration = math.MaxInt64

// Contact is how a speaker's owner stands with the group that decides.
type Contact struct {
	// Silence is the time since the moment as of which the routes are surely all that was committed: whoever hears its leader
	// and does not get its entries is as good as out of contact. Never before that happened in this run.
	Silence time.Duration
	// Commit is the newest commit index learned from a leader in this run; 0 before that. It is the leader's own index,
	// not cut down to what has arrived here, and counts only once the leader committed an entry of its own term: before
	// that a leader may know less than was committed.
	Commit uint64
	// Applied is the index up to which the log has been applied here.
	Applied uint64
}

// Rules are the times by which a speaker comes back, steps aside and returns to its rank. Zero fields mean the defaults.
type Rules struct {
	DemoteAfter   time.Duration // silence after which paths are demoted: longer than an election takes. 3 s
	Quiet         time.Duration // how long contact must hold, once caught up, before paths regain their rank. 1 s
	RestartWindow time.Duration // how long to wait for a leader before announcing what was announced last. 10 s
}

func (r Rules) withDefaults() Rules {
	r.DemoteAfter = cmp.Or(r.DemoteAfter, 3*time.Second)
	r.Quiet = cmp.Or(r.Quiet, time.Second)
	r.RestartWindow = cmp.Or(r.RestartWindow, 10*time.Second)
	return r
}

// Situation is all that the rules look at.
type Situation struct {
	Now     time.Duration // on a monotonic clock
	Contact Contact
	Record  Revision  // of the routes that the record asks for here
	Stored  *Revision // of the routes that an earlier run announced last; nil if there are none
}

// Verdict is what the rules say.
type Verdict struct {
	Open       bool   // announce at all; once true it stays so
	Demoted    bool   // behind every other speaker
	FromStored bool   // what an earlier run announced, since the record is still older than that
	Reason     string // for people
}

// Standing applies the rules, remembering what has to be remembered between two looks. The zero value is a speaker that
// has just started.
//
//   - A speaker opens once it has applied a commit index learned from a leader in this run: before that its record may
//     be anything from the last snapshot on. If none comes within the restart window, it announces, demoted, what an
//     earlier run announced last, and nothing older than that; if there is no such thing, it goes on waiting.
//   - An open speaker never closes. It is demoted when the group was silent for longer than an election takes, and
//     undemoted once it has applied the commit index seen when contact returned and contact has held for a quiet time
//     after that. An ordinary election changes nothing.
type Standing struct {
	started bool
	since   time.Duration // of the first look
	open    bool
	demoted bool
	goal    uint64        // commit index to be applied before opening, or before regaining the rank; 0: not seen yet
	caught  bool          // the goal has been applied
	at      time.Duration // when it was
}

// Look takes in the situation and says what to do.
func (s *Standing) Look(r Rules, x Situation) Verdict {
	r = r.withDefaults()
	if !s.started {
		s.started, s.since = true, x.Now
	}
	inContact := x.Contact.Silence <= r.DemoteAfter
	stale := x.Stored != nil && x.Record.Compare(*x.Stored) < 0
	if !s.open {
		s.waitToOpen(r, x, inContact, stale)
	} else {
		s.stayOpen(r, x, inContact, stale)
	}
	return Verdict{
		Open: s.open, Demoted: s.open && s.demoted, FromStored: s.open && stale,
		Reason: s.reason(inContact, stale),
	}
}

func (s *Standing) waitToOpen(r Rules, x Situation, inContact, stale bool) {
	if s.goal == 0 {
		s.goal = x.Contact.Commit
	}
	switch {
	case s.goal > 0 && x.Contact.Applied >= s.goal && !stale:
		s.open, s.demoted = true, !inContact
	case x.Now-s.since >= r.RestartWindow && x.Stored != nil:
		s.open, s.demoted = true, true
	default:
		return
	}
	s.goal = 0
}

func (s *Standing) stayOpen(r Rules, x Situation, inContact, stale bool) {
	if !inContact {
		s.demoted, s.goal, s.caught = true, 0, false
		return
	}
	if !s.demoted {
		return
	}
	if s.goal == 0 {
		s.goal = x.Contact.Commit
	}
	if s.goal == 0 || x.Contact.Applied < s.goal || stale {
		return
	}
	if !s.caught {
		s.caught, s.at = true, x.Now
	}
	if x.Now-s.at >= r.Quiet {
		s.demoted, s.goal, s.caught = false, 0, false
	}
}

func (s *Standing) reason(inContact, stale bool) string {
	switch {
	case !s.open && s.goal == 0:
		return "waiting for a leader"
	case !s.open:
		return fmt.Sprintf("catching up with index %d", s.goal)
	case !s.demoted:
		return "in contact with the group"
	case !inContact && stale:
		return "no leader since the start: announcing what was announced before it"
	case !inContact:
		return "out of contact with the group"
	case s.goal == 0:
		return "in contact again: waiting for the leader's commit index"
	case !s.caught:
		return fmt.Sprintf("in contact again: catching up with index %d", s.goal)
	}
	return "in contact again: waiting for it to hold"
}

// String says in words what is announced.
func (v Verdict) String() string {
	switch {
	case !v.Open:
		return "closed"
	case v.Demoted && v.FromStored:
		return "open demoted stored"
	case v.Demoted:
		return "open demoted"
	case v.FromStored:
		return "open stored"
	}
	return "open"
}
