// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"fmt"
	"sync"

	"fairlead.io/fairlead/cluster/leader/balancers"
	"fairlead.io/fairlead/fsm"
)

// rehearseRounds bounds the plans of a dry run, each made from what the one before would leave.
const rehearseRounds = 8

// rehearse finds out in a copy of the record what would come of a plan, of the plans after it, and of what the record has from
// before (lbcf §5.9): all of it is logged, and drivers are asked what they would do.
func (o *outsidePlanning) rehearse(seen *merged, record *fsm.View, proposals []fsm.Proposal) {
	as, err := record.Copy()
	var all []fsm.Proposal
	var out balancers.Result
	for round := 0; err == nil && round < rehearseRounds; round++ {
		if err = pretend(as, proposals); err == nil {
			all = append(all, proposals...)
			out = balancers.Plan(o.input(seen, as.Read()))
		}
		if proposals = out.Proposals; len(proposals) == 0 {
			break
		}
	}
	o.withhold(all)
	if err != nil {
		o.c.Log.Warn("dry run not finished", "err", err)
		return
	}
	if o.c.Rehearsed != nil {
		o.c.Rehearsed(as.Read())
	}
	o.judging.ask(out.Questions)
	o.rehearsal.ask(as.Read())
}

// pretend applies proposals to a record that nobody else has.
func pretend(as *fsm.State, proposals []fsm.Proposal) error {
	_, err := pretended(as, proposals)
	return err
}

// pretended does so, and gives the outcomes.
func pretended(as *fsm.State, proposals []fsm.Proposal) (outcomes []fsm.Outcome, err error) {
	_, epoch, _ := as.Identity()
	for len(proposals) > 0 {
		n := min(fsm.MaxItems, len(proposals))
		data, err := fsm.EncodeEntry(epoch, proposals[:n])
		if err != nil {
			return nil, fmt.Errorf("encode what is not proposed: %w", err)
		}
		for _, of := range as.ApplyEntries([]fsm.LogEntry{{Index: as.Applied() + 1, Term: 1, Data: data}}) {
			outcomes = append(outcomes, of...)
		}
		proposals = proposals[n:]
	}
	return outcomes, nil
}

// rehearsal asks drivers in a dry run for what they would be called for: once for each object, since no answer changes anything.
type rehearsal struct {
	c       Config
	leader  *Leader
	changed chan struct{} // holds a token when there may be something to ask

	mu     sync.Mutex
	wanted []errand
	asked  map[string]bool // keys of objects
}

// rehearseTogether bounds the calls of a dry run that are out at once.
const rehearseTogether = 16

func newRehearsal(l *Leader) *rehearsal {
	return &rehearsal{c: l.c, leader: l, changed: make(chan struct{}, 1), asked: map[string]bool{}}
}

// ask takes what the operator would do about a record, all of it.
func (r *rehearsal) ask(v *fsm.View) {
	o := newOperator(r.leader)
	o.absorb(v, r.c.Clock.Now())
	var wanted []errand
	for _, s := range sortedKeys(o.lines) {
		if e := o.lines[s].errand; e.action != 0 {
			wanted = append(wanted, e)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted = wanted
	poke(r.changed)
}

// next is a call that was not made yet.
func (r *rehearsal) next() (e errand, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.wanted) > 0 {
		e, r.wanted = r.wanted[0], r.wanted[1:]
		if key := e.about(); !r.asked[key] {
			r.asked[key] = true
			return e, true
		}
	}
	return errand{}, false
}

// about is the object that a call is about.
func (e errand) about() string {
	if e.binding != nil {
		return "binding " + e.binding.Key()
	}
	return "load balancer " + e.balancer.Key()
}

// run makes the calls, for one term, until ctx ends.
func (r *rehearsal) run(ctx context.Context) {
	places := make(chan struct{}, rehearseTogether)
	var joined sync.WaitGroup
	defer joined.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.changed:
		}
		for e, ok := r.next(); ok; e, ok = r.next() {
			select {
			case <-ctx.Done():
				return
			case places <- struct{}{}:
			}
			joined.Go(func() {
				defer func() { <-places }()
				r.call(ctx, e)
			})
		}
	}
}

func (r *rehearsal) call(ctx context.Context, e errand) {
	d, known := r.c.Drivers(e.balancer.Driver)
	if !known {
		r.c.Log.Info("driver of a dry run not there", "driver", e.balancer.Driver, "action", e.action, "subject", e.about())
		return
	}
	terms := d.Terms(e.action).withDefaults()
	a := d.Call(ctx, e.action, Request{
		Balancer: e.balancer, Binding: e.binding, Deadline: r.c.Clock.Now() + terms.Timeout, DryRun: true,
	})
	r.c.Log.Info("driver asked in a dry run", "driver", e.balancer.Driver, "action", e.action, "subject", e.about(),
		"result", resultName(a.Result), "message", fsm.Text(a.Message, fsm.MaxMessage))
}

// withhold logs what a plan would change in a dry run, each of it once for as long as it stays in the plan
// (lbcf §5.9).
func (o *outsidePlanning) withhold(proposals []fsm.Proposal) {
	said := make(map[string]bool, len(proposals))
	for _, p := range proposals {
		command, subject := kindOf(p.Command), subjectOf(p.Command)
		what := command + " " + subject + " " + p.Reason
		if !o.withheld[what] && !said[what] {
			o.c.Log.Info("not proposed in a dry run", "command", command, "subject", subject, "reason", p.Reason)
		}
		said[what] = true
	}
	o.withheld = said
}

// subjectOf is which record a command of outside load balancers is about.
func subjectOf(c fsm.Command) string {
	switch c := c.(type) {
	case *fsm.PutDriver:
		return c.Driver.Name
	case *fsm.DeleteDriver:
		return c.Name
	case *fsm.PutLoadBalancer:
		return string(c.ID)
	case *fsm.DeleteLoadBalancer:
		return string(c.ID)
	case *fsm.ForgetLoadBalancer:
		return string(c.ID)
	case *fsm.PutBinding:
		return string(c.ID)
	case *fsm.AdoptBinding:
		return string(c.Binding.ID)
	case *fsm.RemoveBinding:
		return string(c.ID)
	case *fsm.Forget:
		return string(c.ID)
	case *fsm.PutHold:
		return string(c.ID)
	}
	return ""
}
