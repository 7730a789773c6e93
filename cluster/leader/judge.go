// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"slices"
	"sync"
	"time"

	"fairlead.io/fairlead/cluster/leader/balancers"
)

// Judge asks a driver, "namespace/name", which of some pods stay registered though they are not ready. It answers within
// the driver's timeout, or soon after ctx has ended. Errors: there is no such driver, it was not reached, or said no.
type Judge func(ctx context.Context, driver string, pods []balancers.PodRef) (keep []string, err error)

// questionAgain is how often a question is asked while it stands: the driver's mind may change (lbcf §3.12).
const questionAgain = time.Minute

// judgeTogether bounds the questions that are out at once. Others wait for a place.
const judgeTogether = 16

// judging asks the questions of plans, and keeps their answers for the next. Its methods may be called from any goroutine.
type judging struct {
	c       Config
	changed chan struct{} // holds a token when there is another answer
	asked   chan struct{} // holds a token when there may be something to ask
	places  chan struct{}

	mu        sync.Mutex
	questions map[string]*question           // by owner
	answers   map[string]balancers.Judgement // by owner; never changed once it was given away
}

// question is what is known of one that stands.
type question struct {
	balancers.Question
	busy bool
	next time.Duration // when to ask
}

func newJudging(c Config) *judging {
	return &judging{
		c: c, changed: make(chan struct{}, 1), asked: make(chan struct{}, 1), places: make(chan struct{}, judgeTogether),
		questions: map[string]*question{}, answers: map[string]balancers.Judgement{},
	}
}

// ask takes the questions of the newest plan, all of them. One that is about other pods than before is asked at once; one
// that is not among them any more is forgotten.
func (j *judging) ask(questions []balancers.Question) {
	j.mu.Lock()
	defer j.mu.Unlock()
	standing := make(map[string]*question, len(questions))
	for _, q := range questions {
		now := j.questions[q.Owner]
		if now == nil || now.Driver != q.Driver || !slices.Equal(now.Pods, q.Pods) {
			now = &question{Question: q}
		}
		standing[q.Owner] = now
	}
	j.questions = standing
	for owner := range j.answers {
		if standing[owner] == nil {
			delete(j.answers, owner)
		}
	}
	poke(j.asked)
}

// judged gives the answers that there are, by owner. One of them may be about other pods than those of the present question.
func (j *judging) judged() map[string]balancers.Judgement {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make(map[string]balancers.Judgement, len(j.answers))
	for owner, a := range j.answers {
		out[owner] = a
	}
	return out
}

// run asks what is due, for one term, until ctx ends. The next term begins without answers.
func (j *judging) run(ctx context.Context) {
	var joined sync.WaitGroup
	defer j.forget()
	defer joined.Wait()
	for ctx.Err() == nil {
		due, again := j.due(j.c.Clock.Now())
		for _, q := range due {
			joined.Go(func() { j.put(ctx, q) })
		}
		sleep(ctx, j.c.Clock, again, j.asked)
	}
}

func (j *judging) forget() {
	j.mu.Lock()
	defer j.mu.Unlock()
	clear(j.questions)
	clear(j.answers)
}

// due lists the questions to ask now, in order of their owners, and tells how long until the next.
func (j *judging) due(now time.Duration) (due []*question, again time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	again = questionAgain
	for _, owner := range sortedKeys(j.questions) {
		q := j.questions[owner]
		switch {
		case q.busy:
		case q.next > now:
			sooner(&again, q.next-now)
		default:
			q.busy = true
			due = append(due, q)
		}
	}
	return due, again
}

// put asks one question, once there is a place.
func (j *judging) put(ctx context.Context, q *question) {
	select {
	case j.places <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-j.places }()
	keep, err := j.c.Judge(ctx, q.Driver.String(), q.Pods)
	if ctx.Err() != nil {
		return // it says nothing of the driver
	}
	if err != nil {
		j.c.Log.Debug("pods not judged", "owner", q.Owner, "driver", q.Driver, "err", err)
	}
	j.answered(q, keep, err)
}

// answered keeps an answer, unless the question does not stand any more.
func (j *judging) answered(q *question, keep []string, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	q.busy, q.next = false, j.c.Clock.Now()+questionAgain
	poke(j.asked)
	if j.questions[q.Owner] != q {
		return
	}
	old, known := j.answers[q.Owner]
	a := balancers.Judgement{Pods: q.Pods, Failed: err != nil, Keep: slices.Sorted(slices.Values(keep))}
	if err != nil {
		a.Why = err.Error()
	}
	j.answers[q.Owner] = a
	if !known || old.Failed != a.Failed || !slices.Equal(old.Keep, a.Keep) || !slices.Equal(old.Pods, a.Pods) {
		poke(j.changed) // other words for the same failure change no plan
	}
}
