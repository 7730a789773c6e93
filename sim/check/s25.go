// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"time"

	"fairlead.io/fairlead/sim/event"
)

// s25 holds what `raft status` says of members against what they have applied.
//
//   - Who is said to be healthy has what was committed longAgo, whatever befell it. That counts once one and the same undisturbed member has led, and
//     it has been running, for as long: who starts holds more at first than it has applied.
//   - Who has that, and was disturbed by nobody for as long, is not said to be anything else.
type s25 struct {
	idle
	*judge
	marks   []mark
	started map[string]time.Duration
}

// longAgo is keepUp, and what may pass until a leader judges and an operator hears of it.
const longAgo = keepUp + 3*time.Second

func newS25(j *judge) rule { return &s25{judge: j, started: map[string]time.Duration{}} }

func (r *s25) step(s *step) { r.marks = marked(r.marks, s, 2*longAgo) }

func (r *s25) hear(e event.Stamped) {
	if x, ok := e.Event.(event.Started); ok {
		r.started[x.Process] = e.At
	}
	x, ok := e.Event.(event.Judged)
	if !ok || x.Leader != r.scene.leader || !r.led(longAgo+e.At-x.Asked) {
		return
	}
	m, ok := due(r.marks, x.Asked, longAgo)
	has := r.scene.applied[x.Member] // 0 of who runs and has applied nothing yet
	if !ok || !r.scene.runs[x.Member] || x.Asked-r.started[x.Member] < longAgo {
		return
	}
	r.checked()
	switch lacks := has < m.index; {
	case x.Healthy && lacks:
		r.broken(x.Member, fmt.Sprintf("%s says that it is healthy, and it has applied entry %d, where %d was committed by %s", x.Leader, has, m.index, m.at), m.number, e.Number)
	case !x.Healthy && !lacks && r.scene.votes(x.Member) && r.scene.worksFor(x.Member, longAgo+e.At-x.Asked):
		r.broken(x.Member, fmt.Sprintf("%s says that it is not healthy (%s), though it has applied entry %d and nobody disturbs it", x.Leader, x.Why, has), e.Number)
	}
}
