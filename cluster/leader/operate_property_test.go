// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// reign is one leader's time: from its election until everything of it has ended.
type reign struct {
	seat *seat
	stop context.CancelFunc
	done chan struct{}
}

// theatre is a group, its leaders one after another, and the outside that they operate.
type theatre struct {
	group   *liveGroup
	outside *outside
	random  *rand.Rand
	now     *reign
	past    []*reign
}

func newTheatre(t failer, seed uint64) *theatre {
	g := newLiveGroup(t)
	terms := Terms{Timeout: 2 * time.Second, Settle: 2 * time.Second, Concurrent: 3}
	if seed%2 == 1 { // a call may outlast the time within which an earlier one takes effect
		terms.Timeout, terms.Settle = 3*time.Second, time.Second
	}
	th := &theatre{group: g, outside: newOutside(g.state, terms, seed), random: rand.New(rand.NewPCG(seed, 1))}
	g.commit(balancer("drv/a"), balancer("drv/b"))
	return th
}

// elect begins a reign. The one before it may go on for a while without knowing.
func (th *theatre) elect(t failer, zombieFor time.Duration) {
	if old := th.now; old != nil {
		old.seat.leads.Store(false)
		time.AfterFunc(zombieFor, old.stop)
		th.past = append(th.past, old)
	}
	s := &seat{liveGroup: th.group, outside: th.outside}
	loss := rand.New(rand.NewPCG(th.random.Uint64(), 2))
	s.lossy = func() bool { return !th.outside.calm.Load() && loss.IntN(20) == 0 }
	s.leads.Store(true)
	clock := newWall()
	clock.start = clock.start.Add(-time.Duration(th.random.Int64N(int64(time.Hour)))) // every machine's starts elsewhere
	l, err := New(Config{
		Record: th.group.state, Group: s, Clock: clock, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Drivers: func(string) (Driver, bool) { return driver{th.outside, clock}, true }, Random: rand.New(rand.NewPCG(th.random.Uint64(), 3)),
		Timing: Timing{Drift: time.Second, RetryFloor: 300 * time.Millisecond, RetryCap: 3 * time.Second, Checkpoint: time.Hour},
	})
	if err != nil {
		t.Fatalf("new leader: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &reign{seat: s, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		newOperator(l).run(ctx) // alone: no planner has a say in what a test puts into the record
	}()
	th.now = r
}

// end stops every reign and waits until nothing is left that could happen.
func (th *theatre) end() {
	th.now.stop()
	for _, r := range append(th.past, th.now) {
		<-r.done
	}
	th.outside.effects.Wait()
}

// cue is one thing that happens, and how long until the next. Everything is drawn beforehand: what the record holds at
// some moment may hang on how goroutines are scheduled.
type cue struct {
	Elect   bool
	Zombie  time.Duration // how long the leader before goes on
	Act     string
	Object  *fsm.PutLoadBalancer
	Binding fsm.BindingID
	To      place // for a binding that does not exist
	Weight  string
	Pause   time.Duration
}

// alike is an object that means the same balancer as others of its kind.
func alike(id fsm.BalancerID) *fsm.PutLoadBalancer {
	out := balancer("drv/alike")
	out.ID = id
	return out
}

func drawCue(t *rapid.T) cue {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	return cue{
		Elect: rapid.IntRange(0, 9).Draw(t, "elect") == 0, Zombie: ms(rapid.IntRange(0, 3000).Draw(t, "zombie")),
		Act:     one(t, "act", "put", "put", "put", "put", "remove", "remove", "drain", "drained", "settle", "renew", "forget", "balancer", "balancer", "delete", "delete"),
		Object:  one(t, "object", wanted("drv/c"), alike("drv/d"), alike("drv/e")),
		Binding: fsm.BindingID(one(t, "binding", "x", "y", "z", "w")),
		To:      place{fsm.BalancerID(one(t, "balancer", "drv/a", "drv/a", "drv/a", "drv/b")), one(t, "address", "10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2", "")},
		Weight:  one(t, "weight", "1", "2"),
		Pause:   ms(rapid.SampledFrom([]int{0, 10, 1500, 4000, 9000}).Draw(t, "pause")),
	}
}

// play has one cue happen. The record may refuse what it asks for.
func (th *theatre) play(t failer, q cue) {
	if q.Elect {
		th.elect(t, q.Zombie)
		th.outside.say("another leader; the one before goes on for %s", q.Zombie)
	}
	v := th.group.state.Read()
	var c fsm.Command
	switch q.Act {
	case "put":
		put := &fsm.PutBinding{ID: q.Binding, Balancer: q.To.balancer, Address: q.To.address, Parameters: []fsm.KV{{Key: "weight", Value: q.Weight}}}
		if b, exists := fsm.Get[*fsm.Binding](v, fsm.TableBindings, string(q.Binding)); exists {
			put.Balancer, put.Address = b.Balancer, ""
		}
		c = put
	case "remove", "drain":
		c = &fsm.RemoveBinding{ID: q.Binding, Drain: q.Act == "drain"}
	case "drained":
		c = &fsm.Drained{ID: q.Binding}
	case "forget":
		c = &fsm.Forget{ID: q.Binding}
	case "balancer":
		object := *q.Object
		object.Attributes, object.Ensure = []fsm.KV{{Key: "weight", Value: q.Weight}}, fsm.EnsurePolicy{Policy: "Always", Period: 5 * time.Second}
		c = &object
	case "delete":
		c = &fsm.DeleteLoadBalancer{ID: q.Object.ID}
	case "renew":
		_, epoch, _ := th.group.state.Identity()
		c = &fsm.NewEpoch{Group: "test", Epoch: epoch + 1, Cause: "restored"}
	default:
		c = &fsm.EndQuarantine{Since: v.Group().Quarantine}
	}
	var outcomes []fsm.Outcome
	proposals := []fsm.Proposal{{Actor: "test", Command: c}}
	th.group.set(func() {
		if b, exists := fsm.Get[*fsm.Binding](th.group.state.Read(), fsm.TableBindings, string(q.Binding)); exists && q.Act == "forget" {
			th.outside.forget(place{b.Balancer, b.Address})
		}
		outcomes = th.group.propose(proposals, 1)
	})
	th.outside.committed(proposals, outcomes)
	time.Sleep(q.Pause)
	th.judge(t)
}

// After every change of the record and of the outside, whatever leaders come and go, whatever calls do when: what we
// put there is covered by a binding (S4), a record goes only after its removal (S5), what is bound and settled is there
// (S6), and one call at most is in flight per subject (S7). Once the driver answers again, everything that was asked
// for is so within a stated time, and nothing else is there (L2).
func TestPropertyOperationsKeepTheOutsideInLine(t *testing.T) {
	moods, counts := append(moodNames[:], "create-balancer", "ensure-balancer", "delete-balancer"), map[string]int{}
	missing := func() string {
		for _, mood := range moods {
			if counts[mood] == 0 {
				return fmt.Sprintf("no call met with %q: this test shows nothing about it (%v)", mood, counts)
			}
		}
		return ""
	}
	testkit.CheckUntil(t, missing, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		cues := rapid.SliceOfN(rapid.Custom(drawCue), 10, 60).Draw(rt, "cues")
		if why := bubble(t, func(t failer) {
			th := newTheatre(t, seed)
			th.elect(t, 0)
			defer th.end()
			for _, q := range cues {
				th.play(t, q)
			}
			th.converge(t)
			th.outside.mu.Lock()
			defer th.outside.mu.Unlock()
			for k, n := range th.outside.counts {
				counts[k] += n
			}
		}); why != "" {
			rt.Fatal(why)
		}
	})
}

// bubble runs f where time passes only while everybody waits, and tells why it failed.
func bubble(t *testing.T, f func(failer)) (why string) {
	synctest.Test(t, func(*testing.T) {
		defer func() {
			if v := recover(); v != nil {
				why = fmt.Sprint(v)
			}
		}()
		f(panicker{})
	})
	return why
}

// panicker fails by a panic that bubble turns into its answer.
type panicker struct{}

func (panicker) Helper()                           {}
func (panicker) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// judge fails on the first rule that was broken.
func (th *theatre) judge(t failer) {
	t.Helper()
	th.outside.mu.Lock()
	defer th.outside.mu.Unlock()
	if len(th.outside.violations) > 0 {
		t.Fatalf("%s\n%s", th.outside.violations[0], strings.Join(th.outside.log, "\n"))
	}
}

// healedWithin is what L2 allows here: the retry cap, the driver's hint, an attempt of a lost leader, and two settle
// times, and then some.
const healedWithin = 30 * time.Second

func (th *theatre) converge(t failer) {
	t.Helper()
	for _, b := range fsm.List[*fsm.Binding](th.group.state.Read(), fsm.TableBindings) {
		if b.State == fsm.BindingDraining {
			th.group.commit(&fsm.Drained{ID: b.ID})
		}
	}
	if q := th.group.state.Read().Group().Quarantine; !q.IsZero() {
		th.group.commit(&fsm.EndQuarantine{Since: q})
	}
	th.outside.calm.Store(true)
	time.Sleep(healedWithin)
	synctest.Wait() // what is asked again and again may be under way
	th.judge(t)
	want, busy := asked(th.group.state.Read())
	if len(busy) > 0 {
		t.Fatalf("%s after the driver answers again:\n%s", healedWithin, strings.Join(busy, "\n"))
	}
	th.outside.mu.Lock()
	defer th.outside.mu.Unlock()
	for at := range th.outside.forgotten {
		if want[at] == nil {
			delete(th.outside.present, at)
		}
	}
	for at, parameters := range th.outside.present {
		if th.outside.forgotten[at] && want[at] != nil {
			continue // the parameters may be those of the binding that was forgotten
		}
		if !slices.Contains(want[at], parameters) {
			t.Fatalf("%v is there with %s; the record asks for %v", at, parameters, want[at])
		}
	}
	if len(want) != len(th.outside.present) {
		t.Fatalf("there is %v; the record asks for %v", slices.Collect(maps.Keys(th.outside.present)), want)
	}
}
