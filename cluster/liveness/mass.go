// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
)

// HoldOf is what a hold of silent nodes is of, and the subjects of which are nodes.
const HoldOf = "NodeSilence"

// few is how many nodes may always go down together.
const few = 2

// mass keeps what was held lately.
type mass struct {
	nodes []fsm.NodeID  // held now
	since time.Duration // that they are the same

	seen time.Duration // when too many were silent together last, zero for never
	why  string
}

// passed are the nodes that an operator released.
func (m *mass) passed(holds []*fsm.Hold) map[fsm.NodeID]bool {
	out := map[fsm.NodeID]bool{}
	for _, h := range holds {
		if h.Of == HoldOf && h.Released {
			for _, s := range h.Subjects {
				out[fsm.NodeID(s)] = true
			}
		}
	}
	return out
}

// held says why nobody may be found down now, or nothing. Counted are nodes that give no sign since a little less
// than a verdict takes, because the heartbeats of nodes that are lost together end up to a beat apart, and those
// that went down a moment ago. Those that were down before are past counting, and so are those released. Once too
// many were silent, whoever is silent still is held a while longer: they come back one after the other.
func (m *mass) held(c *court, nodes []*fsm.Node, released map[fsm.NodeID]bool, dying []Verdict) (why string) {
	silent := map[fsm.NodeID]bool{}
	for _, s := range c.suspects {
		if c.now-s.sign >= c.j.t.Suspect && !c.settled(s) && !released[s.node.ID] {
			silent[s.node.ID] = true
		}
	}
	all := 0
	for _, n := range nodes {
		if !judged(n) || released[n.ID] {
			continue
		}
		if n.Liveness == fsm.NodeDown {
			if c.now-c.j.subject(n).downAt > c.j.t.Together {
				continue
			}
			silent[n.ID] = true
		}
		all++
	}
	if len(silent) > few && 2*len(silent) > all {
		m.seen, m.why = c.now, fmt.Sprintf("%d of %d nodes fell silent together", len(silent), all)
	}
	var waiting []fsm.NodeID
	if m.seen > 0 && c.now-m.seen < c.j.t.Together {
		for _, v := range dying {
			if !released[v.Node] {
				waiting = append(waiting, v.Node)
			}
		}
	}
	if waiting = sorted(waiting); !slices.Equal(waiting, m.nodes) {
		m.nodes, m.since = waiting, c.now
	}
	if len(waiting) == 0 {
		return ""
	}
	return m.why
}

// settle puts those held before an operator once they have been the same for a moment, and takes back the holds
// that are over: all of theirs came back or went, or another one names what is held by now.
func (m *mass) settle(c *court, holds []*fsm.Hold) (out []fsm.Command) {
	if c.now-c.j.began < c.j.t.Silence+c.j.t.HoldAfter {
		return nil // what an earlier leader held may still be seen to be silent
	}
	stable := c.now-m.since >= c.j.t.HoldAfter
	want := holdID(m.nodes)
	stands := false
	for _, h := range holds {
		stands = stands || h.ID == want
	}
	for _, h := range holds {
		if h.Of != HoldOf || h.ID == want {
			continue
		}
		over := !slices.ContainsFunc(h.Subjects, c.suspected)
		if over || stands && !h.Released {
			out = append(out, &fsm.DeleteHold{ID: h.ID})
		}
	}
	if len(m.nodes) > 0 && stable && !stands {
		put := &fsm.PutHold{ID: want, Of: HoldOf, Why: c.d.Why}
		for _, id := range m.nodes {
			put.Subjects = append(put.Subjects, string(id))
		}
		out = append(out, put)
	}
	return out
}

func (c *court) suspected(node string) bool {
	return slices.ContainsFunc(c.suspects, func(s *suspicion) bool { return string(s.node.ID) == node })
}

// holdID names a set of nodes. A different set has a different name, so that an operator releases what was shown.
func holdID(nodes []fsm.NodeID) fsm.HoldID {
	var text strings.Builder
	for _, id := range nodes {
		text.WriteString(string(id) + "\n")
	}
	sum := sha256.Sum256([]byte(text.String()))
	return fsm.HoldID("nodesilence-" + hex.EncodeToString(sum[:6]))
}
