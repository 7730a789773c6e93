// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"fairlead.io/fairlead/cluster/leader/balancers"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// OutsideForecast is what would come of a draft outside.
type OutsideForecast struct {
	Forecast
	// Calls are those that drivers would get and do not get without the draft, in the order in which they would be due.
	Calls []OutsideCall
}

// OutsideCall is a call that a driver would get.
type OutsideCall struct {
	Driver string // "namespace/name"
	// Action is that of an operation, or Judging: whether pods stay that are not ready.
	Action string
	// Balancer is the object that means the load balancer, Backend the binding; empty where the call is not about one.
	Balancer, Backend string
	// Owner is the object that the backend is for, or whose pods are judged.
	Owner string
	// Target is the backend in words.
	Target string
	// Address is the backend's, empty until the driver tells it.
	Address string
	// With is what the call would carry: parameters, attributes, or names of pods.
	With string
}

// Judging is the action of a call that asks which pods stay.
const Judging = "judge"

// ForeseeOutside tells what would come of a draft outside, by the plans and the calls that would be made one after the other in copies of
// the record, where every call succeeds at once. Nobody is called. What the sources ask for already is no part of it. Errors are about
// the draft's source, or ctx's.
func ForeseeOutside(ctx context.Context, in OutsideInput, d Draft) (OutsideForecast, error) {
	drafted, stand, err := d.outside(in)
	if err != nil {
		return OutsideForecast{}, err
	}
	before, err := in.foretell(ctx, nil, nil)
	if err != nil {
		return OutsideForecast{}, err
	}
	after, err := in.foretell(ctx, drafted, stand)
	if err != nil {
		return OutsideForecast{}, err
	}
	f := OutsideForecast{Forecast: Forecast{Held: after.held, Changes: compareOutside(before.record, after.record)}}
	f.Calls = beyond(after.calls, before.calls)
	for _, e := range beyond(after.waiting, before.waiting) {
		f.Waiting = append(f.Waiting, Explanation(e))
	}
	return f, nil
}

// beyond lists what is in a more often than in b.
func beyond[T comparable](a, b []T) (out []T) {
	left := map[T]int{}
	for _, x := range b {
		left[x]++
	}
	for _, x := range a {
		if left[x]--; left[x] < 0 {
			out = append(out, x)
		}
	}
	return out
}

// foretold is a record that came to rest, and what it took.
type foretold struct {
	record  *fsm.View
	calls   []OutsideCall
	waiting []balancers.Explanation
	held    []Hold
}

// foretellRounds bounds the plans of a forecast: a load balancer is created, backends have their addresses told and are registered, and
// others that wait for them go on; each is a round.
const foretellRounds = 32

// foretell plans and pretends to call until nothing changes any more. What is drafted comes before what the views show; what stands in the
// place of a source is acted on when it was read once, and again when it was read twice.
func (in OutsideInput) foretell(ctx context.Context, drafted *world.World, stand *standIn) (foretold, error) {
	as, err := in.Record.Copy()
	if err != nil {
		return foretold{}, fmt.Errorf("copy the record: %w", err)
	}
	x, p := &balancers.Index{}, newPretender(as)
	if err := p.conclude(); err != nil {
		return foretold{}, err
	}
	if stand == nil {
		return in.settle(ctx, x, p, drafted)
	}
	shown := in.Views
	in.Views, _ = stand.read(as.Read(), shown)
	if _, err := in.settle(ctx, x, p, nil); err != nil {
		return foretold{}, err
	}
	views, held := stand.read(as.Read(), shown)
	in.Views = views
	out, err := in.settle(ctx, x, p, nil)
	out.held = held
	return out, err
}

// settle plans and pretends to call until nothing changes any more.
func (in *OutsideInput) settle(ctx context.Context, x *balancers.Index, p *pretender, drafted *world.World) (foretold, error) {
	for range foretellRounds {
		if err := ctx.Err(); err != nil {
			return foretold{}, err
		}
		before := p.as.Digest()
		out := x.Plan(in.plan(p.as.Read(), drafted))
		if err := pretend(p.as, out.Proposals); err != nil {
			return foretold{}, err
		}
		if err := p.call(); err != nil {
			return foretold{}, err
		}
		if p.as.Digest() == before {
			p.ask(out.Questions)
			return foretold{record: p.as.Read(), calls: p.calls, waiting: out.Waiting}, nil
		}
	}
	return foretold{}, fmt.Errorf("the plan of outside load balancers does not come to rest within %d rounds", foretellRounds)
}

// pretender carries out what a record asks for outside as if every driver did what it is asked, at once.
type pretender struct {
	as    *fsm.State
	o     *operator
	now   time.Duration
	calls []OutsideCall
	told  map[makings]string // addresses
}

// makings are all that an address is made from.
type makings struct {
	fsm.Identity
	fsm.Backend
}

func makingsOf(b *fsm.Binding) makings { return makings{b.Identity, b.Backend} }

func newPretender(as *fsm.State) *pretender {
	o := &operator{
		c: Config{Timing: Timing{}.withDefaults()}, queued: new(atomic.Int64), lines: map[fsm.Subject]*line{}, dirty: map[fsm.Subject]bool{},
		queues: map[string]*queue{}, bindings: map[fsm.BalancerID]int{}, nameless: map[fsm.Subject]bool{}, confirmed: map[confirmable]time.Duration{},
	}
	p := &pretender{as: as, o: o, told: map[makings]string{}}
	for _, b := range fsm.List[*fsm.Binding](as.Read(), fsm.TableBindings) {
		if b.Address != "" {
			p.told[makingsOf(b)] = b.Address
		}
	}
	return p
}

// conclude has what is under way end well: it is no part of a forecast.
func (p *pretender) conclude() error {
	for _, op := range fsm.List[*fsm.Operation](p.as.Read(), fsm.TableOperations) {
		l, known := fsm.Get[*fsm.LoadBalancer](p.as.Read(), fsm.TableBalancers, string(op.Balancer))
		if !op.Open || !known {
			continue
		}
		if _, err := p.commit(p.success(op.Subject, op.Attempt, op.Action, l)); err != nil {
			return err
		}
	}
	return nil
}

// call makes every call that the record asks for now and those that follow from them: the operator looks at the record more often than
// anybody plans.
func (p *pretender) call() error {
	for made := len(p.calls) - 1; made < len(p.calls); {
		made = len(p.calls)
		if err := p.callOnce(); err != nil {
			return err
		}
	}
	return nil
}

// callOnce makes the call that the record asks for now on each line.
func (p *pretender) callOnce() error {
	p.o.absorb(p.as.Read(), p.now)
	for _, s := range slices.Sorted(maps.Keys(p.o.lines)) {
		e := p.o.lines[s].errand
		if e.action == 0 || e.due > p.now {
			continue
		}
		made, err := p.make(s, e)
		if err != nil {
			return err
		}
		if made {
			p.calls = append(p.calls, foretoldCall(e))
		}
	}
	return nil
}

// ask makes the calls of questions that were not asked yet.
func (p *pretender) ask(questions []balancers.Question) {
	for _, q := range questions {
		if c := judgingOf(&q); !slices.Contains(p.calls, c) {
			p.calls = append(p.calls, c)
		}
	}
}

// make has a call succeed. False: the record does not want it now.
func (p *pretender) make(s fsm.Subject, e errand) (made bool, err error) {
	if e.action == fsm.ActionAddress {
		out, err := p.commit(&fsm.SetBindingAddress{ID: e.binding.ID, UID: e.binding.UID, Address: p.addressOf(e.binding)})
		return err == nil && out.Reject == fsm.Accepted, err
	}
	begin := &fsm.BeginOperation{Action: e.action, Deadline: time.Second}
	if e.binding != nil {
		begin.Binding = e.binding.ID
	} else {
		begin.Balancer = e.balancer.ID
	}
	out, err := p.commit(begin)
	if err != nil || out.Reject != fsm.Accepted {
		return false, err
	}
	_, err = p.commit(p.success(s, out.Revision, e.action, e.balancer))
	return true, err
}

// untold begins what stands for an address that a driver has yet to tell. Nobody else has one of these.
const untold = "?"

// addressOf is what a driver would tell: it says the same again of what is made from the same.
func (p *pretender) addressOf(b *fsm.Binding) string {
	address, known := p.told[makingsOf(b)]
	if !known {
		address = untold + string(b.ID)
		p.told[makingsOf(b)] = address
	}
	return address
}

// success is the end of a call that did what it was for.
func (p *pretender) success(s fsm.Subject, attempt fsm.Revision, a fsm.Action, l *fsm.LoadBalancer) fsm.Command {
	f := &fsm.FinishOperation{Subject: s, Attempt: attempt, Result: fsm.ResultSucceeded, Settled: true}
	if a == fsm.ActionCreateBalancer {
		f.Returned = p.meant(l)
	}
	return f
}

// meant is what a driver would know a load balancer by: objects that ask the same of it mean the same.
func (p *pretender) meant(l *fsm.LoadBalancer) []fsm.KV {
	for _, o := range fsm.List[*fsm.LoadBalancer](p.as.Read(), fsm.TableBalancers) {
		if o.Driver == l.Driver && slices.Equal(o.Spec, l.Spec) && len(o.Info) > 0 {
			return o.Info
		}
	}
	return append([]fsm.KV{{Key: untold, Value: untold}}, l.Spec...)
}

func (p *pretender) commit(c fsm.Command) (fsm.Outcome, error) {
	out, err := pretended(p.as, []fsm.Proposal{{Actor: actor, Reason: "foretold", Command: c}})
	if err != nil {
		return fsm.Outcome{}, err
	}
	return out[0], nil
}

func foretoldCall(e errand) OutsideCall {
	c := OutsideCall{Driver: e.balancer.Driver, Action: e.action.String(), Balancer: ThingName(string(e.balancer.ID))}
	switch b := e.binding; {
	case b != nil:
		c.Backend, c.Target, c.Owner, c.With = string(b.ID), TargetOf(b), ThingName(b.Owner), wordsOf(b.Parameters)
		if !strings.HasPrefix(b.Address, untold) {
			c.Address = b.Address
		}
	case e.action == fsm.ActionCreateBalancer:
		c.With = strings.TrimSpace(wordsOf(e.balancer.Spec) + " " + wordsOf(e.balancer.Attributes))
	default:
		c.With = wordsOf(e.balancer.Attributes)
	}
	return c
}

func judgingOf(q *balancers.Question) OutsideCall {
	var pods []string
	for _, pod := range q.Pods {
		pods = append(pods, pod.Name)
	}
	return OutsideCall{Driver: q.Driver.String(), Action: Judging, Owner: ThingName(q.Owner), With: strings.Join(pods, " ")}
}

func wordsOf(list []fsm.KV) string {
	var out []string
	for _, kv := range list {
		out = append(out, kv.Key+"="+kv.Value)
	}
	return strings.Join(out, " ")
}

// ThingName is how people name the object of a load balancer or an owner, "kind/namespace/name/uid" and in a Bind the entry after it.
func ThingName(id string) string {
	f := strings.SplitN(id, "/", 5)
	switch {
	case len(f) < 3:
		return id
	case len(f) == 5:
		return f[0] + " " + f[1] + "/" + f[2] + " " + f[4]
	}
	return f[0] + " " + f[1] + "/" + f[2]
}

// TargetOf is the backend of a binding in words.
func TargetOf(b *fsm.Binding) string {
	switch of := b.Backend; of.Kind {
	case "Pod":
		return fmt.Sprintf("pod %s port %d/%s", of.Name, of.Port, of.Protocol)
	case "Service":
		return fmt.Sprintf("node %s port %d/%s", of.Node, of.NodePort, of.Protocol)
	}
	return b.Address
}

// compareOutside lists what differs between two records in what they have outside.
func compareOutside(before, after *fsm.View) []Change {
	var out []Change
	say := func(target, name, what string) { out = append(out, Change{target, name, what}) }
	pairs(before, after, fsm.TableDrivers, func(was, is *fsm.Driver) {
		switch {
		case was == nil:
			say("driver", is.Name, "becomes known at "+fsm.WithoutUserinfo(is.URL))
		case is == nil:
			say("driver", was.Name, "is forgotten")
		case was.URL != is.URL:
			say("driver", is.Name, "is called at "+fsm.WithoutUserinfo(is.URL)+", not "+fsm.WithoutUserinfo(was.URL))
		case was.Draining != is.Draining:
			say("driver", is.Name, map[bool]string{true: "takes no new objects", false: "takes new objects again"}[is.Draining])
		case !sameTerms(was, is):
			say("driver", is.Name, "is called on other terms")
		}
	})
	pairs(before, after, fsm.TableBalancers, func(was, is *fsm.LoadBalancer) {
		switch {
		case was == nil:
			say("loadbalancer", ThingName(string(is.ID)), "comes to be, by driver "+is.Driver)
		case is == nil:
			say("loadbalancer", ThingName(string(was.ID)), "goes, by driver "+was.Driver)
		case !slices.Equal(was.Attributes, is.Attributes):
			say("loadbalancer", ThingName(string(is.ID)), "has the attributes "+wordsOf(is.Attributes))
		}
	})
	pairs(before, after, fsm.TableBindings, func(was, is *fsm.Binding) {
		switch {
		case was == nil:
			say("backend", string(is.ID), TargetOf(is)+" comes onto "+ThingName(string(is.Balancer))+" for "+ThingName(is.Owner))
		case is == nil:
			say("backend", string(was.ID), TargetOf(was)+" goes off "+ThingName(string(was.Balancer)))
		case was.UID != is.UID:
			say("backend", string(is.ID), TargetOf(was)+" goes off "+ThingName(string(was.Balancer))+", and another one of its name comes")
		case !slices.Equal(was.Parameters, is.Parameters):
			say("backend", string(is.ID), TargetOf(is)+" has the parameters "+wordsOf(is.Parameters))
		}
	})
	return out
}

// sameTerms tells whether calls to a driver are made alike.
func sameTerms(a, b *fsm.Driver) bool {
	return slices.Equal(a.Timeouts, b.Timeouts) && a.AcceptsDryRun == b.AcceptsDryRun && a.Secret == b.Secret && a.Concurrent == b.Concurrent && a.Settle == b.Settle
}
