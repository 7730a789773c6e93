// SPDX-License-Identifier: Apache-2.0

package unread

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fairlead.io/fairlead/fsm/world"
)

type clock struct{}

func (clock) Now() time.Time                         { return time.Now() }
func (clock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// server takes Events as an API server does: of one name there is one, for an hour.
type server struct {
	mu     sync.Mutex
	events map[string]*eventsv1.Event
	tried  int
}

func (s *server) write(_ context.Context, e *eventsv1.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried++
	key := e.Namespace + "/" + e.Name
	if old := s.events[key]; old != nil && time.Since(old.EventTime.Time) < time.Hour-time.Second {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "events"}, key)
	}
	s.events[key] = e
	return nil
}

// of counts the Events that are about objects of a namespace.
func (s *server) of(namespace string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if e.Regarding.Namespace == namespace {
			n++
		}
	}
	return n
}

func (s *server) tries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tried
}

func newTeller(t *testing.T, s *server, ours func() bool) *Teller {
	t.Helper()
	out, err := New(Config{
		Namespaces: []string{"kube-system", "metallb-system"}, Write: s.write, Clock: clock{}, Log: slog.New(slog.DiscardHandler), Ours: ours, Instance: "m1",
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func peer(namespace, name string) Key {
	return Key{Group: "metallb.io", Kind: world.KindPeer, ID: world.ID{Namespace: namespace, Name: name}}
}

func form(uid string, generation int64) Seen {
	return Seen{APIVersion: "metallb.io/v1beta2", UID: uid, Generation: generation}
}

// leads has t tell for as long as during takes.
func leads(t *testing.T, of *Teller, during func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); of.Run(ctx) }()
	during()
	stop()
	<-ended
}

// Whoever wrote an object where it is not read sees at the object that it is not, why, and what helps.
func TestAuthorsAreToldAtTheObject(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{events: map[string]*eventsv1.Event{}}
		x := newTeller(t, s, nil)
		x.Show(peer("shop", "tor"), form("u1", 1))
		leads(t, x, func() { time.Sleep(3 * time.Second) })
		if s.of("shop") != 1 {
			t.Fatalf("%d Events", s.of("shop"))
		}
		for _, e := range s.events {
			r := e.Regarding
			if e.Namespace != "shop" || r.APIVersion != "metallb.io/v1beta2" || r.Kind != "BGPPeer" || r.Name != "tor" || r.UID != "u1" || e.Type != "Warning" || e.Reason != Reason {
				t.Errorf("%+v", e)
			}
			for _, want := range []string{"kube-system and metallb-system alone", "does not count", "sources.configNamespaces"} {
				if !strings.Contains(e.Note, want) {
					t.Errorf("the note lacks %q: %s", want, e.Note)
				}
			}
		}
	})
}

// An object is told of once for each form that people wrote, also by the next leader; again when the API server has forgotten; and not once it is gone.
func TestAnObjectIsToldOfOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{events: map[string]*eventsv1.Event{}}
		k := peer("shop", "tor")
		first, second := newTeller(t, s, nil), newTeller(t, s, nil)
		first.Show(k, form("u1", 1))
		second.Show(k, form("u1", 1))
		leads(t, first, func() {
			time.Sleep(3 * time.Second)
			first.Show(k, form("u1", 1)) // a list that says what is known
			time.Sleep(time.Minute)
			if s.tries() != 1 {
				t.Errorf("told %d times", s.tries())
			}
		})
		leads(t, second, func() {
			time.Sleep(3 * time.Second)
			if s.of("shop") != 1 {
				t.Errorf("the next leader tells the same again: %d Events", s.of("shop"))
			}
			second.Show(k, form("u1", 2))
			time.Sleep(3 * time.Second)
			if s.of("shop") != 2 {
				t.Errorf("nothing is said of the new form: %d Events", s.of("shop"))
			}
			before := s.tries()
			time.Sleep(time.Hour + time.Second)
			if s.tries() != before+1 {
				t.Errorf("told %d times after the API server forgot", s.tries()-before)
			}
			second.Gone(k)
			before = s.tries()
			time.Sleep(2 * time.Hour)
			if s.tries() != before {
				t.Error("told of an object that is gone")
			}
		})
	})
}

// Ten thousand objects of one tenant make a few Events a minute, and keep nobody else waiting; as many namespaces with one each make one a second.
func TestNobodyCausesAFlood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{events: map[string]*eventsv1.Event{}}
		x := newTeller(t, s, nil)
		for i := range 10_000 {
			x.Show(peer("loud", fmt.Sprint("p", i)), form(fmt.Sprint("u", i), 1))
		}
		leads(t, x, func() {
			time.Sleep(2 * time.Second)
			x.Show(peer("quiet", "tor"), form("q", 1))
			time.Sleep(2 * time.Second)
			if s.of("quiet") != 1 {
				t.Error("a tenant waits for another")
			}
			for g := range 600 { // edits are no way around it
				x.Show(peer("loud", "p1"), form("u1", int64(g+2)))
				time.Sleep(100 * time.Millisecond)
			}
			if n := s.tries(); n < 10 || n > 15 {
				t.Errorf("%d Events in a minute of one namespace", n)
			}
			before := s.tries()
			for i := range 10_000 {
				x.Show(peer(fmt.Sprint("n", i), "tor"), form(fmt.Sprint("n", i), 1))
			}
			time.Sleep(time.Minute)
			if n := s.tries() - before; n < 60 || n > 60+burstOfAll+5 {
				t.Errorf("%d Events in a minute of all namespaces", n)
			}
			for i := range 10_000 {
				x.Gone(peer(fmt.Sprint("n", i), "tor"))
			}
			time.Sleep(10 * time.Minute)
			if len(x.of) > 2 {
				t.Errorf("%d allowances are kept", len(x.of))
			}
		})
	})
}

// Nobody is told by a member whose record is of another cluster.
func TestAnotherClusterIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{events: map[string]*eventsv1.Event{}}
		ours := false
		x := newTeller(t, s, func() bool { return ours })
		x.Show(peer("shop", "tor"), form("u1", 1))
		leads(t, x, func() {
			time.Sleep(time.Minute + time.Millisecond)
			if s.tries() != 0 {
				t.Error("told")
			}
		})
		ours = true
		leads(t, x, func() { time.Sleep(3 * time.Second) })
		if s.tries() != 1 {
			t.Errorf("told %d times", s.tries())
		}
	})
}
