// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"time"
)

// l4 asks every member for what the group had keepUp ago, by whichever member applied it first: each that runs, has its vote by now and was
// disturbed by nobody for as long, while one and the same undisturbed member leads. Who ends by himself is given as long as he may take to come back,
// and not one who ends again and again.
type l4 struct {
	idle
	*judge
	marks  []mark
	lacks  overdue
	looked time.Duration
}

// comeBack is within what time a member that ended by itself has what was committed: it is started again after 16 s at most.
const comeBack = 30 * time.Second

// keepUp is within what time a member has what was committed. It is also for how long one may lack that before leaders call it behind.
const keepUp = 5 * time.Second

// mark is an entry of the record, and when the first member had applied it.
type mark struct {
	at     time.Duration
	index  uint64
	number uint64
}

func newL4(j *judge) rule { return &l4{judge: j, lacks: newOverdue()} }

func (r *l4) step(s *step) { r.marks = marked(r.marks, s, keepUp) }

// marked takes in a step. Of the marks that are older than some time only the newest is needed.
func marked(marks []mark, s *step, old time.Duration) []mark {
	if s.replaced && s.index <= s.before.Applied() {
		marks = nil // what the group had is gone with those who had it
	}
	for len(marks) > 1 && s.At-marks[1].at >= old {
		marks = marks[1:]
	}
	return append(marks, mark{s.At, uint64(s.index), s.Number})
}

// due is the newest mark that is so old.
func due(marks []mark, now, old time.Duration) (m mark, ok bool) {
	for _, next := range marks {
		if now-next.at < old {
			break
		}
		m, ok = next, true
	}
	return m, ok
}

func (r *l4) tick() {
	if r.scene.now-r.looked < lookEvery {
		return
	}
	r.looked = r.scene.now
	m, ok := due(r.marks, r.scene.now, keepUp)
	ok = ok && r.led(keepUp)
	for _, member := range r.scene.members() {
		has := r.scene.applied[member]
		lacks := ok && r.scene.votes(member) && r.scene.unexcused(member) && has < m.index
		r.lacks.note(member, lacks, r.scene.now, fmt.Sprintf("it has applied entry %d, and %d was committed by %s", has, m.index, m.at), m.number)
		if ok {
			r.checked()
		}
	}
	for _, member := range sortedKeys(r.lacks.since) {
		w := r.lacks.since[member]
		if r.scene.now-w.at > comeBack || r.scene.worksFor(member, keepUp) {
			r.broken(member, fmt.Sprintf("%s, while %s led and nobody disturbed either", w.why, r.scene.leader), w.event)
		}
	}
}

// led tells whether one and the same undisturbed member has led for a time.
func (j *judge) led(d time.Duration) bool {
	s := j.scene
	return s.leader != "" && s.lead != never && s.now-s.lead >= d && s.worksFor(s.leader, d)
}
