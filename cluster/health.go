// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// behindAfter is how long a server may lack what was committed. It is no number of entries: one that follows lacks as many as there are on their
// way, on a busy group a lot, and one that takes none may lack the only one of an idle group.
const behindAfter = 5 * time.Second

// commitMarks remembers how far this leader had committed some seconds ago.
type commitMarks struct {
	mu    sync.Mutex
	term  uint64
	marks []commitMark // oldest first; only the first is as old as behindAfter
}

type commitMark struct {
	at    time.Time
	index uint64
}

// note notes how far a term has committed by now.
func (c *commitMarks) note(term, index uint64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.term != term {
		c.term, c.marks = term, nil
	}
	for len(c.marks) > 1 && now.Sub(c.marks[1].at) >= behindAfter {
		c.marks = c.marks[1:]
	}
	c.marks = append(c.marks, commitMark{now, index})
}

// due is the newest index that everybody should hold: what was committed behindAfter ago. It is 0 in a term that is younger than that.
func (c *commitMarks) due(term uint64, now time.Time) (index uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.term != term {
		return 0
	}
	for _, m := range c.marks {
		if now.Sub(m.at) >= behindAfter {
			index = m.index
		}
	}
	return index
}

// lacks tells what a server lacks of what it should hold, empty if nothing. Of the leader of that term only.
func (n *Node) lacks(id raft.ServerID, term uint64) string {
	if why := n.seen.distrusted(id); why != "" {
		return why
	}
	due := n.commits.due(term, time.Now())
	if id == n.id || due == 0 {
		return ""
	}
	switch p, _ := n.seen.seen(id, term); {
	case !p.matched:
		return fmt.Sprintf("is behind: it has acknowledged no entry of term %d", term)
	case p.lastLog < due:
		return fmt.Sprintf("is behind: it holds entry %d, and %d was committed %s ago", p.lastLog, due, behindAfter)
	default:
		return ""
	}
}

// behind is how many servers lack what they should hold, on the leader; 0 on others.
func (n *Node) behind() (servers int) {
	for _, p := range n.Peers() {
		if p.Behind != "" {
			servers++
		}
	}
	return servers
}

// lagging says in the log who falls behind in a term, and who has caught up.
type lagging map[string]bool

func (l lagging) look(n *Node, term uint64) {
	n.commits.note(term, n.raft.CommitIndex(), time.Now())
	for _, p := range n.Peers() {
		if n.seen.distrusted(raft.ServerID(p.ID)) != "" {
			n.expelling(raft.ServerID(p.ID))
		}
		switch was := l[p.ID]; {
		case p.Behind != "" && !was:
			n.log.Warn("server is behind", "server", p.ID, "why", p.Behind)
		case p.Behind == "" && was && p.Answer:
			n.log.Info("server has caught up", "server", p.ID)
		default:
			continue
		}
		l[p.ID] = p.Behind != ""
	}
}
