// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/writes"
)

// cluster is an API server with a watch that fills a store.
type cluster struct {
	mu       sync.Mutex
	services map[fsm.ServiceID]*served
	events   map[string]*eventsv1.Event
	store    *Store
	lag      time.Duration // of the watch
	takes    time.Duration // a write
	err      error         // of every call
	// after is called after every write of a Service, with the lock held.
	after func(*served)

	calls, writes, conflicts, under, most, tellings int
}

func newCluster(ids ...string) *cluster {
	c := &cluster{services: map[fsm.ServiceID]*served{}, events: map[string]*eventsv1.Event{}, store: NewStore()}
	for _, id := range ids {
		s := newServed(id, corev1.ServiceTypeLoadBalancer, "")
		c.services[s.id()] = s
		c.store.Set(s.object())
	}
	return c
}

// change changes a Service as others do, and shows it on the watch.
func (c *cluster) change(id string, f func(*served)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.services[fsm.ServiceID("default/"+id)]
	f(s)
	c.show(s)
}

func (c *cluster) show(s *served) {
	o := s.object()
	if c.lag == 0 {
		c.store.Set(o)
		return
	}
	time.AfterFunc(c.lag, func() { c.store.Set(o) })
}

// Write implements API.
func (c *cluster) Write(ctx context.Context, w Write) (*Seen, error) {
	c.mu.Lock()
	c.calls++
	c.under++
	c.most = max(c.most, c.under)
	takes := c.takes
	c.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(takes):
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.under--
	s := c.services[w.ID]
	resource := schema.GroupResource{Resource: "services"}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case c.err != nil:
		return nil, c.err
	case s == nil || s.uid != w.UID:
		return nil, apierrors.NewNotFound(resource, string(w.ID))
	case fmt.Sprint(s.version) != w.ResourceVersion:
		c.conflicts++
		return nil, apierrors.NewConflict(resource, string(w.ID), errors.New("the object has been modified"))
	}
	c.writes++
	s.apply(w)
	c.show(s)
	answer := s.seen()
	if c.after != nil {
		c.after(s)
	}
	return answer, nil
}

// Tell implements API.
func (c *cluster) Tell(_ context.Context, e *eventsv1.Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tellings++
	switch {
	case c.err != nil:
		return c.err
	case c.events[e.Name] != nil:
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "events"}, e.Name)
	}
	c.events[e.Name] = e
	return nil
}

// fail has every call end with an error, or with none.
func (c *cluster) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

func (c *cluster) told(reason string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.events {
		if e.Reason == reason {
			n++
		}
	}
	return n
}

func (c *cluster) wrote() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

func (c *cluster) shows(id string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.services[fsm.ServiceID("default/"+id)].shows()
}

type machineClock struct{}

func (machineClock) Now() time.Time                         { return time.Now() }
func (machineClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// stageOf is a projector at work in a bubble of fake time.
type stageOf struct {
	problems map[fsm.ServiceID][]string
	t        *testing.T
	b        *book
	c        *cluster

	log testkit.Log

	mu  sync.Mutex
	why []Explanation

	metrics *prometheus.Registry
	stop    func()
}

// lead runs a projector until stop is called, as a member does for a term.
func (s *stageOf) lead() {
	s.t.Helper()
	s.metrics = prometheus.NewRegistry()
	p, err := New(Config{
		Record: s.b, Store: s.c.store, API: s.c, Clock: machineClock{}, Log: slog.New(slog.NewTextHandler(&s.log, nil)), Options: ours,
		Instance: "m1", Metrics: s.metrics,
		Problems: func() map[fsm.ServiceID][]string {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.problems
		}, Waiting: func() []Explanation {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.why
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	s.stop = func() {
		cancel()
		<-done
	}
}

// during runs a test in fake time, with a leader from the start.
func during(t *testing.T, c func() *cluster, f func(s *stageOf)) {
	synctest.Test(t, func(t *testing.T) {
		s := &stageOf{t: t, b: newBook(t), c: c()}
		s.lead()
		f(s)
		s.stop()
	})
}

// pass lets time go by, and whatever is to happen in it.
func pass(d time.Duration) {
	time.Sleep(d) // in the bubble's own time
	synctest.Wait()
}

func web() *cluster { return newCluster("web") }

func TestStatusFollowsTheRecordSoonAndInOneWrite(t *testing.T) {
	during(t, web, func(s *stageOf) {
		s.b.service(t, "default/web")
		pass(50 * time.Millisecond)
		s.b.allocate(t, "default/web", "203.0.113.10")
		s.b.route(t, "203.0.113.10", "n1")
		pass(50 * time.Millisecond)
		s.b.acknowledge(t, "n1")
		pass(50 * time.Millisecond)
		s.b.announce(t)
		pass(50 * time.Millisecond)
		if s.c.shows("web") != "203.0.113.10/VIP" {
			t.Fatalf("shows %q", s.c.shows("web"))
		}
		if n := s.c.wrote(); n > 2 {
			t.Errorf("%d writes for one Service: what was on its way did not wait", n)
		}
		pass(2 * time.Second)
		if s.c.told(EventAllocated) != 1 || s.c.told(EventAnnounced) != 1 || s.c.told(EventNotAnnounced) != 0 || len(s.c.events) != 2 {
			t.Errorf("events %v", s.c.events)
		}
	})
}

// K2, K4: a Service that is served for its node ports and spec.externalIPs alone is told of conflicts by Events. Its status is not ours,
// and what is well is not told anew by every leader.
func TestServicesThatAreNoLoadBalancersAreToldOfConflictsOnly(t *testing.T) {
	for _, kind := range []struct {
		of       corev1.ServiceType
		class    string
		nodePort int32
		external []string
	}{
		{corev1.ServiceTypeNodePort, "", 30080, nil}, {corev1.ServiceTypeClusterIP, "", 0, []string{"203.0.113.10"}},
		{corev1.ServiceTypeLoadBalancer, "example.com/other", 30080, nil},
	} {
		inPart := func() *cluster {
			c := newCluster("web")
			o := c.services["default/web"]
			o.turn(kind.of, kind.class)
			o.nodePort, o.external = kind.nodePort, kind.external
			c.store.Set(o.object())
			return c
		}
		during(t, inPart, func(s *stageOf) {
			s.stop() // who leads meanwhile may tell of each step
			s.b.service(t, "default/web", external("203.0.113.10"))
			s.b.serve(t, "default/web", "203.0.113.10", "n1")
			s.lead()
			pass(5 * time.Second)
			if s.c.calls != 0 || s.c.told(EventAllocated)+s.c.told(EventPending)+s.c.told(EventRefused) != 0 {
				t.Errorf("%v: %d writes, events %v", kind, s.c.calls, s.c.events)
			}
			s.b.service(t, "default/web", external("203.0.113.10"), pending("node-port-taken", "node port 30080/tcp belongs to Service default/other"))
			pass(5 * time.Second)
			if s.c.calls != 0 || s.c.told(EventRefused) != 1 {
				t.Errorf("%v: %d writes, events %v", kind, s.c.calls, s.c.events)
			}
		})
	}
}

func TestNothingIsWrittenWhileNothingChanges(t *testing.T) {
	during(t, web, func(s *stageOf) {
		s.b.service(t, "default/web")
		s.b.serve(t, "default/web", "203.0.113.10", "n1")
		pass(5 * time.Second)
		writes, events := s.c.wrote(), len(s.c.events)
		s.c.change("web", func(w *served) { w.version++ }) // somebody edits an annotation
		s.b.acknowledge(t, "n1", "n2", "n3")
		s.b.announce(t)
		pass(3 * time.Hour)
		if s.c.wrote() != writes || len(s.c.events) != events || s.c.calls != writes {
			t.Errorf("%d writes and %d events more", s.c.wrote()-writes, len(s.c.events)-events)
		}
	})
}

func TestANewLeaderWritesAndTellsNothingTwice(t *testing.T) {
	during(t, web, func(s *stageOf) {
		s.b.service(t, "default/web")
		s.b.serve(t, "default/web", "203.0.113.10", "n1")
		pass(5 * time.Second)
		writes, tellings := s.c.wrote(), s.c.tellings
		s.stop()
		s.lead()
		pass(time.Minute)
		if s.c.wrote() != writes || s.c.tellings != tellings || tellings == 0 {
			t.Errorf("%d writes and %d events more", s.c.wrote()-writes, s.c.tellings-tellings)
		}
		s.b.route(t, "203.0.113.10", "n1", "n2")
		s.b.acknowledge(t, "n2")
		s.b.announce(t)
		pass(5 * time.Second)
		if s.c.told(EventNextHopsChanged) != 1 {
			t.Errorf("a change afterwards is not told: %v", s.c.events)
		}
	})
}

func TestNodesAreWaitedForBeforeAnybodyIsTold(t *testing.T) {
	during(t, web, func(s *stageOf) {
		s.b.service(t, "default/web")
		s.b.allocate(t, "default/web", "203.0.113.10")
		s.b.route(t, "203.0.113.10", "n1")
		pass(4 * time.Second)
		if s.c.told(EventNotAnnounced) != 0 {
			t.Error("told at once")
		}
		pass(4 * time.Second)
		if s.c.told(EventNotAnnounced) != 1 {
			t.Error("never told")
		}
		s.mu.Lock()
		s.why = []Explanation{{"routes", "203.0.113.10/32", "no-next-hop", "node n1 is not eligible: not ready"}}
		s.mu.Unlock()
		s.b.route(t, "203.0.113.10")
		pass(10 * time.Second)
		if got := s.c.services["default/web"].says(Announced); got != "False NoNextHop: 203.0.113.10: node n1 is not eligible: not ready" {
			t.Error(got)
		}
	})
}

// An API server that is away is waited for, with less and less asked of it, and nothing piles up.
func TestAPIServerAwayIsWaitedFor(t *testing.T) {
	ids := make([]string, 200)
	for i := range ids {
		ids[i] = fmt.Sprintf("s%d", i)
	}
	during(t, func() *cluster { return newCluster(ids...) }, func(s *stageOf) {
		s.c.err = errors.New("connection refused")
		for i, id := range ids {
			s.b.service(t, "default/"+id)
			s.b.serve(t, "default/"+id, fmt.Sprintf("203.0.113.%d", i), "n1")
		}
		pass(10 * time.Minute)
		if s.c.calls > 60 {
			t.Errorf("%d calls in ten minutes", s.c.calls)
		}
		if n := s.log.Count("status not written"); n != 1 {
			t.Errorf("said %d times:\n%s", n, s.log.String())
		}
		s.c.fail(nil)
		pass(writes.LastRetry + 2*time.Second)
		for i, id := range ids {
			if got := s.c.shows(id); got != fmt.Sprintf("203.0.113.%d/VIP", i) {
				t.Fatalf("%s shows %q", id, got)
			}
		}
		if s.c.wrote() != len(ids) || !strings.Contains(s.log.String(), "status written again") {
			t.Errorf("%d writes\n%s", s.c.wrote(), s.log.String())
		}
	})
}

// One permission that is missing hides no other.
func TestEachRemedyIsToldOnce(t *testing.T) {
	ids := []string{"a", "b", "c", "d"}
	during(t, func() *cluster { return newCluster(ids...) }, func(s *stageOf) {
		for i, id := range ids {
			s.b.service(t, "default/"+id)
			s.b.serve(t, "default/"+id, fmt.Sprintf("203.0.113.%d", i), "n1")
		}
		pass(time.Minute)
		for times := 1; times <= 2; times++ {
			s.c.fail(apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "any", errors.New("no rights")))
			for i, id := range ids {
				s.c.change(id, func(o *served) {
					if i < 2 {
						o.finalizer[Manager] = true
					} else {
						o.ingress = nil
					}
				})
			}
			pass(10 * time.Minute)
			for _, remedy := range []string{`"let the account patch services, `, `"let the account patch services/status"`} {
				if n := s.log.Count(remedy); n != times {
					t.Errorf("%s said %d times, want %d:\n%s", remedy, n, times, s.log.String())
				}
			}
			s.c.fail(nil)
			pass(time.Minute)
		}
	})
}

func TestThrottledWritesWaitAsLongAsTheServerSays(t *testing.T) {
	during(t, web, func(s *stageOf) {
		s.c.err = apierrors.NewTooManyRequests("slow down", 20)
		s.b.service(t, "default/web")
		s.b.serve(t, "default/web", "203.0.113.10", "n1")
		pass(19 * time.Second)
		if s.c.calls != 1 {
			t.Errorf("%d calls", s.c.calls)
		}
		s.c.fail(nil)
		pass(2 * time.Second)
		if s.c.shows("web") == "" {
			t.Error("not written")
		}
	})
}

func TestManyAreWrittenAFewAtOnce(t *testing.T) {
	ids := make([]string, 100)
	for i := range ids {
		ids[i] = fmt.Sprintf("s%d", i)
	}
	during(t, func() *cluster { return newCluster(ids...) }, func(s *stageOf) {
		s.stop()
		s.c.takes = 10 * time.Millisecond
		for i, id := range ids {
			s.b.service(t, "default/"+id)
			s.b.serve(t, "default/"+id, fmt.Sprintf("203.0.113.%d", i), "n1")
		}
		s.lead()
		pass(time.Second)
		if s.c.wrote() != len(ids) || s.c.most != 8 {
			t.Errorf("%d written, %d at once", s.c.wrote(), s.c.most)
		}
	})
}

func TestLateWatchCostsOnlyARetry(t *testing.T) {
	during(t, web, func(s *stageOf) {
		s.c.lag = 300 * time.Millisecond
		s.c.change("web", func(w *served) { w.version += 5 }) // an edit that the watch shows late: after all that follows
		s.b.service(t, "default/web")
		s.b.serve(t, "default/web", "203.0.113.10", "n1")
		pass(5 * time.Second)
		if s.c.shows("web") != "203.0.113.10/VIP" || s.c.conflicts == 0 || s.c.conflicts > 5 || s.c.wrote() != 1 {
			t.Errorf("shows %q after %d conflicts and %d writes", s.c.shows("web"), s.c.conflicts, s.c.wrote())
		}
	})
}

func TestStatusDeletedByHandIsWrittenBackOnce(t *testing.T) {
	during(t, web, func(s *stageOf) {
		s.b.service(t, "default/web")
		s.b.serve(t, "default/web", "203.0.113.10", "n1")
		pass(5 * time.Second)
		writes := s.c.wrote()
		s.c.change("web", func(w *served) { w.update("kubectl-edit") })
		pass(time.Second)
		if s.c.shows("web") != "203.0.113.10/VIP" || s.c.wrote() != writes+1 {
			t.Errorf("shows %q after %d writes", s.c.shows("web"), s.c.wrote()-writes)
		}
		if n := counted(t, s.metrics, "fairlead_status_overwritten_total"); n != 1 {
			t.Errorf("counted %v times", n)
		}
	})
}

// Two controllers that both take the Service for theirs: we give way, and say so once.
func TestAnotherControllerIsGivenWay(t *testing.T) {
	during(t, web, func(s *stageOf) {
		s.c.after = func(w *served) {
			w.update("other", "198.51.100.1")
			s.c.show(w)
		}
		s.b.service(t, "default/web")
		s.b.serve(t, "default/web", "203.0.113.10", "n1")
		pass(time.Hour)
		if n := s.c.wrote(); n < 5 || n > 12 {
			t.Errorf("%d writes in an hour", n)
		}
		if s.c.told(EventOverwritten) != 1 || s.log.Count("keeps being overwritten") != 1 {
			t.Errorf("told %d times:\n%s", s.c.told(EventOverwritten), s.log.String())
		}
		s.c.mu.Lock()
		s.c.after = nil
		s.c.mu.Unlock()
		pass(2 * time.Hour)
		if s.c.shows("web") != "203.0.113.10/VIP" {
			t.Errorf("shows %q once the other one is gone", s.c.shows("web"))
		}
	})
}

func TestDeletedServiceIsToldAndForgotten(t *testing.T) {
	during(t, web, func(s *stageOf) {
		s.b.service(t, "default/web")
		s.b.serve(t, "default/web", "203.0.113.10", "n1")
		pass(5 * time.Second)
		s.c.mu.Lock()
		delete(s.c.services, "default/web")
		s.c.mu.Unlock()
		s.c.store.Delete("default", "web")
		s.b.service(t, "default/web", func(s *fsm.Service) { s.Deleting = true })
		writes := s.c.calls
		pass(time.Minute)
		if s.c.told(EventWithdrawn) != 1 || s.c.calls != writes {
			t.Errorf("events %v, %d calls", s.c.events, s.c.calls-writes)
		}
	})
}

// Whoever looks at a Service that is absent from lists, and stays, learns why, and what lets it go; of very many a few tell it, once for each hold.
func TestHeldRemovalsAreTold(t *testing.T) {
	during(t, web, func(s *stageOf) {
		var many, some []string
		for i := range 24 {
			id := fmt.Sprintf("shop/s%d", i)
			s.b.service(t, id)
			if many = append(many, id+" uid=uid-"+id); i < 3 {
				some = append(some, id)
			}
		}
		pass(time.Second)
		fsmtest.Commit(t, s.b.State, // together, so that nobody sees the one without the other
			fsm.Proposal{Actor: "test", Command: &fsm.PutHold{ID: "service-0", Of: "Service", Subjects: some, Why: "released at once"}},
			fsm.Proposal{Actor: "test", Command: &fsm.ReleaseHold{ID: "service-0"}})
		pass(time.Minute)
		s.b.do(t, &fsm.PutHold{ID: "service-1", Of: "Service", Subjects: many, Why: "24 of 25 are absent"}, &fsm.PutHold{ID: "node-1", Of: "Node", Subjects: []string{"shop/s1"}, Why: "x"})
		pass(time.Minute)
		if n := s.c.told(EventRemovalHeld); n != 10 {
			t.Errorf("%d Events of 24 Services that are held", n)
		}
		for _, e := range s.c.events {
			for _, want := range []string{"24 of 25 are absent", "`fairlead holds release service-1`", "24 in all"} {
				if e.Reason == EventRemovalHeld && (!strings.Contains(e.Note, want) || e.Type != "Warning" || string(e.Regarding.UID) != "uid-shop/"+e.Regarding.Name) {
					t.Errorf("the Event lacks %q: %+v", want, e)
				}
			}
		}
		before := s.c.tellings
		s.b.do(t, &fsm.PutPeer{Peer: fsm.Peer{Name: "other", Address: netip.MustParseAddr("192.0.2.253"), ASN: 65001}})
		pass(time.Minute)
		if s.c.tellings != before {
			t.Errorf("%d Events again when something else changed", s.c.tellings-before)
		}
		s.b.do(t, &fsm.PutHold{ID: "endpointslice-1", Of: "EndpointSlice", Subjects: some, Why: "3 of 3 are absent"}, &fsm.ReleaseHold{ID: "service-1"})
		pass(time.Minute)
		s.stop()
		s.lead()
		pass(time.Minute)
		if n := s.c.told(EventRemovalHeld); n != 13 {
			t.Errorf("%d Events after a hold of three more, and another leader", n)
		}
	})
}

// Who makes a Service after the cluster's etcd was restored hears there why nothing comes of it, once, whoever leads.
func TestServicesOfAClusterThatRanBackAreToldWhy(t *testing.T) {
	why := "the cluster ran back: `fairlead accept-rewind kubernetes` says that this is meant"
	during(t, func() *cluster { return newCluster("web", "other", "gone") }, func(s *stageOf) {
		s.b.service(t, "default/web")
		s.b.serve(t, "default/web", "203.0.113.10", "n1")
		s.c.change("gone", func(o *served) { o.class = "example.com/other" })
		pass(5 * time.Second)
		s.b.do(t, &fsm.PutHold{ID: "rewind-kubernetes", Of: fsm.OfSource, Subjects: []string{"kubernetes"}, Why: why})
		pass(time.Minute)
		s.stop()
		s.lead()
		pass(time.Minute)
		if n := s.c.told(EventSourceRanBack); n != 1 {
			t.Fatalf("%d Events, want one: %v", n, s.c.events)
		}
		for _, e := range s.c.events {
			if e.Reason == EventSourceRanBack && (e.Note != why || e.Type != "Warning" || e.Regarding.Name != "other") {
				t.Errorf("told %s on %s: %q", e.Type, e.Regarding.Name, e.Note)
			}
		}
		before := s.c.tellings
		s.c.change("other", func(*served) {})
		if pass(time.Minute); s.c.tellings != before {
			t.Errorf("%d Events again when it changed", s.c.tellings-before)
		}
		s.b.do(t, &fsm.DeleteHold{ID: "rewind-kubernetes"})
		pass(time.Minute)
		s.b.do(t, &fsm.PutHold{ID: "rewind-kubernetes", Of: fsm.OfSource, Subjects: []string{"kubernetes"}, Why: why + " again"})
		pass(time.Minute)
		if n := s.c.told(EventSourceRanBack); n != 2 {
			t.Errorf("%d Events, want one for each time", n)
		}
	})
}

func TestNewRefusesHalfAConfig(t *testing.T) {
	whole := Config{
		Record: fsm.New(), Store: NewStore(), API: web(), Clock: machineClock{}, Log: slog.New(slog.DiscardHandler), Instance: "m1", Options: ours,
		Waiting: func() []Explanation { return nil }, Metrics: prometheus.NewRegistry(),
	}
	if _, err := New(whole); err != nil {
		t.Fatal(err)
	}
	if _, err := New(whole); err == nil {
		t.Error("metrics twice")
	}
	half := whole
	half.Store = nil
	if _, err := New(half); err == nil || !strings.Contains(err.Error(), "Store") {
		t.Error(err)
	}
}

// counted gives the value of a counter without labels.
func counted(t *testing.T, r *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.Metric[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// misread changes what the sources cannot use.
func (s *stageOf) misread(problems map[fsm.ServiceID][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = problems
}

// K39: what cannot be used as it is written is told on the Service, once for each word of it, and by one leader alone.
// Rule: K39.
func TestWhatCannotBeUsedAsWrittenIsTold(t *testing.T) {
	during(t, web, func(s *stageOf) {
		s.b.service(t, "default/web")
		pass(5 * time.Second)
		if n := s.c.told(EventNotAsWritten); n != 0 {
			t.Fatalf("%d Events about nothing", n)
		}
		best := `metadata.annotations[fairlead.io/scheduler]: "best" is unknown; use rr`
		s.misread(map[fsm.ServiceID][]string{"default/web": {best}, "default/other": {"it is not there"}})
		pass(5 * time.Second)
		s.b.serve(t, "default/web", "203.0.113.10", "n1")
		pass(5 * time.Second)
		s.stop()
		s.lead()
		pass(5 * time.Second)
		if n := s.c.told(EventNotAsWritten); n != 1 {
			t.Fatalf("%d Events, want one: %v", n, s.c.events)
		}
		for _, e := range s.c.events {
			if e.Reason == EventNotAsWritten && (e.Note != best || e.Type != "Warning" || e.Regarding.Name != "web") {
				t.Errorf("told %s on %s: %q", e.Type, e.Regarding.Name, e.Note)
			}
		}
		s.misread(map[fsm.ServiceID][]string{"default/web": {"another one"}})
		pass(5 * time.Second)
		if n := s.c.told(EventNotAsWritten); n != 2 {
			t.Errorf("%d Events, want two", n)
		}
	})
}

// A Service that cannot be taken into the record, as for an annotation that is not UTF-8, has an Event all the same, once, whose note is as long as
// API servers take and whole characters. One that is not ours to serve has none.
func TestAServiceThatIsNotTakenInIsTold(t *testing.T) {
	during(t, func() *cluster { return newCluster("web", "other") }, func(s *stageOf) {
		s.c.change("other", func(o *served) { o.class = "example.com/other" })
		s.misread(map[fsm.ServiceID][]string{
			"default/web": {"x" + strings.Repeat("é", longestNote)}, "default/other": {"it is not ours"}, "default/gone": {"it is not there"},
		})
		pass(5 * time.Second)
		s.stop()
		s.lead()
		pass(5 * time.Minute)
		if n := s.c.told(EventNotAsWritten); n != 1 {
			t.Fatalf("%d Events, want one: %v", n, s.c.events)
		}
		for _, e := range s.c.events {
			if e.Regarding.Name != "web" || e.Note != "x"+strings.Repeat("é", longestNote/2-1) {
				t.Errorf("told on %s: %q", e.Regarding.Name, e.Note)
			}
		}
	})
}
