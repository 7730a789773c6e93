// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// plainErrand is what is to do on a line, in words, and when.
type plainErrand struct {
	call string
	due  time.Duration
}

// plainErrands tells what is to do on every line by looking at the whole record, each time.
func plainErrands(v *fsm.View, confirmed map[confirmable]time.Duration) map[fsm.Subject]plainErrand {
	out := map[fsm.Subject]plainErrand{}
	quarantined := !v.Group().Quarantine.IsZero()
	bindings, balancers := map[fsm.Subject][]*fsm.Binding{}, map[fsm.Subject][]*fsm.LoadBalancer{}
	used := map[fsm.BalancerID]bool{}
	for _, b := range fsm.List[*fsm.Binding](v, fsm.TableBindings) {
		bindings[b.Subject()] = append(bindings[b.Subject()], b)
		used[b.Balancer] = true
	}
	for _, l := range fsm.List[*fsm.LoadBalancer](v, fsm.TableBalancers) {
		balancers[l.Subject()] = append(balancers[l.Subject()], l)
	}
	unsettled := func(s fsm.Subject) bool {
		op, ok := fsm.Get[*fsm.Operation](v, fsm.TableOperations, string(s))
		return ok && !op.Unsettled.IsZero()
	}
	// again is the row that was confirmed the longest part of its period ago.
	again := func(e *plainErrand, c confirmable, every time.Duration, call string) {
		if every == 0 {
			return
		}
		if due := confirmed[c] + every; e.call == "" || due < e.due {
			*e = plainErrand{call, due}
		}
	}
	for s, line := range bindings {
		var e plainErrand
		for _, b := range line { // what waits longest in the order of a life comes first
			switch {
			case b.State <= fsm.BindingAddressing:
				e.call = "address " + b.Key()
			case b.State == fsm.BindingEnsuring && e.call == "":
				e.call = "ensure " + b.Key()
			}
			if e.call != "" {
				break
			}
		}
		in := func(f func(*fsm.Binding) bool) *fsm.Binding {
			if i := slices.IndexFunc(line, f); i >= 0 {
				return line[i]
			}
			return nil
		}
		bound := in(func(b *fsm.Binding) bool { return b.State == fsm.BindingBound })
		draining := in(func(b *fsm.Binding) bool { return b.State == fsm.BindingDraining })
		leaving := in(func(b *fsm.Binding) bool { return b.State == fsm.BindingDeregistering })
		refused := in(func(b *fsm.Binding) bool { return b.State == fsm.BindingBound && !b.Registered })
		switch {
		case e.call != "":
		case bound != nil && (leaving != nil || unsettled(s)):
			e.call = "ensure " + bound.Key()
		case refused != nil:
			e.call = "ensure " + refused.Key()
		case bound != nil:
			for _, b := range line {
				if b.State == fsm.BindingBound {
					again(&e, confirmable{fsm.TableBindings, b.Key()}, b.Ensure.Every(), "ensure "+b.Key())
				}
			}
		case leaving != nil && draining == nil && !quarantined:
			e.call = "deregister " + leaving.Key()
		}
		if e.call != "" {
			out[s] = e
		}
	}
	for s, line := range balancers {
		var e plainErrand
		var ready, leaving []*fsm.LoadBalancer
		for _, l := range line {
			switch {
			case l.State == fsm.BalancerCreating || mayBeAnothers(v, l, used):
				e.call = "create-balancer " + l.Key()
			case l.State == fsm.BalancerReady:
				ready = append(ready, l)
				if !l.Ensured && e.call == "" {
					e.call = "ensure-balancer " + l.Key()
				}
			case !used[l.ID]:
				leaving = append(leaving, l)
			}
		}
		switch {
		case e.call != "":
		case len(ready) > 0 && (len(leaving) > 0 || unsettled(s)):
			e.call = "ensure-balancer " + ready[0].Key()
		case len(ready) > 0:
			for _, l := range ready {
				again(&e, confirmable{fsm.TableBalancers, l.Key()}, l.Ensure.Every(), "ensure-balancer "+l.Key())
			}
		case len(leaving) > 0 && !quarantined:
			e.call = "delete-balancer " + leaving[0].Key()
		}
		if e.call != "" {
			out[s] = e
		}
	}
	return out
}

// mayBeAnothers tells that what is to go has no identity, and that something of the same driver and Spec is needed.
func mayBeAnothers(v *fsm.View, l *fsm.LoadBalancer, used map[fsm.BalancerID]bool) bool {
	return l.State == fsm.BalancerDeleting && l.Identity == "" &&
		slices.ContainsFunc(fsm.List[*fsm.LoadBalancer](v, fsm.TableBalancers), func(o *fsm.LoadBalancer) bool {
			same := o.ID != l.ID && fsm.IdentityOf(o.Driver, o.Spec) == fsm.IdentityOf(l.Driver, l.Spec)
			return same && (used[o.ID] || o.State != fsm.BalancerDeleting)
		})
}

// handClock goes on when a test says so.
type handClock struct{ now *time.Duration }

func (c handClock) Now() time.Duration                   { return *c.now }
func (c handClock) After(time.Duration) <-chan time.Time { return nil }
func (c handClock) Wall() time.Time                      { return time.UnixMilli(1).Add(*c.now) }

// bench is an operator without goroutines: calls are out until a test ends them.
type operatorBench struct {
	t     failer
	group *liveGroup
	now   time.Duration
	l     *Leader
	o     *operator
	out   []*job
	lossy bool // the next entry's answer is lost
}

const benchLimit = 3

func newOperatorBench(t failer) *operatorBench {
	b := &operatorBench{t: t, group: newLiveGroup(t), now: time.Hour}
	b.takeOver()
	return b
}

// takeOver begins a new term: what was out is forgotten.
func (b *operatorBench) takeOver() {
	d := &told{terms: Terms{Timeout: 2 * time.Second, Concurrent: benchLimit}}
	l, err := New(Config{
		Record: b.group.state, Group: b, Clock: handClock{&b.now}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Drivers: func(name string) (Driver, bool) { return d, name != "away" }, Random: rand.New(rand.NewPCG(1, 2)),
		Timing: Timing{RetryFloor: time.Second},
	})
	if err != nil {
		b.t.Fatalf("%v", err)
	}
	b.l, b.o, b.out = l, newOperator(l), nil
}

func (b *operatorBench) Propose(ctx context.Context, u Urgency, proposals []fsm.Proposal) ([]fsm.Outcome, error) {
	out, err := b.group.Propose(ctx, u, proposals)
	if b.lossy {
		return nil, errors.New("answer lost")
	}
	return out, err
}

func (b *operatorBench) VerifyLeader(context.Context) error { return nil }
func (b *operatorBench) Servers() []Server                  { return nil }

// callOf is an errand in words; empty for none.
func callOf(e errand) string {
	switch {
	case e.action == 0:
		return ""
	case e.binding != nil:
		return e.action.String() + " " + e.binding.Key()
	}
	return e.action.String() + " " + e.balancer.Key()
}

// turn is one of operator.run, with its lines and its choice held against the plain ones.
func (b *operatorBench) turn() {
	b.t.Helper()
	v := b.group.state.Read()
	b.o.absorb(v, b.now)
	b.compareLines(v)
	ready := map[string][]*line{}
	ahead := map[string]int{}
	for name, q := range b.o.queues {
		ahead[name] = q.ahead
	}
	for _, l := range b.o.lines {
		if l.in != nil && l.in != &b.o.alarms {
			name := l.errand.balancer.Driver
			ready[name] = append(ready[name], l)
		}
	}
	next := b.o.compose(v, b.now)
	b.compareChoice(next, ready, ahead)
	b.out = append(b.out, next.asks...)
	b.out = append(b.out, b.o.commit(context.Background(), next.steps)...)
}

func (b *operatorBench) compareLines(v *fsm.View) {
	b.t.Helper()
	plain := plainErrands(v, b.o.confirmed)
	for s, l := range b.o.lines {
		if l.job == nil && l.orphan.IsZero() && l.errand.action != 0 && plain[s].call == "" {
			b.t.Fatalf("%s: nothing is to do, and %s is chosen", s, callOf(l.errand))
		}
	}
	for s, want := range plain {
		l := b.o.lines[s]
		op, _ := fsm.Get[*fsm.Operation](v, fsm.TableOperations, string(s))
		switch {
		case l == nil:
			b.t.Fatalf("%s: no line; want %+v", s, want)
		case l.job != nil:
		case op != nil && op.Open:
			if l.orphan != op.Attempt || l.in != &b.o.alarms {
				b.t.Fatalf("%s: attempt %s is open, and nobody waits for it", s, op.Attempt)
			}
		case callOf(l.errand) != want.call:
			b.t.Fatalf("%s: %q, want %q", s, callOf(l.errand), want.call)
		case waitOf(l, want) > b.now:
			if l.in != &b.o.alarms || l.at != waitOf(l, want) {
				b.t.Fatalf("%s: %s at %s, and no alarm then", s, want.call, waitOf(l, want))
			}
		case l.in == nil || l.in == &b.o.alarms:
			b.t.Fatalf("%s: %s is due, and does not wait for its driver", s, want.call)
		}
	}
}

// waitOf is when a line's call may go out: what it waits for after a call counts if that was the same call of the same backend or
// balancer, as that is.
func waitOf(l *line, want plainErrand) time.Duration {
	at := max(l.next, want.due)
	subject, generation := "", uint64(0)
	if b := l.errand.binding; b != nil {
		subject, generation = string(b.ID), b.Generation
	} else if b := l.errand.balancer; b != nil {
		subject, generation = string(b.ID), b.Generation
	}
	if of := l.wait.of; of.action.String()+" "+cmp.Or(string(of.binding), string(of.balancer)) == want.call && strings.HasSuffix(want.call, " "+subject) && of.generation == generation {
		at = max(at, l.wait.until)
	}
	return at
}

// compareChoice holds what begins against all that could.
func (b *operatorBench) compareChoice(next *round, ready map[string][]*line, ahead map[string]int) {
	b.t.Helper()
	begun := map[string][]fsm.Subject{}
	follows := map[fsm.Subject]bool{}
	for _, j := range next.asks {
		begun[j.driver] = append(begun[j.driver], j.subject)
	}
	for i, s := range next.steps {
		if s.begin == nil {
			continue
		}
		if before := next.steps[max(i, 1)-1]; before.end != nil && before.end.action == fsm.ActionAddress && s.begin.action == fsm.ActionEnsure && b.o.lines[s.begin.subject].errand.action == 0 {
			follows[s.begin.subject] = true
			continue
		}
		begun[s.begin.driver] = append(begun[s.begin.driver], s.begin.subject)
	}
	queued := 0
	for name, lines := range ready {
		want := plainChoice(lines, len(begun[name]), ahead[name])
		if slices.Sort(begun[name]); !slices.Equal(begun[name], want) {
			b.t.Fatalf("driver %s: %v begin, it is the turn of %v", name, begun[name], want)
		}
		if left := len(lines) - len(want); left > 0 && b.o.queues[name].running != benchLimit && name != "away" && b.o.mute <= b.now {
			b.t.Fatalf("driver %s: %d wait, and %d of %d places are taken", name, left, b.o.queues[name].running, benchLimit)
		} else if name != "away" {
			queued += left
		}
	}
	if got := b.l.Queued(); got != queued && b.o.mute <= b.now {
		b.t.Fatalf("%d calls are said to wait for a place, not %d", got, queued)
	}
	for name, q := range b.o.queues {
		if q.running < 0 || q.running > benchLimit {
			b.t.Fatalf("driver %s: %d calls", name, q.running)
		}
	}
}

// plainChoice is the lines whose turn it is at a driver that takes n calls: of those that wait for a deregistration and of the
// others who waited longest, and one of the others after three of the former.
func plainChoice(lines []*line, n, ahead int) []fsm.Subject {
	slices.SortFunc(lines, func(x, y *line) int {
		if x.at != y.at {
			return int(x.at - y.at)
		}
		return map[bool]int{true: -1, false: 1}[x.subject < y.subject]
	})
	waiting := map[bool][]fsm.Subject{}
	for _, l := range lines {
		leaves := l.errand.action == fsm.ActionDeregister
		waiting[leaves] = append(waiting[leaves], l.subject)
	}
	var out []fsm.Subject
	for len(out) < min(n, len(lines)) {
		leaves := len(waiting[true]) > 0 && (ahead < 3 || len(waiting[false]) == 0)
		if ahead++; !leaves || len(waiting[false]) == 0 {
			ahead = 0
		}
		out = append(out, waiting[leaves][0])
		waiting[leaves] = waiting[leaves][1:]
	}
	slices.Sort(out)
	return out
}

// Whatever changes in the record, and however calls end: what is to do on every line, and who goes first, is what a look at
// the whole record says; a turn only looks at what changed.
func TestPropertyIncrementalChoiceIsThePlainOne(t *testing.T) {
	did := map[string]int{}
	testkit.Check(t, func(rt *rapid.T) {
		b := newOperatorBench(rt)
		b.group.commit(balancer("a"))
		for range rapid.IntRange(5, 300).Draw(rt, "turns") {
			for range rapid.IntRange(0, 5).Draw(rt, "steps") {
				b.happen(rt, did)
			}
			b.turn()
		}
	})
	for a := fsm.ActionAddress; a <= fsm.ActionCreateBalancer; a++ {
		if did[a.String()] == 0 && !testing.Short() {
			t.Errorf("no call was for %s: this test shows nothing about it (%v)", a, did)
		}
	}
}

// failAll has every call that is out fail.
func (b *operatorBench) failAll() {
	for _, j := range b.out {
		b.o.collect(result{job: j, ended: b.now, answer: Answer{Result: fsm.ResultFailed}})
	}
	b.out = nil
}

// What another object of the same Spec does changes at once what is asked about one without an identity that waits for its
// driver's next call.
func TestIncrementalChoiceSeesWhoAsksForTheSame(t *testing.T) {
	b := newOperatorBench(t)
	id := func(info ...fsm.KV) *fsm.PutLoadBalancer {
		return &fsm.PutLoadBalancer{ID: "known", Driver: "drv", Info: info}
	}
	b.group.commit(&fsm.PutLoadBalancer{ID: "new", Driver: "drv"})
	b.turn()
	b.group.commit(&fsm.DeleteLoadBalancer{ID: "new"})
	b.failAll()
	b.turn()
	b.turn() // nothing that was asked before holds the deletion back
	b.failAll()
	b.turn()
	for _, c := range []fsm.Command{
		id(fsm.KV{Key: "id", Value: "1"}),
		&fsm.PutBinding{ID: "x", Balancer: "known", Address: "10.0.0.1"},
		&fsm.DeleteLoadBalancer{ID: "known"},
		&fsm.Forget{ID: "x"},
	} {
		b.group.commit(c)
		b.turn() // compares
		b.failAll()
		b.turn()
		b.now += time.Millisecond
	}
	if l := b.o.lines["object new"]; l == nil || l.errand.action != fsm.ActionDeleteBalancer {
		t.Errorf("once nobody needs what it may be, it is to be deleted; now %+v", l)
	}
}

// An object that was deleted and made anew with another driver before anybody looked asks for something else, as new as it was.
func TestIncrementalChoiceSeesWhoBeganToAskForTheSame(t *testing.T) {
	b := newOperatorBench(t)
	b.group.commit(&fsm.PutLoadBalancer{ID: "asked", Driver: "drv"})
	b.turn()
	b.group.commit(&fsm.DeleteLoadBalancer{ID: "asked"})
	b.group.commit(&fsm.PutLoadBalancer{ID: "new", Driver: "away"})
	b.failAll()
	b.turn()
	b.turn()
	if got := callOf(b.o.line("object asked").errand); got != "delete-balancer asked" {
		t.Errorf("nobody asks for the same, and %q is chosen", got)
	}
	b.failAll()
	b.turn()
	b.group.commit(&fsm.DeleteLoadBalancer{ID: "new"})
	b.group.commit(&fsm.PutLoadBalancer{ID: "new", Driver: "drv"})
	b.turn()
	if got := callOf(b.o.line("object asked").errand); got != "create-balancer asked" {
		t.Errorf("another asks for the same by now, and %q is chosen", got)
	}
}

// A binding that was forgotten and made anew on another balancer before anybody looked leaves the one, and holds the other:
// so it may be when a LoadBalancer takes the place of a shared one of its name, and when a binding is taken over once more.
func TestIncrementalChoiceSeesABindingThatMoved(t *testing.T) {
	b := newOperatorBench(t)
	former := &fsm.PutLoadBalancer{ID: "former", Driver: "drv", Info: []fsm.KV{{Key: "id", Value: "1"}}}
	latter := &fsm.PutLoadBalancer{ID: "latter", Driver: "drv", Info: []fsm.KV{{Key: "id", Value: "2"}}}
	b.group.commit(former)
	b.group.commit(latter)
	b.group.commit(&fsm.PutBinding{ID: "x", Balancer: "former", Address: "10.0.0.1"})
	b.turn()
	b.group.commit(&fsm.Forget{ID: "x"})
	b.group.commit(&fsm.PutBinding{ID: "x", Balancer: "latter", Address: "10.0.0.1"})
	b.turn()
	b.failAll()
	b.turn()
	b.group.commit(&fsm.DeleteLoadBalancer{ID: "former"})
	b.group.commit(&fsm.DeleteLoadBalancer{ID: "latter"})
	b.turn()
	if got := callOf(b.o.line("balancer drv?id=1").errand); got != "delete-balancer former" {
		t.Errorf("what has no binding any more is to be deleted, not %q", got)
	}
	if got := callOf(b.o.line("balancer drv?id=2").errand); got != "" {
		t.Errorf("what has a binding is to be left alone, not %q", got)
	}
}

func (b *operatorBench) happen(t *rapid.T, did map[string]int) {
	b.lossy = rapid.IntRange(0, 15).Draw(t, "lossy") == 0
	switch what := one(t, "what", "put", "put", "put", "put", "balancer", "balancer", "remove", "remove", "remove", "drained",
		"drained", "delete", "delete", "end", "end", "end", "end", "end", "end", "end", "end", "wait", "epoch", "settle", "settle", "forget", "take-over"); what {
	case "wait":
		b.now += rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 3 * time.Second, time.Minute}).Draw(t, "time")
	case "take-over":
		b.takeOver()
	case "end":
		if len(b.out) == 0 {
			return
		}
		i := rapid.IntRange(0, len(b.out)-1).Draw(t, "job")
		j := b.out[i]
		b.out = slices.Delete(b.out, i, i+1)
		did[j.action.String()]++
		b.o.collect(result{job: j, ended: b.now, answer: Answer{
			Result:  one(t, "result", fsm.ResultSucceeded, fsm.ResultSucceeded, fsm.ResultSucceeded, fsm.ResultFailed, fsm.ResultRunning, fsm.ResultUnknown),
			Address: one(t, "address", "10.0.0.1", "10.0.0.2"), Refused: rapid.Bool().Draw(t, "refused"),
		}})
	default:
		b.group.propose([]fsm.Proposal{{Actor: "test", Command: b.command(t, what)}}, 1)
	}
}

// command is one that the record may refuse.
func (b *operatorBench) command(t *rapid.T, what string) fsm.Command {
	id := fsm.BindingID(fmt.Sprint("x", rapid.IntRange(0, 5).Draw(t, "binding")))
	on := fsm.BalancerID(one(t, "balancer", "a", "a", "b", "c"))
	ensure := one(t, "ensure", fsm.EnsurePolicy{}, fsm.EnsurePolicy{Policy: "Always", Period: 10 * time.Second})
	weight := []fsm.KV{{Key: "weight", Value: one(t, "weight", "1", "2")}}
	switch what {
	case "put":
		return &fsm.PutBinding{ID: id, Balancer: on, Address: one(t, "static", "", "", "10.0.0.1"), Parameters: weight, Ensure: ensure}
	case "balancer": // a and b mean one balancer; c has any driver, and has another one when it is made anew
		c := &fsm.PutLoadBalancer{ID: on, Driver: "drv", Spec: balancer("a").Info, Attributes: weight, Ensure: ensure}
		if on == "c" {
			c.Driver = one(t, "driver", "other", "away", "drv")
		}
		if rapid.Bool().Draw(t, "known") {
			c.Info = c.Spec
		}
		return c
	case "remove":
		return &fsm.RemoveBinding{ID: id, Drain: rapid.Bool().Draw(t, "drain")}
	case "drained":
		return &fsm.Drained{ID: id}
	case "delete":
		return &fsm.DeleteLoadBalancer{ID: on}
	case "epoch":
		_, epoch, _ := b.group.state.Identity()
		return &fsm.NewEpoch{Group: "test", Epoch: epoch + 1, Cause: "restored"}
	case "settle":
		return &fsm.EndQuarantine{Since: b.group.state.Read().Group().Quarantine}
	default:
		return &fsm.Forget{ID: id}
	}
}
