// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"maps"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
)

// absorb brings the lines up to a view and a time. It costs what changed since the view before.
func (o *operator) absorb(v *fsm.View, now time.Duration) {
	o.touch(v)
	g := v.Group()
	if quarantined := !g.Quarantine.IsZero(); quarantined != o.quarantined || g.Epoch != o.epoch {
		o.quarantined, o.epoch = quarantined, g.Epoch
		o.touchAll(v) // other calls are asked for everywhere
	}
	o.view = v
	for len(o.alarms) > 0 && o.alarms[0].at <= now {
		l := o.alarms[0]
		l.leave()
		o.dirty[l.subject] = true
	}
	for _, s := range sortedKeys(o.dirty) {
		o.weigh(v, s, now)
	}
	clear(o.dirty)
}

// touch marks the lines that something changed on since the view before.
func (o *operator) touch(v *fsm.View) {
	fsm.Changes(o.view, v, fsm.TableOperations, func(before, after *fsm.Operation) {
		if after == nil {
			after = before
		}
		o.dirty[after.Subject] = true
	})
	turned := false // what a balancer of the same Spec may be asked for
	fsm.Changes(o.view, v, fsm.TableBalancers, func(before, after *fsm.LoadBalancer) {
		turned = turned || before == nil || after == nil || before.State != after.State || !sameWish(before, after)
		if before != nil {
			o.dirty[before.Subject()] = true
			delete(o.nameless, before.Subject())
		}
		if after != nil {
			o.dirty[after.Subject()] = true
			if after.State == fsm.BalancerDeleting && after.Identity == "" {
				o.nameless[after.Subject()] = true
			}
		} else {
			delete(o.confirmed, confirmable{fsm.TableBalancers, before.Key()})
		}
	})
	fsm.Changes(o.view, v, fsm.TableBindings, func(before, after *fsm.Binding) {
		if before != nil {
			o.dirty[before.Subject()] = true
		}
		if after != nil {
			o.dirty[after.Subject()] = true
		} else {
			delete(o.confirmed, confirmable{fsm.TableBindings, before.Key()})
		}
		if before != nil && after != nil && before.Balancer == after.Balancer {
			return // what happens most
		}
		if before != nil {
			turned = o.count(v, before.Balancer, -1) || turned
		}
		if after != nil {
			turned = o.count(v, after.Balancer, 1) || turned
		}
	})
	if turned {
		maps.Copy(o.dirty, o.nameless)
	}
}

// touchAll marks every line of the record.
func (o *operator) touchAll(v *fsm.View) {
	for _, op := range fsm.List[*fsm.Operation](v, fsm.TableOperations) {
		o.dirty[op.Subject] = true
	}
	for _, l := range fsm.List[*fsm.LoadBalancer](v, fsm.TableBalancers) {
		o.dirty[l.Subject()] = true
	}
	for _, b := range fsm.List[*fsm.Binding](v, fsm.TableBindings) {
		o.dirty[b.Subject()] = true
	}
}

// sameWish tells whether two versions of an object ask the same of the same driver. One that went and came back between two
// views may not.
func sameWish(a, b *fsm.LoadBalancer) bool {
	return a.Driver == b.Driver && slices.Equal(a.Spec, b.Spec)
}

// count keeps how many bindings a balancer has: its deletion waits for the last. A binding never changes its balancer, but
// one that went and came back between two views may have another. It tells whether that may change what is to be done about
// balancers.
func (o *operator) count(v *fsm.View, id fsm.BalancerID, by int) bool {
	o.bindings[id] += by
	n := o.bindings[id]
	if n == 0 {
		delete(o.bindings, id)
	}
	if n > 1 {
		return false
	}
	l, ok := fsm.Get[*fsm.LoadBalancer](v, fsm.TableBalancers, string(id))
	if !ok || l.State != fsm.BalancerDeleting {
		return false
	}
	o.dirty[l.Subject()] = true
	return true
}

// weigh finds out anew what is to do on a line, and when.
func (o *operator) weigh(v *fsm.View, s fsm.Subject, now time.Duration) {
	l := o.line(s)
	l.leave()
	if l.job != nil {
		return
	}
	unsettled := o.look(v, l, now)
	if !l.orphan.IsZero() {
		if l.over > now {
			o.alarms.enter(l, l.over)
			return
		}
		o.abandon(v, l, now)
		return
	}
	before := l.errand.action
	l.errand = o.errand(v, s, unsettled, now)
	if l.errand.action != 0 && before == 0 {
		l.since = now
	}
	due := l.notBefore()
	switch {
	case l.idle(now):
		delete(o.lines, s)
	case due > now:
		o.alarms.enter(l, due)
	case l.errand.action != 0:
		o.queue(l.errand.balancer.Driver).enter(l, max(l.since, due))
	}
}

// look compares a line of the record with what this term knows of it. An open attempt that nobody here works at is an
// earlier leader's, or one of ours whose commit got lost: once its deadline is over, with a margin for the difference
// of clocks, its outcome is unknown. It tells whether the line waits for something to be settled.
func (o *operator) look(v *fsm.View, l *line, now time.Duration) (unsettled bool) {
	op, ok := fsm.Get[*fsm.Operation](v, fsm.TableOperations, string(l.subject))
	if ok && op.Open {
		if l.orphan != op.Attempt {
			l.orphan, l.over = op.Attempt, now+op.Deadline+o.c.Timing.Drift
		}
		return false
	}
	l.orphan = fsm.Revision{}
	if ok {
		o.heed(l, op, now)
	}
	if !ok || op.Unsettled.IsZero() {
		l.unsettled = fsm.Revision{}
		return false
	}
	if l.unsettled != op.Unsettled {
		l.unsettled, l.ended = op.Unsettled, now // somebody else's call, which ended before its line was closed
		if op.Unsettled.Epoch != o.epoch {
			// Unless a new epoch closed the line: whoever called before may be at it still, and not know.
			l.ended += op.Deadline + o.c.Timing.Drift
			l.next = max(l.next, l.ended)
		}
	}
	return true
}

// heed takes in what a driver told an earlier leader of when to ask again. What is left of that is told by the wall clocks of two
// machines: it is no more than the driver asked for, whatever they show.
func (o *operator) heed(l *line, op *fsm.Operation, now time.Duration) {
	if op.RetryAfter <= 0 || l.wait.attempt == op.Attempt {
		return
	}
	ago := time.Duration(o.c.Clock.Wall().UnixMilli()-op.Answered) * time.Millisecond
	l.wait = wait{
		of:    purpose{op.Action, op.Binding, op.Balancer, op.Generation},
		until: now + op.RetryAfter - min(max(ago, 0), op.RetryAfter), attempt: op.Attempt,
	}
}

// abandon says that the outcome of an attempt is unknown.
func (o *operator) abandon(v *fsm.View, l *line, now time.Duration) {
	op, _ := fsm.Get[*fsm.Operation](v, fsm.TableOperations, string(l.subject))
	l.job = &job{subject: l.subject, action: op.Action, request: Request{Attempt: op.Attempt}, begun: now}
	l.orphan = fsm.Revision{}
	o.unsaid = append(o.unsaid, result{
		job: l.job, ended: now, answer: Answer{Result: fsm.ResultUnknown, Message: "the attempt was left open by a change of leader"},
	})
}
