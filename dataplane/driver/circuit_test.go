// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/driver"
	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// lbcf §11 #43: a driver that does not answer is asked less and less, calls to it fail at once and for certain, and they
// say why; an answer of any kind ends that.
func TestADriverThatDoesNotAnswerIsLeftAlone(t *testing.T) {
	for name, away := range map[string]func(*http.Request) (*http.Response, error){
		"refuses": broken(errors.Join(driver.ErrNotSent, errors.New("connection refused"))), "breaks": broken(io.ErrUnexpectedEOF),
		"hangs": silence, "gateway": answer(503, "no healthy upstream"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &endpoint{serve: away}
				c := client(t, e, nil)
				calls, lasted := untilOpen(t, c)
				if (calls < 64 || lasted < 3*time.Second) && (calls < 5 || lasted < 20*time.Second) || lasted > 51*time.Second { // five calls of ten seconds
					t.Errorf("left alone after %d calls within %v", calls, lasted)
				}
				began := time.Now()
				_, err := ensure(t.Context(), c, driver.Call{})
				var open *driver.Error
				if !errors.As(err, &open) || open.Cause != driver.CauseOpen || driver.ResultOf("", err) != fsm.ResultFailed || e.calls() != calls || time.Since(began) != 0 {
					t.Fatal(err, e.calls(), time.Since(began))
				}
				if open.RetryAfter <= 0 || open.RetryAfter > 2*time.Second || c.Silence() == nil || !strings.Contains(err.Error(), c.Silence().Error()) {
					t.Error(err, open.RetryAfter, c.Silence())
				}
				// For a minute, as often as anybody may ask.
				for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(10 * time.Millisecond) {
					_, _ = ensure(t.Context(), c, driver.Call{})
				}
				if n := e.calls() - calls; n < 3 || n > 30 {
					t.Errorf("asked %d times within a minute", n)
				}
				e.serve = answer(500, "out of order, but there")
				back := time.Now()
				for {
					if _, err := ensure(t.Context(), c, driver.Call{}); cause(err) == driver.CauseStatus {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				if took := time.Since(back); took > 5*time.Second || c.Silence() != nil {
					t.Errorf("noticed after %v that it is back: %v", took, c.Silence())
				}
				calls = e.calls()
				for range 10 {
					_, _ = ensure(t.Context(), c, driver.Call{})
				}
				if e.calls() != calls+10 {
					t.Errorf("%d of 10 calls went out", e.calls()-calls)
				}
			})
		})
	}
}

// untilOpen calls ten times a second until the driver is left alone, and tells after how many calls and how long.
func untilOpen(t *testing.T, c *driver.Client) (calls int, lasted time.Duration) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if c.Silence() != nil {
			return calls, time.Since(began)
		}
		if _, err := ensure(t.Context(), c, driver.Call{}); cause(err) == driver.CauseOpen || calls > 1000 {
			t.Fatal("not left alone, or too soon: ", err)
		}
		calls++
	}
}

// A driver that answers one call in three is never left alone, however the others end: whoever failed waits as long as it says
// itself, and nobody else does.
func TestPropertyADriverThatAnswersSomeCallsIsNotLeftAlone(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		away := map[string]func(*http.Request) (*http.Response, error){
			"hangs": silence, "breaks": broken(io.ErrUnexpectedEOF), "503": answer(503, ""),
			"refuses": broken(errors.Join(driver.ErrNotSent, errors.New("connection refused"))),
		}[rapid.SampledFrom([]string{"hangs", "breaks", "503", "refuses"}).Draw(rt, "otherwise")]
		lines, places := rapid.IntRange(16, 64).Draw(rt, "lines"), rapid.IntRange(16, 64).Draw(rt, "places")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		var left, answered atomic.Int64
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			e := &endpoint{serve: func(r *http.Request) (*http.Response, error) {
				mu.Lock()
				luck := random.IntN(3) == 0
				mu.Unlock()
				if luck {
					return answer(200, everyAnswer)(r)
				}
				return away(r)
			}}
			c := client(t, e, func(o *driver.Options) { o.Concurrent = places })
			var all sync.WaitGroup
			for i := range lines {
				all.Go(func() {
					for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(time.Duration(900+i) * time.Millisecond) {
						switch _, err := ensure(t.Context(), c, driver.Call{}); {
						case err == nil:
							answered.Add(1)
						case cause(err) == driver.CauseOpen:
							left.Add(1)
						}
					}
				})
			}
			all.Wait()
		})
		if left.Load() > 0 || answered.Load() == 0 {
			rt.Fatalf("%d calls were not sent to a driver that answered %d", left.Load(), answered.Load())
		}
	})
}

// A deregistration that waits has the next place that comes free, whoever has waited for one before it.
func TestADeregistrationHasTheNextPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{serve: func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return answer(200, everyAnswer)(r)
		}}
		c := client(t, e, func(o *driver.Options) { o.Concurrent = 2 })
		var all sync.WaitGroup
		began := time.Now()
		for range 18 {
			all.Go(func() {
				if _, err := ensure(t.Context(), c, driver.Call{}); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(500 * time.Millisecond)
		ctx, cancel := contextFor(t, 100*time.Millisecond) // and who leaves the line keeps no place
		defer cancel()
		if _, err := c.DeregisterBackend(ctx, driver.Call{}, webhook.BackendRequest{}); cause(err) != driver.CauseGone {
			t.Error(err)
		}
		if _, err := c.DeregisterBackend(t.Context(), driver.Call{}, webhook.BackendRequest{}); err != nil || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if all.Wait(); time.Since(began) != 10*time.Second {
			t.Errorf("all took %v: a place was lost, or one too many taken", time.Since(began))
		}
	})
}

// Answers that are of no use, and callers that leave, say nothing against a driver.
func TestOnlySilenceOpensTheCircuit(t *testing.T) {
	for _, body := range []string{`{"status":"Fail"}`, `nonsense`, `{}`, strings.Repeat("x", 2<<20)} {
		e := &endpoint{serve: answer(200, body)}
		c := client(t, e, nil)
		for range 20 {
			_, _ = ensure(t.Context(), c, driver.Call{})
		}
		if e.calls() != 20 {
			t.Errorf("%.20s: %d calls", body, e.calls())
		}
	}
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{serve: silence}
		c := client(t, e, nil)
		for range 20 {
			ctx, cancel := contextFor(t, time.Second)
			if _, err := ensure(ctx, c, driver.Call{}); cause(err) != driver.CauseGone {
				t.Error(err)
			}
			cancel()
		}
		if e.calls() != 20 {
			t.Error(e.calls())
		}
	})
}

// While a driver is left alone, one call at a time looks whether it is back.
func TestOneCallAtATimeLooksWhetherADriverIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inFlight, most atomic.Int64
		e := &endpoint{serve: silence}
		c := client(t, e, nil)
		calls, _ := untilOpen(t, c)
		e.serve = func(r *http.Request) (*http.Response, error) {
			defer inFlight.Add(-1)
			most.Store(max(most.Load(), inFlight.Add(1)))
			return silence(r)
		}
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(100 * time.Millisecond) {
					_, _ = ensure(t.Context(), c, driver.Call{})
				}
			})
		}
		all.Wait()
		if n := e.calls() - calls; n < 3 || most.Load() != 1 {
			t.Errorf("%d calls, %d at once", n, most.Load())
		}
		// A caller that leaves does not keep others from looking.
		time.Sleep(time.Minute)
		ctx, cancel := contextFor(t, time.Second)
		defer cancel()
		if _, err := ensure(ctx, c, driver.Call{}); cause(err) != driver.CauseGone {
			t.Fatal(err)
		}
		e.serve = answer(200, everyAnswer)
		if _, err := ensure(t.Context(), c, driver.Call{}); err != nil {
			t.Error(err)
		}
	})
}

// lbcf §11 #43: no more calls than agreed are in flight; the others wait within their own budgets, and were surely not
// sent when those end.
func TestCallsInFlightAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inFlight, most atomic.Int64
		e := &endpoint{serve: func(r *http.Request) (*http.Response, error) {
			defer inFlight.Add(-1)
			most.Store(max(most.Load(), inFlight.Add(1)))
			time.Sleep(time.Second)
			return answer(200, everyAnswer)(r)
		}}
		c := client(t, e, func(o *driver.Options) { o.Concurrent = 3 })
		var done, busy atomic.Int64
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				switch _, err := ensure(t.Context(), c, driver.Call{}); {
				case err == nil:
					done.Add(1)
				case (cause(err) == driver.CauseBusy || cause(err) == driver.CauseLate) && driver.ResultOf("", err) == fsm.ResultFailed:
					busy.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if most.Load() != 3 || done.Load() != 30 || busy.Load() != 10 {
			t.Errorf("%d at once, %d done, %d not", most.Load(), done.Load(), busy.Load())
		}
	})
}

// What drivers are told of how many calls come at a time is what runs.
func TestAsManyCallsComeAsDriversAreToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inFlight, most atomic.Int64
		e := &endpoint{serve: func(r *http.Request) (*http.Response, error) {
			defer inFlight.Add(-1)
			most.Store(max(most.Load(), inFlight.Add(1)))
			time.Sleep(time.Second)
			return answer(200, everyAnswer)(r)
		}}
		c := client(t, e, nil)
		var all sync.WaitGroup
		for range 3 * driver.DefaultConcurrent {
			all.Go(func() { _, _ = ensure(t.Context(), c, driver.Call{}) })
		}
		all.Wait()
		page, err := os.ReadFile("../../docs/drivers.md")
		if told := fmt.Sprintf("%d at most by default", most.Load()); err != nil || !strings.Contains(string(page), told) {
			t.Errorf("docs/drivers.md does not say %q: %v", told, err)
		}
		if int(most.Load()) != c.Concurrent() {
			t.Errorf("%d calls at a time, %d are said to be", most.Load(), c.Concurrent())
		}
	})
}

// The line of those who wait has an end, too.
func TestTooManyThatWaitAreTurnedAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, &endpoint{serve: silence}, func(o *driver.Options) { o.Concurrent = 1 })
		var turned atomic.Int64
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				began := time.Now()
				if _, err := ensure(t.Context(), c, driver.Call{}); cause(err) == driver.CauseBusy && time.Since(began) == 0 {
					turned.Add(1)
				}
			})
		}
		all.Wait()
		if turned.Load() != 200-65 {
			t.Error(turned.Load())
		}
	})
}

// Whatever a driver did: once it answers again, calls go through within ten seconds (design §9, L2).
func TestPropertyADriverThatIsBackIsServedSoon(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{"succeeds", "hangs", "breaks", "500", "503"}), 0, 40).Draw(rt, "steps")
		gaps := rapid.SliceOfN(rapid.IntRange(0, 3000), len(steps), len(steps)).Draw(rt, "gaps")
		serves := map[string]func(*http.Request) (*http.Response, error){
			"succeeds": answer(200, everyAnswer), "hangs": silence, "breaks": broken(io.ErrUnexpectedEOF), "500": answer(500, ""), "503": answer(503, ""),
		}
		synctest.Test(t, func(t *testing.T) {
			e := &endpoint{}
			c := client(t, e, nil)
			for i, s := range steps {
				e.serve = serves[s]
				_, _ = ensure(t.Context(), c, driver.Call{})
				time.Sleep(time.Duration(gaps[i]) * time.Millisecond)
			}
			e.serve = serves["succeeds"]
			for began := time.Now(); ; {
				_, err := ensure(t.Context(), c, driver.Call{})
				if err == nil {
					return
				}
				if time.Since(began) > 10*time.Second {
					rt.Fatal(err)
				}
				var open *driver.Error
				if !errors.As(err, &open) || open.RetryAfter <= 0 {
					rt.Fatal(err)
				}
				time.Sleep(open.RetryAfter)
			}
		})
	})
}

// contextFor is one that is cancelled by its owner after some time.
func contextFor(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	stop := time.AfterFunc(d, cancel)
	return ctx, func() { stop.Stop(); cancel() }
}
