// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
)

// pick chooses the calls that may begin now, and tells how long until another one may. It commits nothing; what it
// finds of attempts that nobody works at goes to unsaid once nothing of them can be written any more.
func (o *operator) pick(v *fsm.View, now time.Duration) (jobs []*job, again time.Duration) {
	again = o.c.Timing.Replan
	subjects := o.subjects(v, now, &again)
	quarantined := !v.Group().Quarantine.IsZero()
	var ready []*job
	for _, s := range subjects {
		l := o.line(s)
		if l.job != nil || !l.orphan.IsZero() {
			continue
		}
		j := o.wanted(v, s, quarantined)
		if j == nil {
			continue
		}
		if wait := l.next - now; wait > 0 {
			sooner(&again, wait)
			continue
		}
		ready = append(ready, j)
	}
	// Who waited longest goes first, so that a driver at its limit serves all in turn.
	slices.SortStableFunc(ready, func(a, b *job) int { return cmp.Compare(o.line(a.subject).next, o.line(b.subject).next) })
	taken := map[string]int{}
	for _, j := range ready {
		if o.running[j.driver]+taken[j.driver] < j.terms.Concurrent {
			taken[j.driver]++
			jobs = append(jobs, j)
		}
	}
	return jobs, again
}

// subjects lists the lines on which something may be to do, in order.
func (o *operator) subjects(v *fsm.View, now time.Duration, again *time.Duration) []fsm.Subject {
	concern, wanted := map[fsm.Subject]bool{}, map[fsm.Subject]bool{}
	epoch := v.Group().Epoch
	for _, op := range fsm.List[*fsm.Operation](v, fsm.TableOperations) {
		concern[op.Subject] = true
		if o.look(op, epoch, now, again) {
			wanted[op.Subject] = true
		}
	}
	for _, l := range fsm.List[*fsm.LoadBalancer](v, fsm.TableBalancers) {
		if !l.Ensured {
			wanted[l.Subject()] = true
		}
	}
	for _, b := range fsm.List[*fsm.Binding](v, fsm.TableBindings) {
		if b.State != fsm.BindingBound && b.State != fsm.BindingDraining {
			wanted[b.Subject()] = true
		}
	}
	maps.Copy(concern, wanted)
	o.forget(concern, now)
	return sortedKeys(wanted)
}

// look compares a line of the record with what this term knows of it. An open attempt that nobody here works at is an
// earlier leader's, or one of ours whose commit got lost: once its deadline is over, with a margin for the difference
// of clocks, its outcome is unknown. It tells whether the line waits for something to be settled.
func (o *operator) look(op *fsm.Operation, epoch fsm.Epoch, now time.Duration, again *time.Duration) bool {
	l := o.line(op.Subject)
	if l.job != nil {
		return false
	}
	if op.Open {
		if l.orphan != op.Attempt {
			l.orphan, l.over = op.Attempt, now+op.Deadline+o.c.Timing.Drift
		}
		if wait := l.over - now; wait > 0 {
			sooner(again, wait)
			return false
		}
		o.abandon(op, l, now)
		return false
	}
	l.orphan = fsm.Revision{}
	if op.Unsettled.IsZero() {
		l.unsettled = fsm.Revision{}
		return false
	}
	if l.unsettled != op.Unsettled {
		l.unsettled, l.ended = op.Unsettled, now // somebody else's call, which ended before its line was closed
		if op.Unsettled.Epoch != epoch {
			// Unless a new epoch closed the line: whoever called before may be at it still, and not know.
			l.ended += op.Deadline + o.c.Timing.Drift
			l.next = max(l.next, l.ended)
		}
	}
	return true
}

// abandon says that the outcome of an attempt is unknown.
func (o *operator) abandon(op *fsm.Operation, l *line, now time.Duration) {
	j := &job{subject: op.Subject, action: op.Action, request: Request{Attempt: op.Attempt}, begun: now}
	l.job, l.orphan = j, fsm.Revision{}
	o.unsaid = append(o.unsaid, result{
		job: j, ended: now, answer: Answer{Result: fsm.ResultUnknown, Message: "the attempt was left open by a change of leader"},
	})
}

// wanted tells which call a line needs; nil for none.
func (o *operator) wanted(v *fsm.View, s fsm.Subject, quarantined bool) *job {
	op, _ := fsm.Get[*fsm.Operation](v, fsm.TableOperations, string(s))
	if id, ok := strings.CutPrefix(string(s), "balancer "); ok {
		l, known := fsm.Get[*fsm.LoadBalancer](v, fsm.TableBalancers, id)
		if !known {
			return nil
		}
		return o.job(s, fsm.ActionEnsureBalancer, l, nil)
	}
	b, action := choose(v.OnSubject(s), op != nil && !op.Unsettled.IsZero())
	if b == nil || action == fsm.ActionDeregister && quarantined {
		return nil
	}
	l, known := fsm.Get[*fsm.LoadBalancer](v, fsm.TableBalancers, string(b.Balancer))
	if !known || action != fsm.ActionDeregister && !l.Ensured {
		return nil // the balancer comes first
	}
	return o.job(s, action, l, b)
}

// choose picks among the bindings of one line the one to call about. Whoever wants the address comes before who wants
// to be rid of it, and settles that by being ensured (S6).
func choose(line []*fsm.Binding, unsettled bool) (*fsm.Binding, fsm.Action) {
	first := func(states ...fsm.BindingState) *fsm.Binding {
		i := slices.IndexFunc(line, func(b *fsm.Binding) bool { return slices.Contains(states, b.State) })
		if i < 0 {
			return nil
		}
		return line[i]
	}
	if b := first(fsm.BindingPending, fsm.BindingAddressing); b != nil {
		return b, fsm.ActionAddress
	}
	if b := first(fsm.BindingEnsuring); b != nil {
		return b, fsm.ActionEnsure
	}
	leaving := first(fsm.BindingDeregistering)
	if b := first(fsm.BindingBound); b != nil && (unsettled || leaving != nil) {
		return b, fsm.ActionEnsure
	}
	if leaving != nil && first(fsm.BindingBound, fsm.BindingDraining) == nil {
		return leaving, fsm.ActionDeregister
	}
	return nil, 0
}

// job makes a call out of what it is about; nil if there is no such driver.
func (o *operator) job(s fsm.Subject, a fsm.Action, l *fsm.LoadBalancer, b *fsm.Binding) *job {
	driver, ok := o.c.Drivers(l.Driver)
	if !ok {
		return nil
	}
	return &job{
		subject: s, action: a, driver: l.Driver, terms: driver.Terms().withDefaults(),
		request: Request{Balancer: l, Binding: b},
	}
}

// retryAfter is how long a line rests after an outcome. Failures back off, spread at random so that what failed
// together does not come back together; a driver that is at it is asked steadily; after an unknown outcome the next
// call goes out at once, the first time.
func (o *operator) retryAfter(l *line, r result) time.Duration {
	floor, most := o.c.Timing.RetryFloor, o.c.Timing.RetryCap
	switch r.answer.Result {
	case fsm.ResultSucceeded:
		l.failures = 0
		if !l.unsettled.IsZero() && !o.settled(r) { // to be repeated once it can be final
			return l.ended + r.terms.Settle - o.c.Clock.Now()
		}
		return 0
	case fsm.ResultRunning:
		l.failures = 0
		return max(floor, r.answer.RetryAfter)
	case fsm.ResultUnknown:
		if l.failures++; l.failures == 1 {
			return 0
		}
	default:
		l.failures++
	}
	backoff := most
	if shift := l.failures - 1; shift < 20 {
		backoff = min(floor<<shift, most)
	}
	return max(backoff/2+time.Duration(o.c.Random.Int64N(int64(backoff/2)+1)), r.answer.RetryAfter)
}
