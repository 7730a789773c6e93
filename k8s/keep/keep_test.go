// SPDX-License-Identifier: Apache-2.0

package keep

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fairlead.io/fairlead/internal/testkit"
)

// thing is an object: a text.
type thing struct {
	life    string
	version int
	text    string
}

func (o *thing) Life() string    { return o.life }
func (o *thing) Version() string { return strconv.Itoa(o.version) }

// server is an API server whose watch shows a write when it is told to.
type server struct {
	mu      sync.Mutex
	store   *Store[string, *thing]
	wanted  map[string]string
	things  map[string]*thing
	fails   error
	writes  int
	at      []time.Time
	patient time.Duration
	busy    bool
}

func (s *server) Look(k string, seen *thing, _ time.Time) (*string, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := s.wanted[k]; want != seen.text {
		return &want, s.patient
	}
	return nil, 0
}

func (s *server) Digest(w *string) uint64 { return uint64(len(*w)) + 1 }

func (s *server) Write(_ context.Context, k string, w *string) (*thing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes, s.at = s.writes+1, append(s.at, time.Now())
	if s.fails != nil {
		return nil, s.fails
	}
	return s.change(k, *w), nil
}

func (s *server) change(k, text string) *thing {
	next := *s.things[k]
	next.version, next.text = next.version+1, text
	s.things[k] = &next
	return &next
}

type clock struct{}

func (clock) Now() time.Time                         { return time.Now() }
func (clock) After(d time.Duration) <-chan time.Time { return time.After(d) }

func lead(t *testing.T, s *server, ours func() bool) (k *Keeper[string, *thing, string], logs *testkit.Log) {
	t.Helper()
	logs = &testkit.Log{}
	k, err := New(Config[string, *thing, string]{
		What: "things", Allow: "let the account patch things", Store: s.store, Desk: s, Clock: clock{}, Ours: ours,
		Log: slog.New(slog.NewTextHandler(logs, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return k, logs
}

func newServer() *server {
	s := &server{store: NewStore[string, *thing](), wanted: map[string]string{}, things: map[string]*thing{}}
	s.things["a"] = &thing{"u", 1, ""}
	s.store.Set("a", s.things["a"])
	return s
}

func (s *server) want(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted["a"] = text
}

func (s *server) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.things["a"].text
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// What differs is written once, though the watch shows it late; what agrees is never written.
func TestWhatDiffersIsWrittenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.want("x")
		k, _ := lead(t, s, nil)
		time.Sleep(time.Minute)
		if s.text() != "x" || s.count() != 1 {
			t.Fatalf("%q after %d writes", s.text(), s.count())
		}
		k.NoticeAll()
		s.store.Set("a", &thing{"u", 1, ""}) // from before the write
		time.Sleep(20 * time.Second)
		s.store.Set("a", s.things["a"])
		time.Sleep(time.Hour)
		if s.count() != 1 {
			t.Errorf("%d writes", s.count())
		}
		s.want("xy")
		k.Notice("a")
		time.Sleep(time.Second)
		if s.text() != "xy" || s.count() != 2 {
			t.Errorf("%q after %d writes", s.text(), s.count())
		}
	})
}

// Nothing is written to another cluster; what waited is written once it is the right one again.
func TestNothingIsWrittenToAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.want("x")
		s.busy = true // before the loop looks for the first time
		lead(t, s, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return !s.busy
		})
		time.Sleep(time.Hour)
		before := s.count()
		s.mu.Lock()
		s.busy = false
		s.mu.Unlock()
		time.Sleep(2 * time.Second)
		if before != 0 || s.count() != 1 {
			t.Errorf("%d writes, then %d", before, s.count())
		}
	})
}

// A right that is missing is told once, with its remedy, and waited for.
func TestAMissingRightIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.want("x")
		s.fails = apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "a", errors.New("no"))
		_, logs := lead(t, s, nil)
		time.Sleep(10 * time.Minute)
		if n := strings.Count(logs.String(), "let the account patch things"); n != 1 || s.count() > 40 {
			t.Errorf("told %d times, tried %d times:\n%s", n, s.count(), logs)
		}
		s.mu.Lock()
		s.fails = nil
		s.mu.Unlock()
		time.Sleep(time.Minute)
		if s.text() != "x" || !strings.Contains(logs.String(), "objects written again") {
			t.Errorf("%q, logged\n%s", s.text(), logs)
		}
	})
}

// Somebody who writes the object back each time is given way to, and told of.
func TestWhoOverwritesIsGivenWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.want("x")
		_, logs := lead(t, s, nil)
		for range 60 {
			time.Sleep(time.Second)
			s.mu.Lock()
			if s.things["a"].text != "" {
				s.store.Set("a", s.change("a", ""))
			}
			s.mu.Unlock()
		}
		if n := s.count(); n < 3 || n > 6 || strings.Count(logs.String(), "keeps being overwritten") != 1 {
			t.Errorf("%d writes in a minute, logged\n%s", n, logs)
		}
	})
}

// What may wait waits for what comes after it.
func TestPatienceIsHeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.patient = 5 * time.Second
		began := time.Now()
		k, _ := lead(t, s, nil)
		for _, text := range []string{"x", "xy", "xyz"} {
			s.want(text)
			k.Notice("a")
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		if s.count() != 1 || s.text() != "xyz" || s.at[0].Sub(began) < 5*time.Second {
			t.Errorf("%d writes, %q", s.count(), s.text())
		}
	})
}

// The answer to a write counts for more than a watch that lags, but not for ever: the API server may have been set back.
func TestAWatchThatStaysBehindIsBelieved(t *testing.T) {
	for what, c := range map[string]struct {
		next, want int // what the watch shows later, 0 for nothing, and what counts in the end
	}{
		"set back": {0, 6}, "further behind": {5, 5}, "caught up": {7, 7}, "changed since": {8, 8},
	} {
		t.Run(strings.ReplaceAll(what, " ", "-"), func(t *testing.T) {
			store := NewStore[string, *thing]()
			store.Set("a", &thing{"u", 4, ""})
			store.set("a", &thing{"u", 7, ""}, true)
			store.Set("a", &thing{"u", 6, ""})
			now := time.Unix(0, 0)
			look := func(after time.Duration, want int) {
				t.Helper()
				now = now.Add(after)
				store.settle(now)
				if have := store.Get("a").version; have != want {
					t.Errorf("after %s version %d counts, want %d", now.Sub(time.Unix(0, 0)), have, want)
				}
			}
			look(0, 7)
			look(trust-time.Second, 7)
			if c.next != 0 {
				store.Set("a", &thing{"u", c.next, ""})
			}
			look(2*time.Second, c.want)
			if len(store.behind) > 0 {
				t.Errorf("waits for %v", store.behind)
			}
		})
	}
}

func TestEventsOfOneObjectAreLimited(t *testing.T) {
	var a Allowance
	n, now := 0, time.Unix(1000, 0)
	for range 100 {
		if a.Take(now) {
			n++
		}
	}
	if n != eventBurst || !a.Take(now.Add(eventEvery)) || a.Take(now.Add(eventEvery)) {
		t.Errorf("%d at once", n)
	}
}
