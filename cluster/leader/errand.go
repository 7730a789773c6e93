// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"hash/fnv"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
)

// errand is a call that the record asks for; the zero value is none.
type errand struct {
	action   fsm.Action
	balancer *fsm.LoadBalancer
	binding  *fsm.Binding  // nil for calls about the balancer itself
	due      time.Duration // of a period; zero for at once
}

// errand tells which call the record asks for on a line. What is on it are bindings or balancers, never both.
func (o *operator) errand(v *fsm.View, s fsm.Subject, unsettled bool, now time.Duration) errand {
	if bindings := v.OnSubject(s); len(bindings) > 0 {
		return o.errandOfBindings(v, bindings, unsettled, now)
	}
	return o.errandOfBalancers(v, v.BalancersOn(s), unsettled, now)
}

// errandOfBindings picks among the bindings of one line the one to call about. Whoever wants the address comes before who
// wants to be rid of it, and settles that by being ensured (S6).
func (o *operator) errandOfBindings(v *fsm.View, line []*fsm.Binding, unsettled bool, now time.Duration) errand {
	w := func(a fsm.Action, b *fsm.Binding) errand {
		l, known := fsm.Get[*fsm.LoadBalancer](v, fsm.TableBalancers, string(b.Balancer))
		if !known {
			return errand{} // the record refuses that
		}
		return errand{action: a, balancer: l, binding: b}
	}
	if b := firstIn(line, fsm.BindingPending, fsm.BindingAddressing); b != nil {
		return w(fsm.ActionAddress, b)
	}
	if b := firstIn(line, fsm.BindingEnsuring); b != nil {
		return w(fsm.ActionEnsure, b)
	}
	leaving := firstIn(line, fsm.BindingDeregistering)
	if b := firstIn(line, fsm.BindingBound); b != nil {
		if unsettled || leaving != nil {
			return w(fsm.ActionEnsure, b)
		}
		if refused := slices.IndexFunc(line, func(b *fsm.Binding) bool { return b.State == fsm.BindingBound && !b.Registered }); refused >= 0 {
			return w(fsm.ActionEnsure, line[refused])
		}
		if b, due := o.periodic(line, now); b != nil {
			out := w(fsm.ActionEnsure, b)
			out.due = due
			return out
		}
		return errand{}
	}
	if leaving != nil && !o.quarantined && firstIn(line, fsm.BindingDraining) == nil {
		return w(fsm.ActionDeregister, leaving)
	}
	return errand{}
}

func firstIn(line []*fsm.Binding, states ...fsm.BindingState) *fsm.Binding {
	i := slices.IndexFunc(line, func(b *fsm.Binding) bool { return slices.Contains(states, b.State) })
	if i < 0 {
		return nil
	}
	return line[i]
}

// periodic finds the bound binding that is to be ensured again next, and when (lbcf §4.3).
func (o *operator) periodic(line []*fsm.Binding, now time.Duration) (next *fsm.Binding, due time.Duration) {
	for _, b := range line {
		every := o.every(b.Ensure)
		if b.State != fsm.BindingBound || every == 0 {
			continue
		}
		if at := o.confirmedAt(confirmable{fsm.TableBindings, b.Key()}, every, now) + every; next == nil || at < due {
			next, due = b, at
		}
	}
	return next, due
}

// every is how often a policy has something ensured again; zero for never.
func (o *operator) every(p fsm.EnsurePolicy) time.Duration {
	every := p.Every()
	if every > 0 {
		every = max(every, o.c.Timing.RetryLeast)
	}
	return every
}

// errandOfBalancers picks among the objects that mean one balancer the one to call about. Whoever wants it comes before
// who wants to be rid of it, and settles that by being ensured. What has no identity yet and may be what another object
// means is not deleted: its driver is asked first what it is.
func (o *operator) errandOfBalancers(v *fsm.View, line []*fsm.LoadBalancer, unsettled bool, now time.Duration) errand {
	var ready, leaving, next *fsm.LoadBalancer
	var due time.Duration
	for _, l := range line {
		switch {
		case l.State == fsm.BalancerCreating:
			return errand{action: fsm.ActionCreateBalancer, balancer: l}
		case l.State == fsm.BalancerDeleting:
			if _, shared := v.Namesake(l); shared {
				return errand{action: fsm.ActionCreateBalancer, balancer: l}
			}
			if leaving == nil && o.bindings[l.ID] == 0 {
				leaving = l
			}
		case !l.Ensured:
			return errand{action: fsm.ActionEnsureBalancer, balancer: l}
		default:
			if ready == nil {
				ready = l
			}
			if every := o.every(l.Ensure); every > 0 {
				if at := o.confirmedAt(confirmable{fsm.TableBalancers, l.Key()}, every, now) + every; next == nil || at < due {
					next, due = l, at
				}
			}
		}
	}
	switch {
	case ready != nil && (unsettled || leaving != nil):
		return errand{action: fsm.ActionEnsureBalancer, balancer: ready}
	case next != nil:
		return errand{action: fsm.ActionEnsureBalancer, balancer: next, due: due}
	case ready == nil && leaving != nil && !o.quarantined:
		return errand{action: fsm.ActionDeleteBalancer, balancer: leaving}
	}
	return errand{}
}

// confirmable is a row that its driver confirms again and again.
type confirmable struct {
	table fsm.Table
	key   string
}

// confirmedAt is when the driver confirmed a row last. What this term never saw confirmed counts as confirmed some part
// of a period ago, each its own: a new leader does not call for all at once.
func (o *operator) confirmedAt(c confirmable, every, now time.Duration) time.Duration {
	at, ok := o.confirmed[c]
	if !ok {
		h := fnv.New64a()
		_, _ = h.Write([]byte(c.key))
		at = now - time.Duration(h.Sum64()%uint64(every))
		o.confirmed[c] = at
	}
	return at
}
