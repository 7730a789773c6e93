// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fairlead.io/fairlead/fsm"
)

// outside is a load balancer that none of us wrote: it is slow, fails, forgets to answer, and does late what it was
// asked to do. It knows nothing of the record; what is on it is compared with the record at every change of either.
type outside struct {
	state *fsm.State
	terms Terms
	seed  uint64
	calm  atomic.Bool // answers everything at once, from now on

	mu         sync.Mutex
	present    map[place]string // parameters
	standing   map[fsm.Identity]bool
	forgotten  map[place]bool // an operator's word counts: nobody answers for what is there
	inFlight   map[fsm.Subject]int
	calls      map[fsm.Subject]uint64
	violations []string
	log        []string       // what happened, in order
	effects    sync.WaitGroup // that are still to come
	counts     map[string]int // how often what happened
}

// place is a backend's address on a balancer.
type place struct {
	balancer fsm.BalancerID
	address  string
}

func newOutside(state *fsm.State, terms Terms, seed uint64) *outside {
	return &outside{
		state: state, terms: terms, seed: seed, present: map[place]string{}, standing: map[fsm.Identity]bool{}, forgotten: map[place]bool{}, inFlight: map[fsm.Subject]int{},
		calls: map[fsm.Subject]uint64{}, counts: map[string]int{},
	}
}

func (o *outside) violate(format string, args ...any) {
	o.violations = append(o.violations, fmt.Sprintf(format, args...))
}

// note keeps what happened, for whoever has to find out why. It is called with mu held.
func (o *outside) note(format string, args ...any) {
	o.log = append(o.log, time.Now().Format("05.000000 ")+fmt.Sprintf(format, args...))
}

func (o *outside) say(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note(format, args...)
}

// compare holds S4, S5 and S6 against what is outside. It is called with mu held, after every change.
func (o *outside) compare() {
	v := o.state.Read()
	covered := map[place]bool{}
	for _, b := range fsm.List[*fsm.Binding](v, fsm.TableBindings) {
		if b.Address == "" {
			continue
		}
		at := place{b.Balancer, b.Address}
		covered[at] = true
		op, _ := fsm.Get[*fsm.Operation](v, fsm.TableOperations, string(b.Subject()))
		if b.State == fsm.BindingBound && op.Unsettled.IsZero() && o.present[at] == "" {
			o.violate("S6: %s is bound and settled at index %d, and %v is not there", b.ID, v.Applied(), at)
		}
	}
	for at := range o.present {
		if !covered[at] && !o.forgotten[at] {
			o.violate("S4: %v is there at index %d, and no binding covers it", at, v.Applied())
		}
	}
	o.compareBalancers(v)
}

// compareBalancers does so for balancers.
func (o *outside) compareBalancers(v *fsm.View) {
	covered := map[fsm.Identity]bool{}
	for _, l := range fsm.List[*fsm.LoadBalancer](v, fsm.TableBalancers) {
		id := meantBy(l)
		covered[id] = true
		op, known := fsm.Get[*fsm.Operation](v, fsm.TableOperations, string(l.Subject()))
		if l.State == fsm.BalancerReady && l.Ensured && !o.standing[id] && (!known || op.Unsettled.IsZero()) {
			o.violate("S6: %s is ensured and settled at index %d, and %s is not there", l.ID, v.Applied(), id)
		}
	}
	for id := range o.standing {
		if !covered[id] {
			o.violate("S4: %s is there at index %d, and no object covers it", id, v.Applied())
		}
	}
}

// meantBy is which balancer an object means: before it is created, what its author asked for.
func meantBy(l *fsm.LoadBalancer) fsm.Identity {
	if l.Identity != "" {
		return l.Identity
	}
	return fsm.IdentityOf(l.Driver, l.Spec)
}

// committed is called after every change of the record.
func (o *outside) committed(proposals []fsm.Proposal, outcomes []fsm.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, outcome := range outcomes {
		o.note("%s: %T %+v: %s %s", proposals[i].Actor, proposals[i].Command, proposals[i].Command, outcome.Reject, outcome.Revision)
	}
	o.compare()
}

// forget takes an operator's word on a place.
func (o *outside) forget(at place) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forgotten[at] = true
}

// effect does what a call asked for.
func (o *outside) effect(a fsm.Action, at place, parameters string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note("effect of %s at %v %s", a, at, parameters)
	switch a {
	case fsm.ActionEnsure:
		o.present[at] = parameters
	case fsm.ActionDeregister:
		delete(o.present, at)
	case fsm.ActionCreateBalancer, fsm.ActionEnsureBalancer:
		o.standing[fsm.Identity(at.balancer)] = true
	case fsm.ActionDeleteBalancer:
		delete(o.standing, fsm.Identity(at.balancer))
	}
	o.compare()
}

// later does it after d.
func (o *outside) later(d time.Duration, a fsm.Action, at place, parameters string) {
	o.effects.Add(1)
	time.AfterFunc(d, func() {
		defer o.effects.Done()
		o.effect(a, at, parameters)
	})
}

// moods are what a call may meet with.
const (
	moodWell = iota
	moodSlow
	moodRefuses
	moodRuns
	moodHangs       // and does nothing
	moodDoesAndHang // and did it
	moodDoesLater   // hangs, and does it within the settle time
	moods
)

var moodNames = [...]string{"well", "slow", "refuses", "runs", "hangs", "does-and-hangs", "does-later"}

// mood is drawn from the seed, the subject and how often it was called, so that it does not hang on how goroutines
// are scheduled.
func (o *outside) mood(s fsm.Subject) (mood int, random *rand.Rand) {
	o.calls[s]++
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	random = rand.New(rand.NewPCG(o.seed^h.Sum64(), o.calls[s]))
	if o.calm.Load() || random.IntN(2) == 0 {
		return moodWell, random
	}
	return random.IntN(moods), random
}

// driver is the outside as one leader reaches it.
type driver struct {
	*outside
	clock Clock
}

func (d driver) Terms(fsm.Action) Terms { return d.terms }

func (d driver) Call(ctx context.Context, a fsm.Action, r Request) Answer {
	var subject fsm.Subject
	var at place
	parameters := "-"
	if r.Binding != nil {
		subject, at = r.Binding.Subject(), place{r.Binding.Balancer, r.Binding.Address}
		parameters = fmt.Sprint(r.Binding.Parameters)
	} else {
		subject, at = r.Balancer.Subject(), place{balancer: fsm.BalancerID(meantBy(r.Balancer))}
	}
	d.mu.Lock()
	if now := d.clock.Now(); now >= r.Deadline {
		d.mu.Unlock()
		return Answer{Result: fsm.ResultFailed, Message: "late"}
	}
	d.inFlight[subject]++
	if n := d.inFlight[subject]; n > 1 && a != fsm.ActionAddress {
		d.violate("S7: %d calls in flight about %s", n, subject)
	}
	mood, random := d.mood(subject)
	d.counts[moodNames[mood]]++
	d.counts[a.String()]++
	d.note("call %s about %s, attempt %s: meets with %s", a, subject, r.Attempt, moodNames[mood])
	d.mu.Unlock()
	answer := d.meet(ctx, a, at, parameters, mood, random)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inFlight[subject]--
	d.note("call %s about %s, attempt %s: ends %s", a, subject, r.Attempt, resultName(answer.Result))
	return answer
}

func (d driver) meet(ctx context.Context, a fsm.Action, at place, parameters string, mood int, random *rand.Rand) Answer {
	switch mood {
	case moodSlow: // it happens at some moment of the call, and is answered at a later one
		some := func() <-chan time.Time { return time.After(time.Duration(random.Int64N(int64(d.terms.Timeout)))) }
		select {
		case <-some():
			d.effect(a, at, parameters)
		case <-ctx.Done(): // it was given up, and happens all the same
			d.later(time.Duration(random.Int64N(int64(d.terms.Settle))), a, at, parameters)
			return Answer{Result: fsm.ResultUnknown, Message: "gave up"}
		}
		select {
		case <-some():
			return Answer{Result: fsm.ResultSucceeded, Address: oneOf(random)}
		case <-ctx.Done():
			return Answer{Result: fsm.ResultUnknown, Message: "gave up"}
		}
	case moodRefuses:
		return Answer{Result: fsm.ResultFailed, Message: "no"}
	case moodRuns:
		return Answer{Result: fsm.ResultRunning, Message: "at it", RetryAfter: 700 * time.Millisecond}
	case moodDoesAndHang, moodHangs, moodDoesLater:
		if mood == moodDoesAndHang {
			d.effect(a, at, parameters)
		}
		<-ctx.Done()
		if mood == moodDoesLater {
			d.later(time.Duration(random.Int64N(int64(d.terms.Settle))), a, at, parameters)
		}
		return Answer{Result: fsm.ResultUnknown, Message: "no answer"}
	}
	d.effect(a, at, parameters)
	return Answer{Result: fsm.ResultSucceeded, Address: oneOf(random)}
}

// oneOf is an address that others may have too.
func oneOf(random *rand.Rand) string { return fmt.Sprintf("10.0.0.%d", 1+random.IntN(3)) }

// seat is a place in the group: the one who leads sits on it. Others' proposals get nowhere.
type seat struct {
	*liveGroup
	outside *outside
	leads   atomic.Bool
	lossy   func() bool // commits, and loses the answer
}

var errDeposed = errors.New("not the leader")

func (s *seat) Propose(ctx context.Context, u Urgency, proposals []fsm.Proposal) ([]fsm.Outcome, error) {
	if !s.leads.Load() {
		return nil, errDeposed
	}
	out, err := s.liveGroup.Propose(ctx, u, proposals)
	s.outside.committed(proposals, out)
	if err == nil && s.lossy() {
		return nil, errors.New("answer lost")
	}
	return out, err
}

func (s *seat) VerifyLeader(ctx context.Context) error {
	if !s.leads.Load() {
		return errDeposed
	}
	return ctx.Err()
}

// asked lists what the record asks to be outside, and whether anything is still under way.
func asked(v *fsm.View) (want map[place][]string, busy []string) {
	want = map[place][]string{}
	for _, b := range fsm.List[*fsm.Binding](v, fsm.TableBindings) {
		if b.State != fsm.BindingBound {
			busy = append(busy, fmt.Sprintf("%s is %s: %s", b.ID, b.State, b.Reason))
			continue
		}
		at := place{b.Balancer, b.Address}
		want[at] = append(want[at], fmt.Sprint(b.Parameters))
	}
	for _, l := range fsm.List[*fsm.LoadBalancer](v, fsm.TableBalancers) {
		if l.State != fsm.BalancerReady || !l.Ensured {
			busy = append(busy, fmt.Sprintf("%s is %s: %s", l.ID, l.State, l.Reason))
		}
	}
	for _, op := range fsm.List[*fsm.Operation](v, fsm.TableOperations) {
		if op.Open || len(v.OnSubject(op.Subject)) > 0 && !op.Unsettled.IsZero() {
			busy = append(busy, fmt.Sprintf("%s: open %t, unsettled %s", op.Subject, op.Open, op.Unsettled))
		}
	}
	slices.Sort(busy)
	return want, busy
}
