// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"fairlead.io/fairlead/cluster/admin"
)

// sharedGroup is what the members agree on.
type sharedGroup struct {
	mu      sync.Mutex
	members []admin.MemberStatus
	leader  string // server id; empty: nobody
	index   uint64
	done    []string // what was carried out: "m1: remove m3-x for operator/alice (reason), force"
	record  []byte
}

func (g *sharedGroup) history() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.done)
}

func (g *sharedGroup) edit(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
}

// memberView is the group as one member has it.
type memberView struct {
	group    *sharedGroup
	id       string
	believes string // whom it takes for the leader, if not the one who is
	digest   string // of its record, if not the others'
	digestAt uint64 // 42 without it
	writing  time.Duration
	knows    []admin.MemberStatus // a former member: whom it takes for the members

	leaderless admin.Leaderless
	reachedAt  string // where it says that it is; where the configuration has it without

	onSnapshot func() // runs while a snapshot is taken
}

func (v *memberView) Self() admin.Member {
	return admin.Member{ID: v.id, Name: strings.TrimSuffix(v.id, "-x")}
}

func (v *memberView) Leader() (admin.Member, bool) {
	v.group.mu.Lock()
	defer v.group.mu.Unlock()
	leader := v.group.leader
	if v.believes != "" {
		leader = v.believes
	}
	for _, m := range v.group.members {
		if m.ID == leader {
			return m.Member, true
		}
	}
	return admin.Member{}, false
}

func (v *memberView) Leaderless() admin.Leaderless {
	l := v.leaderless
	l.Member = v.Self().Name
	for _, m := range v.group.members {
		l.Voters = append(l.Voters, m.Name)
	}
	return l
}

func (v *memberView) Status(context.Context) (admin.Status, error) {
	v.group.mu.Lock()
	defer v.group.mu.Unlock()
	members := v.group.members
	if v.knows != nil {
		members = v.knows
	}
	status := admin.Status{Group: "g1", Epoch: 1, Format: 1, Term: 7, Configuration: v.group.index}
	status.Former = v.knows != nil
	for _, m := range members {
		m.Leader = m.ID == v.group.leader
		if v.id != v.group.leader {
			m.Healthy = false // only the leader knows
		}
		if m.ID == v.id {
			m.State, m.Term, m.Applied, m.Commit, m.Digest, m.Version, m.Group, m.Epoch = "Follower", 7, 42, 42, "d1", "v1", "g1", 1
			m.DigestAt, m.Writing = cmp.Or(v.digestAt, 42), v.writing
			m.ReachedAt = cmp.Or(v.reachedAt, m.Address)
			if v.digest != "" {
				m.Digest = v.digest
			}
			m.Heard, m.LastContact = true, 5*time.Millisecond
			if m.Leader {
				m.State, m.LastContact = "Leader", 0
			}
		}
		status.Members = append(status.Members, m)
	}
	return status, nil
}

// DigestAt knows the index of the record that Status tells of, alone.
func (v *memberView) DigestAt(ctx context.Context, index uint64) (string, bool) {
	status, _ := v.Status(ctx)
	for _, m := range status.Members {
		if m.ID == v.id && m.DigestAt == index {
			return m.Digest, true
		}
	}
	return "", false
}

// serial is what is another one in each run.
var serial = regexp.MustCompile(`certificate [0-9a-f]+`)

// do carries a change out if this member leads.
func (v *memberView) do(what string, change admin.Change, how func(*sharedGroup)) error {
	v.group.mu.Lock()
	defer v.group.mu.Unlock()
	if v.id != v.group.leader {
		return admin.NotLeader
	}
	how(v.group)
	v.group.index++
	entry := fmt.Sprintf("%s: %s for %s (%s)", v.Self().Name, what, serial.ReplaceAllString(change.Actor, "certificate N"), change.Reason)
	if change.Force {
		entry += ", force"
	}
	v.group.done = append(v.group.done, entry)
	return nil
}

func (v *memberView) set(server admin.Member, voter bool) func(*sharedGroup) {
	return func(g *sharedGroup) {
		server.Voter = voter
		for i := range g.members {
			if g.members[i].ID == server.ID {
				g.members[i].Voter = voter
				return
			}
		}
		g.members = append(g.members, admin.MemberStatus{Member: server})
	}
}

func (v *memberView) AddVoter(_ context.Context, s admin.Member, c admin.Change) error {
	return v.do("add voter "+s.ID, c, v.set(s, true))
}

func (v *memberView) AddNonvoter(_ context.Context, s admin.Member, c admin.Change) error {
	return v.do("add non-voter "+s.ID, c, v.set(s, false))
}

func (v *memberView) Demote(_ context.Context, id string, c admin.Change) error {
	return v.do("demote "+id, c, v.set(admin.Member{ID: id}, false))
}

func (v *memberView) Remove(_ context.Context, id string, c admin.Change) error {
	return v.do("remove "+id, c, func(g *sharedGroup) {
		g.members = slices.DeleteFunc(g.members, func(m admin.MemberStatus) bool { return m.ID == id })
	})
}

func (v *memberView) Transfer(_ context.Context, id string, c admin.Change) error {
	return v.do("transfer to "+id, c, func(g *sharedGroup) {
		if id == "" {
			id = "m2-x"
		}
		g.leader = id
	})
}

func (v *memberView) Snapshot(_ context.Context, c admin.Change) (admin.Snapshot, error) {
	if v.onSnapshot != nil && v.id == "m1-x" {
		v.onSnapshot()
	}
	return admin.Snapshot{ID: "s1", Index: 42}, v.do("snapshot", c, func(*sharedGroup) {})
}

func (v *memberView) Backup(_ context.Context, w io.Writer, c admin.Change) (admin.Backup, error) {
	var record []byte
	if err := v.do("backup", c, func(g *sharedGroup) { record = g.record }); err != nil {
		return admin.Backup{}, err
	}
	_, err := io.Copy(w, bytes.NewReader(record))
	return admin.Backup{Group: "g1", Revision: admin.Revision{Epoch: 1, Index: 42}}, err
}

func (v *memberView) Restore(_ context.Context, r io.Reader, dry bool, c admin.Change) (admin.Restored, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return admin.Restored{}, err
	}
	if dry {
		return admin.Restored{Differences: slices.Repeat([]string{"route 203.0.113.10/32 is not in the backup"}, admin.MaxDifferences+5), More: 2}, nil
	}
	err = v.do("restore", c, func(g *sharedGroup) { g.record = data })
	return admin.Restored{Revision: admin.Revision{Epoch: 2, Index: 43}}, err
}

func (v *memberView) Finalize(_ context.Context, format uint32, c admin.Change) (uint32, error) {
	return format, v.do("finalize", c, func(*sharedGroup) {})
}

func (v *memberView) Confirm(_ context.Context, token string, founders []admin.Founder) (admin.Confirmation, error) {
	if token != "open sesame" || len(founders) != 3 {
		return admin.Confirmation{}, &admin.Refusal{Code: admin.BootstrapMismatch, What: "confirm the bootstrap", Why: "the token differs", Remedy: "give all the same"}
	}
	return admin.Confirmation{ServerID: v.id, Empty: true}, nil
}

func (v *memberView) Join(_ context.Context, j admin.Joining) (admin.Joined, error) {
	if j.Last > 0 {
		return admin.Joined{}, &admin.Refusal{Code: admin.Removed, What: "take in " + j.ID, Why: "it was removed", Remedy: "move its data folder away"}
	}
	err := v.do("join "+j.ID, admin.Change{Actor: j.Name}, v.set(j.Member, false))
	return admin.Joined{Group: "g1", Epoch: 1, Leader: v.Self().Name}, err
}

func (v *memberView) Remember(s admin.Member) admin.Remembered {
	return admin.Remembered{Term: 7, Voted: 6, LastTerm: 5, LastIndex: uint64(len(s.ID))}
}

func (v *memberView) Leave(_ context.Context, s admin.Member) error {
	return v.do("leave "+s.ID, admin.Change{Actor: s.Name}, func(*sharedGroup) {})
}

func (v *memberView) Report(_ context.Context, r admin.Report) (uint32, error) {
	return 3, v.do(fmt.Sprintf("report %s %s applied %d", r.ID, r.Version, r.Applied.Index), admin.Change{Actor: r.Name}, func(*sharedGroup) {})
}
