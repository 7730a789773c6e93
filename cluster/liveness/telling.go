// SPDX-License-Identifier: Apache-2.0

package liveness

import "time"

// teller logs what people should know once, when it begins and when it ends.
type teller struct {
	held bool // that nodes are held was logged

	lasts bool // nobody can be judged
	since time.Duration
	told  bool
}

// tellAfter is how long nobody could be judged before that is worth a line: in the first moments of a term it is
// always so.
const tellAfter = 2 * time.Second

// show tells people what a look found out.
func (t *term) show(d *Decision) {
	t.metrics.show(d)
	switch held := len(d.Held) > 0; {
	case held && !t.teller.held:
		t.log.Warn("silent nodes held", "nodes", d.Held, "reason", d.Why,
			"remedy", "look at the members' network; if the nodes are really down: fairlead holds list, fairlead holds release ID")
	case !held && t.teller.held:
		t.log.Info("silent nodes held no longer")
	}
	t.teller.held = len(d.Held) > 0
	t.problem(t.o.Clock.Now(), d.Problem)
}

func (t *term) problem(now time.Duration, what string) {
	switch p := &t.teller; {
	case what == "":
		if p.told {
			t.log.Info("nodes can be judged again")
		}
		p.lasts, p.told = false, false
	case !p.lasts:
		p.lasts, p.since = true, now
	case now-p.since >= tellAfter && !p.told:
		p.told = true
		t.log.Warn("nodes cannot be judged", "reason", what, "remedy", "see that the members reach each other's API")
	}
}
