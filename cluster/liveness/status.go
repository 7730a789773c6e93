// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"time"

	"fairlead.io/fairlead/fsm"
)

// Status is what the leader makes of the nodes, for people. It is the zero Status on a member that does not lead.
type Status struct {
	Term uint64 `json:"term"`
	// Held are nodes that would be down if not so many were silent at once; Why says how many.
	Held []fsm.NodeID `json:"held"`
	Why  string       `json:"why,omitempty"`
	// Problem says why nobody can be judged, empty if not so.
	Problem string `json:"problem,omitempty"`
}

// Status tells how the watch stands. What it refers to must not be changed.
func (w *Watcher) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}

func (w *Watcher) setStatus(s Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status = s
}

// report keeps what a look found out, and logs it when it is news.
func (t *term) report(d *Decision) {
	s := t.Status()
	s.Held, s.Why, s.Problem = d.Held, d.Why, d.Problem
	t.setStatus(s)
	t.metrics.held.Set(float64(len(d.Held)))
	if now := t.o.Clock.Now(); d.Problem != "" {
		t.problem(now, d.Problem)
	} else {
		t.trouble = trouble{}
	}
	switch held := len(d.Held) > 0; {
	case held && !t.heldTold:
		t.o.Log.Warn("silent nodes held", "nodes", d.Held, "reason", d.Why,
			"remedy", "look at the members' network; if the nodes are really down: fairlead holds list, fairlead holds release ID")
	case !held && t.heldTold:
		t.o.Log.Info("silent nodes held no longer")
	}
	t.heldTold = len(d.Held) > 0
}

// trouble is a problem that lasts.
type trouble struct {
	since time.Duration
	lasts bool
	told  bool
}

// tellAfter is how long nobody could be judged before that is worth a line: in the first moments of a term it is
// always so.
const tellAfter = 2 * time.Second

func (t *term) problem(now time.Duration, what string) {
	if !t.trouble.lasts {
		t.trouble = trouble{since: now, lasts: true}
	}
	if now-t.trouble.since >= tellAfter && !t.trouble.told {
		t.trouble.told = true
		t.o.Log.Warn("nodes cannot be judged", "reason", what)
	}
}
