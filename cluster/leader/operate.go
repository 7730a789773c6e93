// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"fairlead.io/fairlead/fsm"
)

// operator carries out what the record asks for outside, for one term. An attempt is committed before its call and
// its outcome afterwards; at most one is open per subject (S7). One goroutine, that of run, owns everything here but
// the calls themselves.
type operator struct {
	c       Config
	metrics *metrics
	lines   map[fsm.Subject]*line
	running map[string]int // calls in flight, by driver
	results chan result
	unsaid  []result // outcomes that are not committed yet
}

// line is what this term knows of one subject's line of operations, beside the record.
type line struct {
	job      *job          // the call in flight; nil for none
	next     time.Duration // not before this
	failures int           // in a row
	// unsettled is the newest call of unknown outcome, and ended when it ended at the latest.
	unsettled fsm.Revision
	ended     time.Duration
	// orphan is an open attempt that nobody here works at, and over when no call of it can be written any more.
	orphan fsm.Revision
	over   time.Duration
}

// job is one call from its proposal to its outcome.
type job struct {
	subject fsm.Subject
	action  fsm.Action
	driver  string
	terms   Terms
	request Request
	begun   time.Duration // before it was proposed
}

// result is how a job ended.
type result struct {
	*job
	answer Answer
	ended  time.Duration
}

func newOperator(c Config, m *metrics) *operator {
	return &operator{
		c: c, metrics: m, lines: map[fsm.Subject]*line{}, running: map[string]int{}, results: make(chan result),
	}
}

func (o *operator) run(ctx context.Context) {
	wake := make(chan struct{}, 1)
	var joined sync.WaitGroup
	defer joined.Wait()
	joined.Go(func() {
		follow(ctx, o.c.Record, wake, fsm.TableGroup, fsm.TableBalancers, fsm.TableBindings, fsm.TableOperations)
	})
	for ctx.Err() == nil {
		said := o.finish(ctx)
		jobs, again := o.pick(o.c.Record.Read(), o.c.Clock.Now())
		begun, next := o.begin(ctx, jobs)
		for _, j := range begun {
			joined.Go(func() { o.call(ctx, j) })
		}
		sooner(&again, next)
		switch {
		case len(o.unsaid) > 0 && said:
			continue // there is more to say by now
		case !said:
			sooner(&again, saidAgain)
		}
		select {
		case <-ctx.Done():
		case <-wake:
		case r := <-o.results:
			o.collect(r)
		case <-o.c.Clock.After(again):
		}
	}
}

// saidAgain is how long to wait before an outcome that did not get through is proposed again.
const saidAgain = 100 * time.Millisecond

// line finds or starts what is known of a subject.
func (o *operator) line(s fsm.Subject) *line {
	l := o.lines[s]
	if l == nil {
		l = &line{}
		o.lines[s] = l
	}
	return l
}

// begin commits the attempts of jobs. It gives those whose calls may go out, and when to try the others again; zero if
// there are none.
func (o *operator) begin(ctx context.Context, jobs []*job) (begun []*job, again time.Duration) {
	for batch := range slices.Chunk(jobs, maxTogether) {
		out, next := o.beginBatch(ctx, batch)
		begun = append(begun, out...)
		again = max(again, next)
	}
	return begun, again
}

func (o *operator) beginBatch(ctx context.Context, jobs []*job) (out []*job, again time.Duration) {
	now := o.c.Clock.Now()
	proposals := make([]fsm.Proposal, 0, len(jobs))
	for _, j := range jobs {
		j.begun, j.request.Deadline = now, now+j.terms.Timeout
		c := &fsm.BeginOperation{Action: j.action, Deadline: j.terms.Timeout}
		if j.request.Binding != nil {
			c.Binding = j.request.Binding.ID
		} else {
			c.Balancer = j.request.Balancer.ID
		}
		proposals = append(proposals, o.proposal(c, "the record asks for it"))
	}
	outcomes, err := o.c.Group.Propose(ctx, Bulk, proposals)
	if err != nil {
		// The attempts may be open all the same. Nobody calls, and if they are they will be found as orphans.
		o.c.Log.Debug("operations not begun", "operations", len(jobs), "err", err)
		for _, j := range jobs {
			o.line(j.subject).next = o.c.Clock.Now() + saidAgain
		}
		return nil, saidAgain
	}
	var begun []*job
	for i, outcome := range outcomes {
		j := jobs[i]
		if err := outcome.Err(); err != nil {
			o.line(j.subject).next = now + refusedAgain
			again = refusedAgain
			o.c.Log.Debug("operation not begun", "subject", j.subject, "err", err)
			continue
		}
		j.request.Attempt = outcome.Revision
		o.line(j.subject).job = j
		o.running[j.driver]++
		begun = append(begun, j)
	}
	if len(begun) == 0 {
		return nil, again
	}
	leads := o.c.Group.VerifyLeader(ctx)
	record := o.c.Record.Read()
	for _, j := range begun {
		switch {
		case leads != nil:
			o.collect(j.notSent("leadership was lost", o.c.Clock.Now()))
		case !j.refresh(record):
			o.collect(j.notSent("it is not asked for any more", o.c.Clock.Now()))
		default:
			out = append(out, j)
		}
	}
	return out, again
}

// refresh takes what the call is about from a record that holds the attempt, and tells whether it is still asked for.
// With what was read before, a change that came in between would be confirmed and never sent.
func (j *job) refresh(v *fsm.View) bool {
	var known bool
	if j.request.Balancer, known = fsm.Get[*fsm.LoadBalancer](v, fsm.TableBalancers, j.request.Balancer.Key()); !known {
		return false
	}
	if j.request.Binding == nil {
		return true
	}
	j.request.Binding, known = fsm.Get[*fsm.Binding](v, fsm.TableBindings, j.request.Binding.Key())
	return known && (j.request.Binding.State == fsm.BindingDeregistering) == (j.action == fsm.ActionDeregister)
}

// notSent is the result of a call that surely did not go out.
func (j *job) notSent(why string, now time.Duration) result {
	return result{job: j, answer: Answer{Result: fsm.ResultFailed, Message: "not sent: " + why}, ended: now}
}

// refusedAgain is how long to leave a subject alone whose attempt the record refused: it changed meanwhile.
const refusedAgain = time.Second

func (o *operator) proposal(c fsm.Command, reason string) fsm.Proposal {
	return fsm.Proposal{Actor: actor, Reason: reason, AtUnixMilli: o.c.Clock.Wall().UnixMilli(), Command: c}
}

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
	case answer.Result == fsm.ResultSucceeded && j.action == fsm.ActionAddress && answer.Address == "":
		answer.Result, answer.Message = fsm.ResultFailed, "the driver answered with an empty address"
	}
	return answer
}

// collect takes in a result; its outcome is committed by finish.
func (o *operator) collect(r result) {
	o.running[r.driver]--
	o.unsaid = append(o.unsaid, r)
	o.metrics.called(r)
}

// finish commits outcomes, together with whatever else ended meanwhile. It tells whether all got through; the others
// are to be said again.
func (o *operator) finish(ctx context.Context) bool {
	for {
		select {
		case r := <-o.results:
			o.collect(r)
			continue
		default:
		}
		break
	}
	for len(o.unsaid) > 0 {
		batch := o.unsaid[:min(maxTogether, len(o.unsaid))]
		proposals := make([]fsm.Proposal, 0, len(batch))
		for _, r := range batch {
			proposals = append(proposals, o.proposal(&fsm.FinishOperation{
				Subject: r.subject, Attempt: r.request.Attempt, Result: r.answer.Result, Message: bounded(r.answer.Message),
				Address: r.answer.Address, Returned: r.answer.Returned, Settled: o.settled(r),
			}, "the driver answered"))
		}
		outcomes, err := o.c.Group.Propose(ctx, Bulk, proposals)
		if err != nil {
			o.c.Log.Debug("outcomes not committed", "operations", len(batch), "err", err)
			return false
		}
		for i, outcome := range outcomes {
			o.said(batch[i], outcome)
		}
		o.unsaid = slices.Delete(o.unsaid, 0, len(batch))
	}
	return true
}

// settled tells whether a call was begun when no earlier one of its line could take effect any more.
func (o *operator) settled(r result) bool {
	l := o.line(r.subject)
	return !l.unsettled.IsZero() && r.begun >= l.ended+r.terms.Settle
}

// said takes in that an outcome is committed, or that the record no longer wanted to hear it.
func (o *operator) said(r result, outcome fsm.Outcome) {
	l := o.line(r.subject)
	l.job = nil
	if outcome.Reject == fsm.Accepted && r.answer.Result == fsm.ResultUnknown {
		l.unsettled, l.ended = r.request.Attempt, r.ended
	}
	l.next = o.c.Clock.Now() + o.retryAfter(l, r)
}

// maxMessage bounds what of a driver's message enters the record.
const maxMessage = 1024

func bounded(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	cut := maxMessage
	for cut > 0 && s[cut]&0xC0 == 0x80 { // not within a character
		cut--
	}
	return s[:cut]
}

// forget drops what is known of lines that are idle and of no concern any more.
func (o *operator) forget(concern map[fsm.Subject]bool, now time.Duration) {
	maps.DeleteFunc(o.lines, func(s fsm.Subject, l *line) bool { return l.job == nil && l.next <= now && !concern[s] })
}
