// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"fmt"
	"sync"
	"time"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
)

// standing judges whether this member's record can be relied on.
type standing struct {
	contact func() cluster.Contact
	now     func() time.Time
	tuning  Tuning

	mu       sync.Mutex
	caughtUp time.Time      // when last seen so
	refusal  *admin.Refusal // nil: it can
	doubted  bool           // it should not, where another member can
}

func newStanding(o Options) *standing {
	now := o.Now()
	s := &standing{contact: o.Contact, now: o.Now, tuning: o.Tuning, caughtUp: now}
	s.look()
	return s
}

// look judges anew, and tells whether the judgement changed.
func (s *standing) look() (changed bool) {
	c, now := s.contact(), s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.caughtUp = latest(s.caughtUp, c.AsOf); c.CaughtUp() {
		s.caughtUp = now
	}
	before := s.refusal
	s.refusal = s.judge(c, now)
	s.doubted = s.refusal != nil || max(now.Sub(c.AsOf), c.Writing) > s.tuning.Doubt
	return (before == nil) != (s.refusal == nil)
}

func (s *standing) judge(c cluster.Contact, now time.Time) *admin.Refusal {
	const what, remedy = "serve this node", "another member is asked next"
	switch {
	case c.At.IsZero() || now.Sub(c.At) > s.tuning.Alone:
		return &admin.Refusal{Code: admin.NoQuorum, What: what, Why: "this member is out of touch with a quorum", Remedy: remedy}
	case c.Commit == 0:
		return &admin.Refusal{Code: admin.NotReady, What: what, Why: "this member does not know yet what is committed", Remedy: remedy}
	case now.Sub(s.caughtUp) > s.tuning.Behind:
		why := fmt.Sprintf("this member is behind: %d of %d applied", c.Applied, c.Commit)
		return &admin.Refusal{Code: admin.NotReady, What: what, Why: why, Remedy: remedy}
	case c.Writing > s.tuning.Behind:
		why := fmt.Sprintf("a write of this member's log has not come back for %s: it is behind by nobody knows how much", c.Writing.Round(time.Second))
		return &admin.Refusal{Code: admin.NotReady, What: what, Why: why, Remedy: remedy}
	}
	return nil
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// err is why agents are sent away, nil if they are not.
func (s *standing) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusal == nil {
		return nil
	}
	return s.refusal
}

// good tells whether no other member would serve agents better.
func (s *standing) good() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.doubted
}
