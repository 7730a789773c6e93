// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"fairlead.io/fairlead/fsm"
)

// operator carries out what the record asks for outside, for one term. An attempt is committed before its call and
// its outcome afterwards; at most one is open per subject (S7). One goroutine, that of run, owns everything here but
// the calls themselves. A turn of it costs what changed since the one before: lines says what is to do on each subject's
// line, and each line that waits is in a heap, of the alarms or of those that are ready for a driver.
type operator struct {
	c       Config
	metrics *metrics
	queued  *atomic.Int64
	asked   <-chan questionOfLines // of whoever wants to know what comes next

	view        *fsm.View // that lines were last brought up to
	epoch       fsm.Epoch
	quarantined bool
	lines       map[fsm.Subject]*line
	dirty       map[fsm.Subject]bool // lines to be weighed anew
	alarms      lineHeap             // lines whose time has not come
	queues      map[string]*queue    // by driver
	bindings    map[fsm.BalancerID]int
	nameless    map[fsm.Subject]bool // lines of balancers that go and have no identity
	confirmed   map[confirmable]time.Duration

	results chan result
	unsaid  []result      // outcomes that are not committed yet
	mute    time.Duration // nothing is committed before this
	// committed is when the newest entry was put together.
	committed time.Duration
}

// job is one call from its choice to its outcome.
type job struct {
	subject fsm.Subject
	action  fsm.Action
	driver  string
	terms   Terms
	settle  time.Duration // the longest of the driver's
	request Request
	begun   time.Duration // before it was proposed
}

// result is how a job ended.
type result struct {
	*job
	answer Answer
	ended  time.Duration
}

// operate operates for one term, until ctx ends.
func (l *Leader) operate(ctx context.Context) {
	defer l.queued.Store(0)
	newOperator(l).run(ctx)
}

func newOperator(l *Leader) *operator {
	return &operator{
		c: l.c, metrics: l.metrics, queued: &l.queued, asked: l.asksOperator,
		lines: map[fsm.Subject]*line{}, dirty: map[fsm.Subject]bool{}, queues: map[string]*queue{},
		bindings: map[fsm.BalancerID]int{}, nameless: map[fsm.Subject]bool{}, confirmed: map[confirmable]time.Duration{}, results: make(chan result),
	}
}

func (o *operator) run(ctx context.Context) {
	wake := make(chan struct{}, 1)
	var joined sync.WaitGroup
	defer joined.Wait()
	joined.Go(func() {
		follow(ctx, o.c.Record, wake, fsm.TableGroup, fsm.TableDrivers, fsm.TableBalancers, fsm.TableBindings, fsm.TableOperations)
	})
	calls := newCrew(o.call)
	defer calls.all.Wait()
	for ctx.Err() == nil {
		o.hear()
		if !o.gather(ctx) {
			continue
		}
		v, now := o.c.Record.Read(), o.c.Clock.Now()
		o.absorb(v, now)
		next := o.compose(v, now)
		calls.send(ctx, next.asks)
		if len(next.steps) > 0 {
			o.committed = now
			calls.send(ctx, o.commit(ctx, next.steps))
			continue
		}
		select {
		case <-ctx.Done():
		case <-wake:
		case r := <-o.results:
			o.collect(r)
		case q := <-o.asked:
			q.reply <- o.nextCalls(q.subjects, o.c.Clock.Now())
		case <-o.c.Clock.After(next.again):
		}
	}
}

// While calls wait for a place, entries are put together at most every gatherFor, unless gatherMost calls have ended: each
// entry costs all members a write to their disks.
const (
	gatherFor  = 4 * time.Millisecond
	gatherMost = 32
)

// gather waits for one more call to end where that is better than to commit what there is. It tells whether to commit.
func (o *operator) gather(ctx context.Context) bool {
	left := o.committed + gatherFor - o.c.Clock.Now()
	if o.queued.Load() == 0 || left <= 0 || len(o.unsaid) >= gatherMost {
		return true
	}
	select {
	case <-ctx.Done():
	case r := <-o.results:
		o.collect(r)
	case <-o.c.Clock.After(left):
	}
	return false
}

// hear takes in whatever ended meanwhile.
func (o *operator) hear() {
	for {
		select {
		case r := <-o.results:
			o.collect(r)
		default:
			return
		}
	}
}

// collect takes in a result; its outcome goes into the next entry.
func (o *operator) collect(r result) {
	q := o.queue(r.driver)
	q.running--
	if r.answer.Held {
		q.rest = max(q.rest, r.ended+max(r.answer.RetryAfter, heldAgain))
	}
	o.unsaid = append(o.unsaid, r)
	o.metrics.called(r)
}

// heldAgain is how long a driver is left alone at least that takes no calls.
const heldAgain = 500 * time.Millisecond

// call makes one call, within its deadline, and hands its result to run.
func (o *operator) call(ctx context.Context, j *job) {
	r := result{job: j, answer: o.ask(ctx, j), ended: o.c.Clock.Now()}
	select {
	case o.results <- r:
	case <-ctx.Done(): // the next leader finds the attempt open, and takes its outcome for unknown
	}
}

func (o *operator) ask(ctx context.Context, j *job) Answer {
	left := j.request.Deadline - o.c.Clock.Now()
	if left <= 0 {
		return j.notSent("committing the attempt took longer than the driver's timeout", 0).answer
	}
	driver, ok := o.c.Drivers(j.driver)
	if !ok {
		return j.notSent("there is no driver "+j.driver+" any more", 0).answer
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		select {
		case <-ctx.Done():
		case <-o.c.Clock.After(left):
			cancel()
		}
	})
	answer := driver.Call(ctx, j.action, j.request)
	switch {
	case answer.Result < fsm.ResultSucceeded || answer.Result > fsm.ResultUnknown:
		return Answer{Result: fsm.ResultUnknown, Message: fmt.Sprintf("the driver's answer %d is none", answer.Result)}
	case j.action != fsm.ActionAddress:
	case answer.Result != fsm.ResultSucceeded:
		answer.Address = ""
	case answer.Address == "":
		answer.Result, answer.Message = fsm.ResultFailed, "the driver answered with an empty address"
	}
	return answer.recordable()
}

// maxReturned bounds what a driver may have calls to come carry, in bytes: outcomes share entries.
const maxReturned = 16 << 10

// recordable gives an answer as the record can hold it. One that has too much, or what is no text, is none, as what cannot be understood:
// the call may have taken effect.
func (a Answer) recordable() Answer {
	a.Message = fsm.Text(a.Message, fsm.MaxMessage)
	bytes := 0
	for _, kv := range a.Returned {
		bytes += len(kv.Key) + len(kv.Value)
	}
	_, err := fsm.Fit(fsm.Proposal{Command: &fsm.FinishOperation{Address: a.Address, Returned: a.Returned}})
	if err == nil && bytes > maxReturned {
		err = fmt.Errorf("injectedInfo or lbInfo of %d bytes, at most %d are kept", bytes, maxReturned)
	}
	if err != nil {
		return Answer{Result: fsm.ResultUnknown, Message: fsm.Text("the driver's answer cannot be recorded: "+err.Error(), fsm.MaxMessage), RetryAfter: a.RetryAfter}
	}
	return a
}

// notSent is the result of a call that surely did not go out.
func (j *job) notSent(why string, now time.Duration) result {
	return result{job: j, answer: Answer{Result: fsm.ResultFailed, Message: "not sent: " + why}, ended: now}
}
