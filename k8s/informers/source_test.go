// SPDX-License-Identifier: Apache-2.0

package informers_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/informers"
)

// fast are times for a server on the same machine.
var fast = informers.Timing{
	Spacing: 10 * time.Millisecond, Absent: 20 * time.Millisecond, Retry: 2 * time.Millisecond, RetryCap: 20 * time.Millisecond,
	Housekeeping: 5 * time.Millisecond,
}

// reading runs a source over a server until the test ends.
type reading struct {
	*informers.Source
	log     *testkit.Log
	metrics *prometheus.Registry
}

func read(t testing.TB, s *server, timing informers.Timing) *reading {
	t.Helper()
	return readBy(t, s, timing, nil)
}

// readBy is read by a clock; nil: the machine's.
func readBy(t testing.TB, s *server, timing informers.Timing, by informers.Clock) *reading {
	t.Helper()
	return readWith(t, s, informers.Options{Clock: by, Timing: timing})
}

// readWith runs a source with options of which it fills in the rest.
func readWith(t testing.TB, s *server, o informers.Options) *reading {
	t.Helper()
	r := &reading{log: &testkit.Log{}, metrics: prometheus.NewRegistry()}
	o.API, o.Logger, o.Metrics = s.api(t), slog.New(slog.NewTextHandler(r.log, nil)), r.metrics
	var err error
	r.Source, err = informers.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(testkit.Patience):
			t.Error("Run has not ended")
		}
	})
	return r
}

// until polls the World for a condition.
func (r *reading) until(t testing.TB, what string, ok func(w world.World) bool) world.World {
	t.Helper()
	var w world.World
	testkit.Eventually(t, what, func() error {
		if w = r.World(); !ok(w) {
			return fmt.Errorf("%+v\n%s", w, r.log)
		}
		return nil
	})
	return w
}

func complete(w world.World) bool { return w.Complete }

func hasService(name string) func(world.World) bool {
	return func(w world.World) bool { return find(w, name) != nil }
}

func find(w world.World, name string) *world.Service {
	for i := range w.Services {
		if w.Services[i].Name == name {
			return w.Services[i]
		}
	}
	return nil
}

func view(t testing.TB, w world.World, kind world.Kind) world.KindView {
	t.Helper()
	v, ok := w.View(kind)
	if !ok {
		t.Fatalf("no view of %s", kind)
	}
	return v
}

func TestWorldShowsTheClusterOnceEveryKindIsListed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(services, "default", "kubernetes", service(443))
	s.put(endpoints, "default", "kubernetes", slice("kubernetes", "192.0.2.1"))
	s.put(nodes, "", "n1", node("192.0.2.1"))
	s.put(configMaps, "kube-system", "kube-gobgp-cfg", object{"data": object{"config_bgp.toml": "x"}})
	s.put(configMaps, "kube-system", "kube-iprule-cfg", object{"data": object{"SWITCH": "on"}})
	s.put(configMaps, "kube-system", "other", object{"data": object{"a": "b"}})
	r := read(t, s, fast)
	w := r.until(t, "complete", complete)
	if w.Source != "kubernetes" || w.Cluster != "cluster-1" || !w.WholeCluster {
		t.Errorf("source %q, cluster %q, whole %v", w.Source, w.Cluster, w.WholeCluster)
	}
	if len(w.Services) != 1 || len(w.EndpointSlices) != 1 || len(w.Nodes) != 1 || len(w.ConfigMaps) != 2 || len(w.Problems) != 0 {
		t.Errorf("got %+v", w)
	}
	if v := view(t, w, world.KindService); v.Version != s.revision || v.Lists == 0 || !v.Listed {
		t.Errorf("view of Services %+v, server at %d", v, s.revision)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queries {
		list := !strings.Contains(q, "watch=") && strings.Contains(q, "services?")
		if list && (strings.Contains(q, "resourceVersion=") || strings.Contains(q, "limit=") && !strings.Contains(q, "limit=1&")) {
			t.Errorf("%s is no consistent list of everything", q)
		}
		if strings.Contains(q, "sendInitialEvents") {
			t.Errorf("%s streams a list", q)
		}
	}
}

// What a review finds in a config map is told once for each of its forms.
func TestReviewOfAConfigMapIsToldOnceAChange(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	put := func(text string) {
		s.put(configMaps, "kube-system", "kube-gobgp-cfg", object{"data": object{"config_bgp.toml": text, "other": fmt.Sprint(s.revision)}})
	}
	put("x")
	r := readWith(t, s, informers.Options{Timing: fast, Review: func(c *world.ConfigMap) []world.Problem {
		text, _ := c.Get("config_bgp.toml")
		return []world.Problem{{Severity: world.Degraded, Why: text + " is odd"}}
	}})
	doubted := func(text string) func(world.World) bool {
		return func(w world.World) bool {
			return len(w.ConfigMaps) == 1 && len(w.Problems) == 1 && w.Problems[0].String() == "ConfigMap kube-system/kube-gobgp-cfg: "+text+" is odd"
		}
	}
	version := r.until(t, "doubted", doubted("x")).ConfigMaps[0].Version
	put("x")
	r.until(t, "changed beside it", func(w world.World) bool { return doubted("x")(w) && w.ConfigMaps[0].Version > version })
	put("y")
	r.until(t, "doubted otherwise", doubted("y"))
	for _, text := range []string{"x is odd", "y is odd"} {
		if n := r.log.Count(text); n != 1 {
			t.Errorf("%s: told %d times", text, n)
		}
	}
}

func TestChangesShowAtOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	r := read(t, s, fast)
	r.until(t, "complete", complete)
	rev := s.put(services, "default", "web", service(80))
	w := r.until(t, "there", hasService("web"))
	if v := view(t, w, world.KindService); v.Version < rev {
		t.Errorf("version %d after an event at %d", v.Version, rev)
	}
	s.put(services, "default", "web", service(81))
	r.until(t, "changed", func(w world.World) bool { return find(w, "web").Ports[0].Port == 81 })
}

func TestADeletionSeenByTheWatchIsEvidence(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(services, "default", "web", service(80))
	s.put(endpoints, "default", "web-1", slice("web", "192.0.2.7"))
	r := read(t, s, fast)
	r.until(t, "complete", complete)
	uid := s.remove(services, "default", "web")
	sliceUID := s.remove(endpoints, "default", "web-1")
	w := r.until(t, "gone", func(w world.World) bool { return len(w.Deleted) == 2 })
	for _, d := range w.Deleted {
		switch d.Kind {
		case world.KindService:
			if d.UID != uid || d.How != world.ByWatch || d.Version == 0 || d.Name != "web" {
				t.Errorf("got %+v", d)
			}
		default:
			if d.UID != sliceUID || d.Service.Name != "web" || d.How != world.ByWatch {
				t.Errorf("got %+v", d)
			}
		}
	}
	s.put(services, "default", "web", service(80))
	w = r.until(t, "back", hasService("web"))
	if len(w.Deleted) != 1 {
		t.Errorf("evidence against a name in use: %+v", w.Deleted)
	}
}

// What went while nobody watched is absent, and nothing was seen to go.
func TestADeletionFoundByAListIsNoEvidence(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(services, "default", "web", service(80))
	r := read(t, s, fast)
	before := view(t, r.until(t, "complete", complete), world.KindService)
	s.answer(services, refusal(503, "ServiceUnavailable", "away"))
	r.until(t, "incomplete", func(w world.World) bool { return !w.Complete })
	s.remove(services, "default", "web")
	s.cut(true)
	s.answer(services, nil)
	w := r.until(t, "gone", func(w world.World) bool { return w.Complete && find(w, "web") == nil })
	if len(w.Deleted) != 0 {
		t.Errorf("nobody saw %+v", w.Deleted)
	}
	if after := view(t, w, world.KindService); after.Lists <= before.Lists || after.Version <= before.Version {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

func TestAWatchResumedWithoutAGapSeesDeletions(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(services, "default", "web", service(80))
	r := read(t, s, fast)
	lists := view(t, r.until(t, "complete", complete), world.KindService).Lists
	s.set(func() { s.round++ })
	s.remove(services, "default", "web")
	w := r.until(t, "gone", func(w world.World) bool { return find(w, "web") == nil })
	if now := view(t, w, world.KindService).Lists; now == lists && len(w.Deleted) != 1 {
		t.Errorf("resumed without a list, and saw %+v", w.Deleted)
	}
}

func TestRelistListsBesideTheWatch(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(services, "default", "web", service(80))
	r := read(t, s, fast)
	first := view(t, r.until(t, "complete", complete), world.KindService)
	r.Relist(world.KindService)
	w := r.until(t, "listed again", func(w world.World) bool { return view(t, w, world.KindService).Lists > first.Lists })
	if !w.Complete || find(w, "web") == nil {
		t.Errorf("got %+v", w)
	}
	s.remove(services, "default", "web")
	w = r.until(t, "gone", func(w world.World) bool { return find(w, "web") == nil })
	if len(w.Deleted) != 1 {
		t.Errorf("the watch went on and saw %+v", w.Deleted)
	}
}

// What lists showed that began before does not count, be it the first of all, nor what the watch says meanwhile.
func TestFreshWaitsForAListThatBeginsAfterwards(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{false, true} {
		t.Run(fmt.Sprint("first ", first), func(t *testing.T) {
			s := newServer(t)
			s.put(services, "default", "web", service(80))
			began, mayEnd := make(chan struct{}, 100), make(chan struct{}, 100)
			hold := func() {
				s.answer(services, func(w http.ResponseWriter, r *http.Request) {
					switch q := r.URL.Query(); {
					case q.Get("watch") != "":
						<-r.Context().Done() // it says nothing
						return
					case q.Get("limit") == "":
						began <- struct{}{}
						select {
						case <-mayEnd:
						case <-r.Context().Done():
						}
					}
					s.list(w, r)
				})
			}
			if first {
				hold()
			}
			r := read(t, s, fast)
			if first {
				<-began
			} else {
				r.until(t, "complete", complete)
				hold()
			}
			ended := make(chan error, 1)
			go func() { ended <- r.Fresh(t.Context(), world.KindService) }()
			if first {
				time.Sleep(50 * time.Millisecond) // it is asked for, and that is forgotten
				mayEnd <- struct{}{}
			}
			<-began
			s.put(services, "default", "other", service(80))
			select {
			case err := <-ended:
				t.Fatalf("it is fresh before the list has come: %v", err)
			case <-time.After(100 * time.Millisecond):
			}
			close(mayEnd)
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := r.Fresh(ctx, world.KindService); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "services") {
				t.Errorf("%v", err)
			}
		})
	}
}

// Lists that tell nothing new are twice as far apart each time, up to eight times the usual: none comes before, however often it is asked for.
func TestListsAskedForAgainAndAgainGrowRare(t *testing.T) {
	t.Parallel()
	const spacing = 2 * time.Second
	s := newServer(t)
	now := clocktesting.NewFakeClock(time.Now())
	r := readBy(t, s, informers.Timing{Spacing: spacing, Absent: 1000 * time.Hour, Silence: 1000 * time.Hour}, now)
	lists := view(t, r.until(t, "complete", complete), world.KindService).Lists
	for _, times := range []time.Duration{1, 2, 4, 8, 8} {
		now.Step(times*spacing - 1)
		for range 20 { // on a busy machine one that comes too early may not have come yet; then nothing fails
			r.Relist(world.KindService)
			<-time.After(time.Millisecond)
		}
		if n := view(t, r.World(), world.KindService).Lists; n != lists {
			t.Fatalf("after %d lists another one within %d times the usual time", lists, times)
		}
		now.Step(1)
		lists++
		r.until(t, "listed", func(w world.World) bool { return view(t, w, world.KindService).Lists == lists })
	}
}

// Who asks for the first time does not wait because others asked in vain before.
func TestWhoBeginsToAskDoesNotWaitForOthers(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	now := clocktesting.NewFakeClock(time.Now())
	r := readBy(t, s, informers.Timing{Absent: 1000 * time.Hour, Silence: 1000 * time.Hour}, now)
	lists := view(t, r.until(t, "complete", complete), world.KindService).Lists
	listed := func() {
		t.Helper()
		lists++
		r.until(t, "listed", func(w world.World) bool { return view(t, w, world.KindService).Lists >= lists })
	}
	for range 4 {
		r.Relist(world.KindService)
		now.Step(10 * time.Second)
		listed()
	}
	r.Relist(world.KindService) // in 8.4 s
	r.Begin()
	now.Step(2 * time.Second)
	listed()
}

func TestBookmarksRaiseVersionAndAge(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	r := read(t, s, fast)
	r.until(t, "complete", complete)
	rev := s.bookmark(services)
	r.until(t, "at the bookmark", func(w world.World) bool { return view(t, w, world.KindService).Version == rev })
}

func TestASilentWatchIsReplaced(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	quick := fast
	quick.Silence = 50 * time.Millisecond
	r := read(t, s, quick)
	lists := view(t, r.until(t, "complete", complete), world.KindService).Lists
	r.until(t, "listed anew", func(w world.World) bool { return view(t, w, world.KindService).Lists > lists && w.Complete })
	if r.log.Count("fell silent") == 0 {
		t.Error("nobody was told")
	}
}

// A list is as old as the question, and known since the answer: what a server said may be younger than what it was asked.
func TestAViewTellsWhenItsListWasAnswered(t *testing.T) {
	t.Parallel()
	const slow = 300 * time.Millisecond
	s := newServer(t)
	s.answer(services, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			time.Sleep(slow) // the server's slowness, not a wait
		}
		s.list(w, r)
	})
	r := read(t, s, fast)
	w := r.until(t, "complete", complete)
	v, _ := w.View(world.KindService)
	if took := v.ListAge - v.ListedAge; took < slow || v.ListedAge < 0 {
		t.Errorf("begun %s ago, answered %s ago", v.ListAge, v.ListedAge)
	}
}
