// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"testing"
)

// A server that was away while another one got its vote knows nothing of that one, and what the others hold decides who may lead: it has to
// vote for the one that it does not know where that one holds the most.
func TestWhoWasAwayVotesForANewcomer(t *testing.T) {
	g := newGroup(t, "a", "b", "c", "d")
	g.change = only("a", "b", "c")
	for _, name := range []string{"a", "b", "c"} {
		g.start(name)
	}
	defer g.stopAll()
	mustPropose(t, g.leader(), put(1))
	g.settle()
	away := g.followers()[0]
	away.stop()
	g.start("d")
	eventually(t, "d votes", func() bool { return slices.Contains(g.voters(), "d-1") })
	g.settle()
	leader, newcomer := g.leader(), g.members["d"]
	if leader == newcomer {
		t.Skip("the newcomer leads")
	}
	rest := g.followers()
	other := rest[slices.IndexFunc(rest, func(m *member) bool { return m != newcomer })]
	g.part(leader, other)
	eventually(t, "the newcomer holds more than the other", func() bool {
		_, _ = leader.node.queue.put(Bulk, []Proposal{put(2)})
		return newcomer.node.raft.LastIndex() > other.node.raft.LastIndex()
	})
	g.setCut(leader.name, true)
	g.start(away.name)
	eventually(t, "three of four elect one", func() bool {
		for _, m := range []*member{newcomer, other, away} {
			if m.node.LeadingTerm() > 0 {
				return true
			}
		}
		return false
	})
}
