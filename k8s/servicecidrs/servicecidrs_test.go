// SPDX-License-Identifier: Apache-2.0

package servicecidrs

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/client"
)

// server answers each question as it was told to.
type server struct {
	status int
	body   string
	asked  int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked++
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path != "/apis/networking.k8s.io/v1/servicecidrs" {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	w.WriteHeader(s.status)
	_, _ = io.WriteString(w, s.body)
}

func listOf(cidrs string) string {
	return fmt.Sprintf(`{"apiVersion":"networking.k8s.io/v1","kind":"ServiceCIDRList","metadata":{"resourceVersion":"7"},"items":[{"apiVersion":"networking.k8s.io/v1",
		"kind":"ServiceCIDR","metadata":{"name":"kubernetes"},"spec":{"cidrs":[%s]}}]}`, cidrs)
}

func failure(code int, reason string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Status","status":"Failure","code":%d,"reason":%q,"message":"servicecidrs: no"}`, code, reason)
}

// What the API server says is known, and stays while it says nothing; one without ServiceCIDRs, and one that keeps them from us, has none.
func TestPrefixesAreThoseOfTheAPIServer(t *testing.T) {
	t.Parallel()
	s := &server{}
	at := httptest.NewServer(s)
	defer at.Close()
	api, err := client.New(&rest.Config{Host: at.URL})
	if err != nil {
		t.Fatal(err)
	}
	log := &testkit.Log{}
	for _, first := range []bool{true, false} {
		f := &Follower{API: api, Log: slog.New(slog.NewTextHandler(log, nil))}
		for _, step := range []struct {
			name     string
			status   int
			body     string
			at       string // what is known at first
			after    string // what is known if something was before
			answered bool
		}{
			{"broken", 500, failure(500, "InternalError"), "[]", "[10.96.0.0/12 fd00:1::/112]", false},
			{"older", 404, failure(404, "NotFound"), "[]", "[10.96.0.0/12 fd00:1::/112]", true},
			{"forbidden", 403, failure(403, "Forbidden"), "[]", "[10.96.0.0/12 fd00:1::/112]", true},
			{"empty", 200, listOf(""), "[]", "[10.96.0.0/12 fd00:1::/112]", true},
			{"nonsense", 200, listOf(`"0.0.0.0/0","x","::ffff:1.2.3.0/120"`), "[]", "[10.96.0.0/12 fd00:1::/112]", true},
			{"another", 200, listOf(`"10.32.0.0/16"`), "[10.32.0.0/16]", "[10.32.0.0/16]", true},
		} {
			g := f
			if first {
				g = &Follower{API: f.API, Log: f.Log}
			} else {
				s.status, s.body = 200, listOf(`"fd00:1::/112","10.96.0.1/12","10.96.0.0/12"`)
				g.ask(t.Context())
			}
			s.status, s.body = step.status, step.body
			g.ask(t.Context())
			want := step.after
			if first {
				want = step.at
			}
			if got := fmt.Sprint(g.Prefixes()); got != want {
				t.Errorf("%s, first %t: %s, want %s", step.name, first, got, want)
			}
			if answered := g.prefixes.Load() != nil; first && answered != step.answered {
				t.Errorf("%s: answered is %t", step.name, answered)
			}
		}
	}
	if log.Count("allow list of servicecidrs") == 0 {
		t.Error("nobody is told of the right that is missing")
	}
}

// ticks is time that a test counts.
type ticks struct{ waits chan time.Duration }

func (c ticks) After(d time.Duration) <-chan time.Time {
	out := make(chan time.Time, 1)
	out <- time.Time{}
	c.waits <- d
	return out
}

// An API server that is away is asked again soon, one that answered seldom.
func TestAnAnswerIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := &server{status: 500, body: failure(500, "InternalError")}
	at := httptest.NewServer(s)
	defer at.Close()
	api, err := client.New(&rest.Config{Host: at.URL})
	if err != nil {
		t.Fatal(err)
	}
	clock := ticks{make(chan time.Duration)}
	f := &Follower{API: api, Clock: clock, Log: slog.New(slog.DiscardHandler)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	if wait := <-clock.waits; wait != everyFirst {
		t.Errorf("waits for %s though nothing is known", wait)
	}
	<-clock.waits // it has asked twice; the third answer may be either
	stop()
	for done := false; !done; {
		select {
		case <-clock.waits:
		case err := <-ended:
			if done = true; err != nil {
				t.Error(err)
			}
		}
	}
}
