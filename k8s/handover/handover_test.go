// SPDX-License-Identifier: Apache-2.0

package handover_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/handover"
)

// lbcf §13: only one of LBCF and the product may be active on a cluster.
func TestASightIsBusyWhileLBCFActsOrMayBegin(t *testing.T) {
	type d = []handover.Deployment
	type p = []handover.Pod
	for name, c := range map[string]struct {
		seen handover.Sight
		want string // part of the reason; empty: not busy
	}{
		"nothing":         {handover.Sight{}, ""},
		"ready":           {handover.Sight{Deployments: d{{"lbcf-controller", 1, 1}}}, "kubectl -n kube-system scale deployment lbcf-controller --replicas=0"},
		"renamed":         {handover.Sight{Deployments: d{{"my-lbcf", 2, 1}}}, "scale deployment my-lbcf --replicas=0"},
		"coming-back":     {handover.Sight{Deployments: d{{"lbcf-controller", 1, 0}}}, "wants 1 replicas and has 0 ready"},
		"going-down":      {handover.Sight{Deployments: d{{"lbcf-controller", 0, 1}}}, "has 1 ready"},
		"scaled-to-zero":  {handover.Sight{Deployments: d{{"lbcf-controller", 0, 0}}}, ""},
		"pod-that-ends":   {handover.Sight{Deployments: d{{"lbcf-controller", 0, 0}}, Pods: p{{"lbcf-controller-x", "ReplicaSet lbcf-controller-1"}}}, "pod kube-system/lbcf-controller-x of ReplicaSet"},
		"pod-by-hand":     {handover.Sight{Pods: p{{"debug", ""}}}, "kubectl -n kube-system delete pod debug"},
		"pods-by-hand":    {handover.Sight{Pods: p{{"a", ""}, {"b", ""}}}, "delete pod b"},
		"pod-not-told":    {handover.Sight{Deployments: d{{"lbcf-controller", 1, 1}}, Pods: p{{"x", ""}}}, "scale"},
		"one-of-two-left": {handover.Sight{Deployments: d{{"a", 0, 0}, {"b", 1, 0}}}, "deployment b"},
	} {
		t.Run(name, func(t *testing.T) {
			reason, busy := handover.Judge(c.seen)
			if busy != (c.want != "") || !strings.Contains(reason, c.want) || busy == (reason == "") {
				t.Errorf("%v, %q; want %q", busy, reason, c.want)
			}
			if name == "pod-not-told" && strings.Contains(reason, "pod ") {
				t.Errorf("a pod is told beside its deployment: %q", reason)
			}
		})
	}
}

// answer is what the API server says next.
type answer struct {
	seen handover.Sight
	err  error
}

// cluster is a cluster that the test turns.
type cluster struct {
	mu    sync.Mutex
	now   answer
	looks int
}

func (w *cluster) set(a answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = a
}

func (w *cluster) look(context.Context) (handover.Sight, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	return w.now.seen, w.now.err
}

func running() handover.Sight {
	return handover.Sight{Deployments: []handover.Deployment{{Name: "lbcf-controller", Wanted: 1, Ready: 1}}}
}

// lbcf §13: objects are left alone until the first answer, and while LBCF runs; an answer holds while the API server is away.
func TestTheLastAnswerHoldsAndUntilTheFirstEverythingIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("connection refused")
		w := &cluster{now: answer{err: away}}
		var log testkit.Log
		registry := prometheus.NewRegistry()
		c, err := handover.New(handover.Options{Look: w.look, Logger: slog.New(slog.NewTextHandler(&log, nil)), Registerer: registry})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		for _, step := range []struct {
			name    string
			next    answer
			busy    bool
			reason  string
			changes bool
		}{
			{"no answer yet", answer{err: away}, true, "not known yet", false},
			{"LBCF runs", answer{seen: running()}, true, "lbcf-controller", true},
			{"no answer while it runs", answer{err: away}, true, "lbcf-controller", false},
			{"it is gone", answer{}, false, "", true},
			{"no answer since", answer{err: away}, false, "", false},
			{"it is back", answer{seen: running()}, true, "lbcf-controller", true},
		} {
			synctest.Wait()
			changed := c.Changed()
			w.set(step.next)
			time.Sleep(6 * time.Second)
			synctest.Wait()
			reason, busy := c.Busy()
			if busy != step.busy || !strings.Contains(reason, step.reason) || !busy && reason != "" {
				t.Errorf("%s: %v, %q", step.name, busy, reason)
			}
			select {
			case <-changed:
				if !step.changes {
					t.Errorf("%s: told a change", step.name)
				}
			default:
				if step.changes {
					t.Errorf("%s: told no change", step.name)
				}
			}
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "cannot look"); n != 3 {
			t.Errorf("three outages are told %d times:\n%s", n, log.String())
		}
		if n := strings.Count(log.String(), "an LBCF controller runs"); n != 2 {
			t.Errorf("two controllers are told %d times:\n%s", n, log.String())
		}
		err = testutil.GatherAndCompare(registry, strings.NewReader(
			"# HELP fairlead_lbcf_handover_busy 1 while LBCF's objects are left alone, since an LBCF controller runs or may run.\n"+
				"# TYPE fairlead_lbcf_handover_busy gauge\nfairlead_lbcf_handover_busy 1\n"), "fairlead_lbcf_handover_busy")
		if err != nil {
			t.Error(err)
		}
	})
}

// LBCF can act again as soon as the API server answers, so we look by then.
func TestALookThatFailedIsRepeatedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &cluster{}
		c, err := handover.New(handover.Options{Look: w.look, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = c.Run(ctx) }()
		synctest.Wait()
		w.set(answer{err: errors.New("no route to host")})
		time.Sleep(30 * time.Second)
		w.set(answer{seen: running()})
		time.Sleep(time.Second)
		synctest.Wait()
		if _, busy := c.Busy(); !busy {
			t.Error("LBCF runs, and the API server has answered for a second")
		}
		cancel()
		<-ended
	})
}

// Another reign begins by not knowing: LBCF may have been started since. Who was asked and does not answer is told apart.
func TestARunBeginsByNotKnowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &cluster{}
		c, err := handover.New(handover.Options{Look: w.look, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		notKnown := func(when string, unanswered bool) {
			t.Helper()
			if reason, busy := c.Busy(); !busy || !strings.Contains(reason, "not known yet") || c.Unanswered() != unanswered {
				t.Errorf("%s: %v, %q, unanswered %v", when, busy, reason, c.Unanswered())
			}
		}
		during := func(f func()) {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); _ = c.Run(ctx) }()
			synctest.Wait()
			f()
			cancel()
			<-ended
		}
		for range 2 {
			notKnown("before", false)
			during(func() {
				if _, busy := c.Busy(); busy || c.Unanswered() {
					t.Error("busy with nothing there")
				}
			})
			notKnown("between", false)
			w.set(answer{seen: w.now.seen, err: errors.New("no route to host")})
			during(func() { notKnown("not answered", true) })
			w.set(answer{seen: w.now.seen})
			during(func() {
				time.Sleep(time.Second)
				w.set(answer{seen: w.now.seen, err: errors.New("no route to host")})
				time.Sleep(8 * time.Second) // TestNobodyIsThereForAWhileOnly: it holds for ten in all
				synctest.Wait()
				if _, busy := c.Busy(); busy || c.Unanswered() {
					t.Error("what was answered does not hold")
				}
				w.set(answer{seen: w.now.seen})
			})
		}
	})
}

// What LBCF did before it was gone is to be seen by whoever goes on: until then it counts as there, and if it is back meanwhile it does.
func TestNobodyIsGoneBeforeWhatItDidIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &cluster{now: answer{seen: running()}}
		settled, settling := make(chan error), 0
		c, err := handover.New(handover.Options{Look: w.look, Logger: slog.New(slog.DiscardHandler), Settle: func(context.Context) error {
			settling++
			return <-settled
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = c.Run(ctx) }()
		is := func(when string, want bool, calls int) {
			t.Helper()
			time.Sleep(6 * time.Second)
			synctest.Wait()
			if _, busy := c.Busy(); busy != want || settling != calls {
				t.Errorf("%s: busy %v after %d calls; want %v after %d", when, busy, settling, want, calls)
			}
		}
		is("it runs", true, 0)
		w.set(answer{})
		is("it is gone", true, 1)
		settled <- errors.New("no route to host")
		is("it cannot be said what it did", true, 2)
		w.set(answer{seen: running()})
		settled <- nil
		is("it is back", true, 2)
		w.set(answer{})
		is("it is gone again", true, 3)
		settled <- nil
		is("what it did is seen", false, 3)
		is("later", false, 3)
		cancel()
		<-ended
	})
}

// An API server that says that nobody runs, and cannot be asked what was left, has not answered: who has taken over already goes on.
func TestWhatCannotBeReadIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, settled := &cluster{}, make(chan error)
		c, err := handover.New(handover.Options{Look: w.look, Logger: slog.New(slog.DiscardHandler), Settle: func(ctx context.Context) error {
			select {
			case err := <-settled:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = c.Run(ctx) }()
		is := func(after time.Duration, busy, unanswered bool) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if _, is := c.Busy(); is != busy || c.Unanswered() != unanswered {
				t.Errorf("busy %v, unanswered %v", is, c.Unanswered())
			}
		}
		is(9*time.Second, true, false)
		is(2*time.Second, true, true)
		settled <- nil
		is(0, false, false)
		is(time.Minute, false, false)
		cancel()
		<-ended
	})
}

// An API server that does not answer us may answer an LBCF controller that comes and goes: what that left is read before anything is
// acted on anew, if there was time for one.
func TestNobodyIsThereForAWhileOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &cluster{}
		settled := 0
		c, err := handover.New(handover.Options{
			Look: w.look, Logger: slog.New(slog.DiscardHandler),
			Settle: func(context.Context) error { settled++; return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		away := answer{err: errors.New("connection refused")}
		for _, step := range []struct {
			name             string
			next             answer
			wait             time.Duration
			busy, unanswered bool
			settled          int
		}{
			{"nobody is there", answer{}, 6 * time.Second, false, false, 1},
			{"no answer for a moment", away, 7 * time.Second, false, false, 1},
			{"an answer", answer{}, 2 * time.Second, false, false, 1},
			{"no answer for long", away, 11 * time.Second, true, true, 1},
			{"an answer after long", answer{}, 2 * time.Second, false, false, 2},
			{"LBCF runs", answer{seen: running()}, 6 * time.Second, true, false, 2},
			{"no answer for long while it runs", away, 30 * time.Second, true, false, 2},
		} {
			w.set(step.next)
			time.Sleep(step.wait)
			synctest.Wait()
			if _, busy := c.Busy(); busy != step.busy || c.Unanswered() != step.unanswered || settled != step.settled {
				t.Errorf("%s: busy %v, unanswered %v, settled %d times", step.name, busy, c.Unanswered(), settled)
			}
		}
		cancel()
		<-ended
	})
}

func TestForceNeverLooks(t *testing.T) {
	w := &cluster{now: answer{seen: running()}}
	c, err := handover.New(handover.Options{Look: w.look, Force: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if reason, busy := c.Busy(); busy || reason != "" || w.looks != 0 {
		t.Errorf("%v, %q after %d looks", busy, reason, w.looks)
	}
}
