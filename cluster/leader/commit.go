// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
)

// How long to wait before what did not get through is proposed again, and how long to leave a subject alone whose
// attempt the record refused: it changed meanwhile.
const (
	saidAgain    = 100 * time.Millisecond
	refusedAgain = time.Second
)

// commit proposes steps as one entry, and gives the calls that may go out.
func (o *operator) commit(ctx context.Context, steps []step) []*job {
	began := o.c.Clock.Now()
	proposals := make([]fsm.Proposal, 0, len(steps))
	for _, s := range steps {
		if s.end != nil {
			proposals = append(proposals, o.proposal(o.outcome(s.end), "the driver answered"))
		} else {
			proposals = append(proposals, o.proposal(s.begin.attempt(began), "the record asks for it"))
		}
	}
	outcomes, err := o.c.Group.Propose(ctx, Bulk, proposals)
	if err != nil {
		o.lost(steps, err)
		return nil
	}
	var begun []*job
	ends := 0
	for i, s := range steps {
		switch err := outcomes[i].Err(); {
		case s.end != nil:
			o.said(*s.end, outcomes[i])
			ends++
		case err != nil:
			o.drop(s.begin, began+refusedAgain)
			o.c.Log.Debug("operation not begun", "subject", s.begin.subject, "err", err)
		default:
			s.begin.request.Attempt = outcomes[i].Revision
			begun = append(begun, s.begin)
		}
	}
	o.unsaid = slices.Delete(o.unsaid, 0, ends)
	if len(begun) == 0 {
		return nil
	}
	return o.release(ctx, begun, began)
}

// begin starts the time that a job has.
func (j *job) begin(now time.Duration) { j.begun, j.request.Deadline = now, now+j.terms.Timeout }

// attempt is the command that begins a job.
func (j *job) attempt(now time.Duration) fsm.Command {
	j.begin(now)
	c := &fsm.BeginOperation{Action: j.action, Deadline: j.terms.Timeout}
	if j.request.Binding != nil {
		c.Binding = j.request.Binding.ID
	} else {
		c.Balancer = j.request.Balancer.ID
	}
	return c
}

// outcome is the command that ends a job.
func (o *operator) outcome(r *result) fsm.Command {
	if b := r.request.Binding; r.action == fsm.ActionAddress {
		return &fsm.SetBindingAddress{
			ID: b.ID, UID: b.UID, Address: r.answer.Address, Message: r.answer.Message,
			Failed: r.answer.Result == fsm.ResultFailed || r.answer.Result == fsm.ResultUnknown,
		}
	}
	return &fsm.FinishOperation{
		Subject: r.subject, Attempt: r.request.Attempt, Result: r.answer.Result, Message: r.answer.Message,
		Returned: r.answer.Returned, Settled: o.settled(*r), Refused: r.answer.Refused, RetryAfter: r.answer.hint(),
	}
}

func (o *operator) proposal(c fsm.Command, reason string) fsm.Proposal {
	return fsm.Proposal{Actor: actor, Reason: reason, AtUnixMilli: o.c.Clock.Wall().UnixMilli(), Command: c}
}

// lost takes in that an entry may or may not be committed. Its outcomes are said again. Nobody calls for its attempts, and
// if they are open they will be found as orphans.
func (o *operator) lost(steps []step, err error) {
	o.c.Log.Debug("operations not committed", "operations", len(steps), "err", err)
	o.mute = o.c.Clock.Now() + saidAgain
	for _, s := range steps {
		if s.begin != nil {
			o.drop(s.begin, o.mute)
		}
	}
}

// drop gives up a job that was not begun.
func (o *operator) drop(j *job, next time.Duration) {
	o.queue(j.driver).running--
	l := o.line(j.subject)
	l.job, l.next = nil, next
	o.dirty[j.subject] = true
}

// sureFor is how long the commit of an entry says that this member leads: a majority followed it meanwhile.
const sureFor = 50 * time.Millisecond

// verifyWithin bounds the question whether this member leads: all operations wait for it, and a majority that takes longer is
// out of reach.
const verifyWithin = 2 * time.Second

// release gives those of the jobs, proposed at a time, whose calls may go out: this member leads still, and they are still
// asked for.
func (o *operator) release(ctx context.Context, begun []*job, proposed time.Duration) (out []*job) {
	var leads error
	if o.c.Clock.Now()-proposed > sureFor {
		asking, cancel := context.WithTimeout(ctx, verifyWithin)
		leads = o.c.Group.VerifyLeader(asking)
		cancel()
	}
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
	return out
}

// refresh takes what the call is about from a record that holds the attempt, and tells whether it is still asked for.
// With what was read before, a change that came in between would be confirmed and never sent.
func (j *job) refresh(v *fsm.View) bool {
	var known bool
	if j.request.Balancer, known = fsm.Get[*fsm.LoadBalancer](v, fsm.TableBalancers, j.request.Balancer.Key()); !known {
		return false
	}
	if j.request.Binding == nil {
		return v.AsksFor(j.request.Balancer, j.action)
	}
	j.request.Binding, known = fsm.Get[*fsm.Binding](v, fsm.TableBindings, j.request.Binding.Key())
	return known && (j.request.Binding.State == fsm.BindingDeregistering) == (j.action == fsm.ActionDeregister)
}

// settled tells whether a call was begun when no earlier one of its line could take effect any more.
func (o *operator) settled(r result) bool {
	l := o.line(r.subject)
	return !l.unsettled.IsZero() && r.begun >= l.ended+r.settle
}

// said takes in that an outcome is committed, or that the record no longer wanted to hear it.
func (o *operator) said(r result, outcome fsm.Outcome) {
	l := o.line(r.subject)
	l.job = nil
	o.dirty[r.subject] = true
	if of := r.purpose(); l.wait.of != of { // what came of another call says nothing of this one
		l.wait, l.failures, l.polls = wait{of: of}, 0, 0
	}
	switch {
	case outcome.Reject != fsm.Accepted:
	case r.answer.Result == fsm.ResultUnknown && r.action != fsm.ActionAddress:
		l.unsettled, l.ended = r.request.Attempt, r.ended
	case r.answer.Result == fsm.ResultSucceeded:
		o.confirm(r)
	}
	if r.answer.Held {
		return // the driver rests; the line keeps its place
	}
	l.wait.until, l.wait.attempt = o.c.Clock.Now()+o.retryAfter(l, r), r.request.Attempt
}

// confirm notes when what is to be confirmed again and again was confirmed.
func (o *operator) confirm(r result) {
	switch b := r.request.Binding; {
	case r.action == fsm.ActionEnsure && b.Ensure.Every() > 0:
		o.confirmed[confirmable{fsm.TableBindings, b.Key()}] = r.ended
	case b == nil && r.action != fsm.ActionDeleteBalancer && r.request.Balancer.Ensure.Every() > 0:
		o.confirmed[confirmable{fsm.TableBalancers, r.request.Balancer.Key()}] = r.ended
	}
}
