// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
	"time"

	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cmd/internal/config"
)

// silentFor is for how long a member may hear from no leader and be called ready: longer than an election takes.
const silentFor = 10 * time.Second

// leaderlessOf is what a member knows of why nobody leads.
func leaderlessOf(c *config.Controller, s *cluster.Status, now time.Time) admin.Leaderless {
	l := admin.Leaderless{Member: c.Name, Obstacle: s.Obstacle, Heard: !s.Contact.At.IsZero()}
	if l.Heard {
		l.Silence = now.Sub(s.Contact.At)
	}
	for _, p := range s.Peers {
		if p.Voter {
			l.Voters = append(l.Voters, p.Name)
		}
	}
	if c.BootstrapToken != "" {
		for _, m := range c.Members {
			l.Founders = append(l.Founders, m.Name)
		}
	}
	return l
}

// leaderless tells why this member knows nobody who leads and what to do about it; empty if it knows one.
func (m *Member) leaderless() (why, remedy string) {
	if _, known := m.node.Leader(); known {
		return "", ""
	}
	s := m.node.Status()
	return leaderlessOf(&m.config, &s, time.Now()).Tell()
}

// hasRead tells whether this member's record is, or was at some time since it started, all that a leader said was committed. What a snapshot has is of
// some time before it stopped, and one that has no snapshot knows nothing.
func (m *Member) hasRead() bool {
	switch {
	case m.read.Load():
		return true
	case m.node == nil: // it is being opened
		return false
	}
	if id, _, _ := m.state.Identity(); id == "" || m.node.Contact().AsOf.IsZero() {
		return false
	}
	m.read.Store(true)
	return true
}

// starting tells why this member cannot say yet what the group's record has, and what to do about it; empty once it can.
func (m *Member) starting() (why, remedy string) {
	if m.hasRead() {
		return "", ""
	}
	if why, remedy = m.leaderless(); why != "" {
		return why, remedy
	}
	return m.config.Name + " is starting and has not read the group's record yet: " + progress(m.node.Contact()),
		"try again in some seconds, or ask another member (--server); `fairlead raft status` shows how far it is"
}

func progress(c cluster.Contact) string {
	return fmt.Sprintf("applied %d of %d", c.Applied, c.Commit)
}

// unready tells why a member cannot be counted on as far as its group goes; nil if it can.
func unready(c cluster.Contact, leaderless func() (why, remedy string), now time.Time) error {
	lack, remedy := leaderless()
	behind := !c.CaughtUp() && now.Sub(c.AsOf) > silentFor
	switch {
	case lack != "" && (behind || now.Sub(c.At) > silentFor):
		return fmt.Errorf("%s; %s", lack, remedy)
	case behind:
		return fmt.Errorf("behind: %s", progress(c))
	case c.Writing > silentFor:
		return fmt.Errorf("a write of its log has not come back for %s; look at the disk that has dataDir", c.Writing.Round(time.Second))
	}
	return nil
}
