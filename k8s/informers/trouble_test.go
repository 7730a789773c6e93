// SPDX-License-Identifier: Apache-2.0

package informers_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/informers"
)

func problem(w world.World, parts ...string) bool {
	for _, p := range w.Problems {
		all := p.Severity == world.Failed
		for _, part := range parts {
			all = all && strings.Contains(p.String(), part)
		}
		if all {
			return true
		}
	}
	return false
}

// Too small an RBAC: one line with resource, verb and remedy, once; other kinds go on; the view is not complete.
func TestForbiddenIsOneLineWithARemedyAndOthersGoOn(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.answer(services, refusal(403, "Forbidden", `services is forbidden: User "u" cannot list resource "services" in API group "" at the cluster scope`))
	r := read(t, s, fast)
	r.until(t, "told", func(w world.World) bool {
		return problem(w, `list services is forbidden`, `User "u" cannot list resource "services"`, "allow list and watch of services")
	})
	s.put(nodes, "", "n1", node("192.0.2.1"))
	w := r.until(t, "a node", func(w world.World) bool { return len(w.Nodes) == 1 })
	if w.Complete || view(t, w, world.KindService).Listed || !view(t, w, world.KindNode).Complete {
		t.Errorf("got %+v", w.Kinds)
	}
	r.until(t, "tried several times", func(world.World) bool { return s.asked(services) > 5 })
	if n := r.log.Count("cluster not read in full"); n != 1 {
		t.Errorf("%d lines for %d tries", n, s.asked(services))
	}
	s.answer(services, nil)
	w = r.until(t, "complete", complete)
	if len(w.Problems) != 0 || r.log.Count("trouble with the cluster is over") != 1 {
		t.Errorf("problems %v", w.Problems)
	}
}

// Peers that nobody converts any more: however the server fails, the problem has the command that helps. Kinds of one version have it not.
func TestPeersThatNobodyConvertsAreToldWithWhatHelps(t *testing.T) {
	t.Parallel()
	for said, fails := range map[string]http.HandlerFunc{
		"has not read its own storage: storage is (re)initializing": refusal(429, "TooManyRequests", "storage is (re)initializing"),
		`service "webhook-service" not found`:                       refusal(500, "InternalError", `conversion webhook for metallb.io/v1beta1, Kind=BGPPeer failed: Post "https://webhook-service.metallb-system.svc:443/convert?timeout=30s": service "webhook-service" not found`),
		"does not answer in time":                                   refusal(504, "Timeout", "request did not complete within the allotted duration"),
	} {
		s := newServer(t)
		s.answer(services, fails)
		s.resources[peers].missing = false
		s.answer(peers, fails)
		r := read(t, s, fast)
		w := r.until(t, "told", func(w world.World) bool {
			return problem(w, "list bgppeers", said) && problem(w, "list services", said)
		})
		const command = `kubectl patch crd bgppeers.metallb.io --type=merge -p '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'`
		for _, p := range w.Problems {
			if helps := strings.Contains(p.Remedy, command); helps != strings.Contains(p.Why, "list bgppeers") {
				t.Errorf("told: %s", p)
			}
		}
	}
}

func (s *server) asked(path string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queries {
		if strings.HasPrefix(q, path+"?") {
			n++
		}
	}
	return n
}

func TestAForbiddenWatchLeavesTheViewIncomplete(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.answer(services, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			refusal(403, "Forbidden", `services is forbidden: User "u" cannot watch resource "services"`)(w, r)
			return
		}
		s.list(w, r)
	})
	r := read(t, s, fast)
	w := r.until(t, "told", func(w world.World) bool {
		return problem(w, "watch services is forbidden", "allow list and watch of services") && view(t, w, world.KindService).Listed
	})
	if w.Complete {
		t.Error("complete without a watch")
	}
}

func TestAnotherClusterIsNeverMixedIn(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(services, "default", "web", service(80))
	s.put(nodes, "", "n1", node("192.0.2.1"))
	r := read(t, s, fast)
	r.until(t, "complete", complete)
	s.set(func() {
		s.uid = "cluster-2"
		s.round++
		s.revision += 1000
		for _, known := range s.resources {
			known.objects, known.log, known.compacted = map[string]object{}, nil, s.revision
		}
	})
	w := r.until(t, "the other cluster", func(w world.World) bool { return w.Cluster == "cluster-2" && w.Complete })
	if len(w.Services)+len(w.Nodes)+len(w.Deleted) != 0 {
		t.Errorf("of the former cluster: %+v", w)
	}
}

func TestWithoutIdentityNothingIsListed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.answer(namespace, refusal(403, "Forbidden", `namespaces "kube-system" is forbidden: User "u" cannot get resource "namespaces"`))
	s.put(services, "default", "web", service(80))
	r := read(t, s, fast)
	w := r.until(t, "told", func(w world.World) bool { return problem(w, "get namespaces is forbidden", "allow get of namespaces") })
	if v := view(t, w, world.KindService); v.Listed || v.Complete || w.Cluster != "" {
		t.Errorf("got %+v of cluster %q", v, w.Cluster)
	}
	s.answer(namespace, nil)
	r.until(t, "complete", complete)
}

func TestMissingDefinitionsAreCompleteAndEmptyAndPickedUpWhenInstalled(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	r := read(t, s, fast)
	w := r.until(t, "complete", complete)
	if v := view(t, w, world.KindPool); !v.Complete || v.Version != 0 || len(w.Problems) != 0 {
		t.Errorf("got %+v, problems %v", v, w.Problems)
	}
	s.put(pools, "metallb-system", "a", pool("203.0.113.0/28"))
	s.set(func() { s.resources[pools].missing = false })
	w = r.until(t, "a pool", func(w world.World) bool { return len(w.Pools) == 1 && w.Complete })
	if v := view(t, w, world.KindPool); v.Version == 0 || w.Pools[0].ID != (world.ID{Name: "a"}) {
		t.Errorf("got %+v and %+v", v, w.Pools)
	}
	s.set(func() { s.resources[pools].missing = true })
	w = r.until(t, "without it", func(w world.World) bool { return len(w.Pools) == 0 })
	if len(w.Deleted) != 0 {
		t.Errorf("a definition went, and %+v is taken for seen", w.Deleted)
	}
}

func TestAnObjectThatCannotBeUsedKeepsItsLastGoodForm(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.set(func() { s.resources[pools].missing = false })
	s.put(pools, "m", "good", pool("203.0.113.0/28"))
	s.put(pools, "m", "bad", pool("nonsense"))
	s.put(pools, "m", "odd", object{"spec": object{"addresses": 7}})
	r := read(t, s, fast)
	w := r.until(t, "complete", complete)
	if len(w.Pools) != 1 || len(w.Unusable) != 2 || !problem(w, "IPAddressPool bad", `"nonsense"`) || !problem(w, "IPAddressPool odd", "spec.addresses") {
		t.Fatalf("pools %v, unusable %v, problems %v", w.Pools, w.Unusable, w.Problems)
	}
	s.put(pools, "m", "good", pool("nonsense"))
	w = r.until(t, "spoilt", func(w world.World) bool { return problem(w, "IPAddressPool good") })
	if len(w.Pools) != 1 || len(w.Pools[0].Ranges) != 1 || len(w.Unusable) != 2 {
		t.Errorf("pools %v, unusable %v", w.Pools, w.Unusable)
	}
	s.put(pools, "m", "bad", pool("203.0.113.16/28"))
	w = r.until(t, "mended", func(w world.World) bool { return len(w.Pools) == 2 })
	if problem(w, "IPAddressPool bad") || len(w.Unusable) != 1 {
		t.Errorf("unusable %v, problems %v", w.Unusable, w.Problems)
	}
	s.put(pools, "other", "good", pool("203.0.113.32/28"))
	w = r.until(t, "two of one name", func(w world.World) bool { return len(w.Pools) == 3 }) // which of them counts, the record has to say
	for _, name := range []string{"m/good", "other/good"} {
		if !slices.ContainsFunc(w.Problems, func(p world.Problem) bool {
			return p.Object.String() == "IPAddressPool "+name && strings.Contains(p.Why, "has the same name")
		}) {
			t.Errorf("nobody is told of %s: %v", name, w.Problems)
		}
	}
}

// Slices that belong to no Service, or hold no addresses, say nothing about anybody's endpoints.
func TestForeignSlicesAreLeftOutAndDoNotBlind(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(endpoints, "default", "loose", object{"addressType": "IPv4", "endpoints": []any{}})
	s.put(endpoints, "default", "names", object{"metadata": object{"labels": object{"kubernetes.io/service-name": "x"}}, "addressType": "FQDN",
		"endpoints": []any{object{"addresses": []string{"www.example.org"}}}})
	r := read(t, s, fast)
	w := r.until(t, "complete", complete)
	if len(w.EndpointSlices) != 0 || len(w.Unusable) != 0 || len(w.Problems) != 2 || w.Problems[0].Severity != world.Ignored {
		t.Errorf("slices %v, unusable %v, problems %v", w.EndpointSlices, w.Unusable, w.Problems)
	}
}

// A server that was set back and has gone beyond what we had seen of it, before anybody looked, shows it by older forms
// of objects in a list that is not older.
func TestAServerThatWasSetBackAndOvertookIsFoundByAList(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	old := s.put(services, "default", "web", service(80))
	before := s.resources[services].objects["default/web"]
	s.put(services, "default", "web", service(81))
	r := read(t, s, fast)
	r.until(t, "complete", complete)
	s.set(func() {
		s.resources[services].objects["default/web"] = before
		s.revision++ // by what nobody watches
	})
	r.Relist(world.KindService)
	r.until(t, "set back", func(w world.World) bool {
		web := find(w, "web")
		return web != nil && w.Complete && web.Version == old
	})
}

// What one resource shows is so of all: the watches of the others go on as if nothing had happened.
func TestAServerThatWasSetBackIsAskedForEverything(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(services, "default", "web", service(80))
	web := s.resources[services].objects["default/web"]
	s.put(services, "default", "web", service(81))
	old := s.put(nodes, "", "n1", node("192.0.2.1"))
	n1 := s.resources[nodes].objects["/n1"]
	s.put(nodes, "", "n1", node("192.0.2.2"))
	r := read(t, s, fast)
	r.until(t, "complete", complete)
	s.set(func() {
		s.resources[services].objects["default/web"], s.resources[nodes].objects["/n1"] = web, n1
		s.revision++
	})
	r.Relist(world.KindService)
	r.until(t, "set back", func(w world.World) bool { return w.Complete && len(w.Nodes) == 1 && w.Nodes[0].Version == old })
}

// A server set back is listed anew at its true version, though the watch would have been resumed in silence.
func TestAServerThatRanBackIsShownAsItIs(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(services, "default", "old", service(80))
	back := s.revision
	s.put(services, "default", "new", service(80))
	r := read(t, s, fast)
	r.until(t, "complete", complete)
	s.set(func() {
		known := s.resources[services]
		delete(known.objects, "default/new")
		known.log, s.revision = nil, back
		s.round++
	})
	w := r.until(t, "set back", func(w world.World) bool { return find(w, "new") == nil && w.Complete })
	if v := view(t, w, world.KindService); v.Version != back || find(w, "old") == nil || len(w.Deleted) != 0 {
		t.Errorf("version %d, server at %d; %+v", v.Version, back, w.Deleted)
	}
	s.put(services, "default", "next", service(80))
	r.until(t, "going on", hasService("next"))
}

func TestAListOlderThanTheWatchIsNeverServedAsNew(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(services, "default", "web", service(80))
	r := read(t, s, fast)
	r.until(t, "complete", complete)
	s.freeze(services)
	rev := s.put(services, "default", "next", service(80))
	r.until(t, "next", hasService("next"))
	lists := view(t, r.World(), world.KindService).Lists
	for range 5 {
		r.Relist(world.KindService)
		w := r.until(t, "listed", func(w world.World) bool { return view(t, w, world.KindService).Lists > lists })
		lists = view(t, w, world.KindService).Lists
		if v := view(t, w, world.KindService).Version; (v >= rev) != (find(w, "next") != nil) {
			t.Fatalf("at version %d the view shows %v", v, w.Services)
		}
	}
	s.set(func() { delete(s.stale, services) })
	r.Relist(world.KindService)
	r.until(t, "next again", hasService("next"))
}

func TestAnswersThatMakeNoSenseAreNoLists(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		with func(http.ResponseWriter, *http.Request)
		want string
	}{
		"no-version": {func(w http.ResponseWriter, _ *http.Request) {
			reply(w, object{"apiVersion": "v1", "kind": "ServiceList", "metadata": object{}, "items": []any{}})
		}, `makes no sense: resourceVersion ""`},
		"part": {func(w http.ResponseWriter, _ *http.Request) {
			reply(w, object{"apiVersion": "v1", "kind": "ServiceList", "metadata": object{"resourceVersion": "99", "continue": "x"}, "items": []any{}})
		}, "part of a list"},
		"page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html>hello</html>"))
		}, "list services"},
		"server-error": {refusal(500, "InternalError", "etcd is gone"), "failed: etcd is gone"},
		"unauthorized": {refusal(401, "Unauthorized", "Unauthorized"), "does not accept our credentials"},
		"not-there":    {notFound, "does not know the resource"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.put(services, "default", "web", service(80))
			r := read(t, s, fast)
			r.until(t, "complete", complete)
			s.answer(services, c.with)
			s.remove(services, "default", "web")
			w := r.until(t, "told", func(w world.World) bool { return problem(w, c.want) })
			if w.Complete || find(w, "web") == nil {
				t.Errorf("complete %v, services %v", w.Complete, w.Services)
			}
			s.answer(services, nil)
			r.until(t, "over", func(w world.World) bool { return w.Complete && find(w, "web") == nil && len(w.Problems) == 0 })
		})
	}
}

// Client-go itself asks ten times more, a second apart, before it gives an empty watch.
func TestAWatchThatIsNeverAnsweredIsTold(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	r := read(t, s, fast)
	r.until(t, "complete", complete)
	s.answer(services, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			s.list(w, r)
			return
		}
		c, _, _ := w.(http.Hijacker).Hijack()
		_ = c.Close()
	})
	r.until(t, "told", func(w world.World) bool {
		return problem(w, "cannot be reached: the connection was closed without an answer")
	})
	s.answer(services, nil)
	r.until(t, "over", func(w world.World) bool { return w.Complete && len(w.Problems) == 0 })
}

// A list asked for that fails while the watch goes on is tried again: nobody else would see that it works.
func TestAFailedRelistDoesNotLeaveTroubleBehind(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	r := read(t, s, fast)
	r.until(t, "complete", complete)
	s.set(func() { s.instead[services] = refusal(403, "Forbidden", "no") }) // the watch is not cut off
	r.Relist(world.KindService)
	r.until(t, "told", func(w world.World) bool { return problem(w, "list services is forbidden") })
	s.set(func() { delete(s.instead, services) })
	r.until(t, "over", func(w world.World) bool { return w.Complete && len(w.Problems) == 0 })
}

// A server that is away is one problem, whatever was being asked of it.
func TestAServerThatIsAwayIsOneLine(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	r := read(t, s, fast)
	r.until(t, "complete", complete)
	s.CloseClientConnections()
	s.Listener.Close()
	s.cut(false)
	w := r.until(t, "told", func(w world.World) bool {
		return problem(w, "cannot be reached", "connection refused") && len(w.Problems) == 1
	})
	if w.Complete {
		t.Error("complete without a server")
	}
	if n := r.log.Count("connection refused"); n != 1 {
		t.Errorf("%d lines", n)
	}
}

func TestListsAreBoundedInTime(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.answer(services, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	short := fast
	short.ListTimeout, short.OpenTimeout = 30*time.Millisecond, 30*time.Millisecond
	r := read(t, s, short)
	r.until(t, "told", func(w world.World) bool { return problem(w, "list services", "does not answer in time") })
	s.answer(services, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			s.list(w, r)
			return
		}
		<-r.Context().Done()
	})
	r.until(t, "told of the watch", func(w world.World) bool { return problem(w, "watch services", "does not answer in time") })
	s.answer(services, nil)
	r.until(t, "over", func(w world.World) bool { return w.Complete && len(w.Problems) == 0 })
}

// Where all connections break and the address leads elsewhere, versions may fit by chance: watches are resumed there.
func TestAWatchResumedAtAnotherClusterSaysNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(services, "default", "web", service(80))
	r := read(t, s, fast)
	r.until(t, "complete", complete)
	s.set(func() { s.uid, s.round = "cluster-2", s.round+1 })
	s.remove(services, "default", "web")
	r.until(t, "the other cluster", func(w world.World) bool {
		if w.Cluster == "cluster-1" && view(t, w, world.KindService).Listed && (len(w.Services) == 0 || len(w.Deleted) > 0) {
			t.Fatalf("of the other cluster: %+v", w)
		}
		return w.Cluster == "cluster-2" && w.Complete
	})
}

// A line that failed for long finds that the cluster is another one. That is an answer, and the next question follows soon.
func TestWhoFindsAnotherClusterAsksAgainSoon(t *testing.T) {
	t.Parallel()
	const definitions = "/apis/metallb.io/v1beta2" // only one kind is looked for there
	s := newServer(t)
	s.answer(definitions, refusal(503, "ServiceUnavailable", "not now"))
	now := clocktesting.NewFakeClock(time.Now())
	r := readBy(t, s, informers.Timing{Absent: 1000 * time.Hour, Silence: 1000 * time.Hour}, now)
	for s.asked(definitions) < 8 {
		now.Step(500 * time.Millisecond)
		time.Sleep(time.Millisecond)
	}
	s.set(func() { // what is watched goes on, and does not tell
		s.uid = "cluster-2"
		delete(s.instead, definitions)
	})
	for r.log.Count("another cluster") == 0 {
		now.Step(500 * time.Millisecond)
		time.Sleep(time.Millisecond)
	}
	for range 20 { // less than the next pause would be
		now.Step(200 * time.Millisecond)
		for range 50 { // what is read over the network takes its own time
			if r.World().Complete {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	r.until(t, "read 4 s after it was found", complete) // which last until the clock goes on, whatever else the machine does
}

// A Service with a text that the record cannot take is refused with a problem that names the field, and the others are shown as ever. It is
// used once it is mended.
func TestATextThatIsNotTakenIsAProblemOfItsObject(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	annotated := func(pool string) object {
		o := service(80)
		o["metadata"] = object{"annotations": object{"fairlead.io/address-pool": pool}}
		return o
	}
	s.put(services, "default", "good", service(80))
	s.put(services, "a-tenant", "bad", annotated(strings.Repeat("x", world.MaxText+1)))
	r := read(t, s, fast)
	w := r.until(t, "complete", complete)
	if find(w, "good") == nil || find(w, "bad") != nil || len(w.Unusable) != 1 || !problem(w, "Service a-tenant/bad", "metadata.annotations[fairlead.io/address-pool]") {
		t.Fatalf("services %v, unusable %v, problems %v", w.Services, w.Unusable, w.Problems)
	}
	s.put(services, "a-tenant", "bad", annotated("gold"))
	r.until(t, "mended", hasService("bad"))
}
