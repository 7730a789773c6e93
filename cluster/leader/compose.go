// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
)

// step is one command of an entry: the outcome of a call, or an attempt.
type step struct {
	end   *result
	begin *job
}

// round is what is to do next.
type round struct {
	steps []step // of the next entry
	// asks are questions for addresses. To be asked changes nothing outside, so nothing is committed before.
	asks  []*job
	again time.Duration // how long until there may be more
}

// compose puts together what goes into the next entry: outcomes, each with the attempt that follows from it, and as many
// other attempts as there are places for.
func (o *operator) compose(v *fsm.View, now time.Duration) *round {
	out := &round{again: o.c.Timing.Replan}
	if o.mute > now {
		out.again = o.mute - now
		return out
	}
	for _, r := range o.unsaid {
		if len(out.steps)+2 > maxTogether {
			break
		}
		out.steps = append(out.steps, step{end: &r})
		if j := o.followUp(v, &r, now); j != nil {
			out.steps = append(out.steps, step{begin: j})
		}
	}
	queued := 0
	for _, q := range o.inTurn() {
		o.serve(q, out, now)
		queued += q.waiting()
	}
	o.queued.Store(int64(queued))
	if len(o.alarms) > 0 {
		sooner(&out.again, o.alarms[0].at-now)
	}
	o.tidy(now)
	return out
}

// inTurn lists the drivers that lines wait for, the one whose first line waited longest first.
func (o *operator) inTurn() []*queue {
	var out []*queue
	for _, q := range o.queues {
		if q.size() > 0 {
			out = append(out, q)
		}
	}
	slices.SortStableFunc(out, func(a, b *queue) int {
		return cmp.Or(cmp.Compare(a.since(), b.since()), cmp.Compare(a.driver, b.driver))
	})
	return out
}

// serve begins as many calls to a driver as it may have. One that does not answer is asked once at a time.
func (o *operator) serve(q *queue, out *round, now time.Duration) {
	d, ok := o.c.Drivers(q.driver)
	q.full = false
	switch {
	case !ok:
		return
	case q.rest > now:
		sooner(&out.again, q.rest-now)
		return
	}
	settle, silent := longestSettle(d), silence(d)
	for q.size() > 0 && len(out.steps) < maxTogether {
		l := q.first()
		terms := d.Terms(l.errand.action).withDefaults()
		if q.full = q.running >= terms.Concurrent; q.full || silent && q.running > 0 {
			break
		}
		q.take()
		l.job = &job{
			subject: l.subject, action: l.errand.action, driver: q.driver, terms: terms, settle: settle,
			request: Request{Balancer: l.errand.balancer, Binding: l.errand.binding},
		}
		q.running++
		if l.job.action == fsm.ActionAddress {
			l.job.begin(now)
			out.asks = append(out.asks, l.job)
		} else {
			out.steps = append(out.steps, step{begin: l.job})
		}
	}
}

func silence(d Driver) bool {
	s, ok := d.(Silencer)
	return ok && s.Silence() != nil
}

// followUp is the ensuring of a backend whose address the same entry brings: to wait until that is committed would cost
// each backend another commit. Where others share the address, the record is looked at first, and where deregistrations wait for the
// place, it is theirs.
func (o *operator) followUp(v *fsm.View, r *result, now time.Duration) *job {
	if r.action != fsm.ActionAddress || r.answer.Result != fsm.ResultSucceeded {
		return nil
	}
	b, ok := fsm.Get[*fsm.Binding](v, fsm.TableBindings, r.request.Binding.Key())
	if !ok || b.State > fsm.BindingAddressing || b.UID != r.request.Binding.UID {
		return nil
	}
	s := fsm.SubjectOf(b.Identity, r.answer.Address, b.ID)
	if _, called := fsm.Get[*fsm.Operation](v, fsm.TableOperations, string(s)); called || o.lines[s] != nil || len(v.OnSubject(s)) > 0 {
		return nil
	}
	d, ok := o.c.Drivers(r.driver)
	if !ok {
		return nil
	}
	q, terms := o.queue(r.driver), d.Terms(fsm.ActionEnsure).withDefaults()
	if q.rest > now || q.running >= terms.Concurrent || len(q.leaving) > 0 || silence(d) {
		return nil
	}
	j := &job{
		subject: s, action: fsm.ActionEnsure, driver: r.driver, terms: terms, settle: r.settle,
		request: Request{Balancer: r.request.Balancer, Binding: b},
	}
	o.line(s).job = j
	q.running++
	return j
}

// tidy tells of the queues, and forgets those that nothing is known of.
func (o *operator) tidy(now time.Duration) {
	for name, q := range o.queues {
		o.metrics.queued(q)
		if q.size() == 0 && q.running == 0 && q.rest <= now {
			delete(o.queues, name)
		}
	}
}
