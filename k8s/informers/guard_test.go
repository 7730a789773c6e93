// SPDX-License-Identifier: Apache-2.0

package informers_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/convert"
	"fairlead.io/fairlead/k8s/informers"
)

// judge asks the leader's guard about a source all the time, as the leader does, with a record that holds what the source
// showed first. It gives the verdict that fulfils ok, and fails on one that removes what must stay.
type judge struct {
	t       *testing.T
	r       *reading
	guard   *leader.Guard
	known   leader.Known
	began   time.Time
	removed map[string]bool
}

// hurried are the guard's times, in proportion to those of fast.
var hurried = leader.Limits{Confirm: 20 * time.Millisecond, Rewind: 300 * time.Millisecond}

func newJudge(t *testing.T, r *reading, limits leader.Limits) *judge {
	w := r.until(t, "complete", complete)
	j := &judge{t: t, r: r, guard: leader.NewGuard(limits), began: time.Now(), removed: map[string]bool{}}
	j.known = leader.Known{Cluster: w.Cluster, Versions: map[world.Kind]uint64{}}
	for _, v := range w.Kinds {
		j.known.Versions[v.Kind] = v.Version
	}
	for _, s := range w.Services {
		j.known.Objects = append(j.known.Objects, leader.KnownObject{Kind: world.KindService, ID: s.ID, UID: s.UID})
	}
	for _, n := range w.Nodes {
		j.known.Objects = append(j.known.Objects, leader.KnownObject{Kind: world.KindNode, ID: n.ID, UID: n.UID})
	}
	return j
}

func (j *judge) once() leader.Verdict {
	w := j.r.World()
	v := j.guard.Judge(time.Since(j.began), &w, &j.known)
	if len(v.Relist) > 0 {
		j.r.Relist(v.Relist...)
	}
	for _, gone := range v.Gone {
		j.removed[gone.ID.String()] = true
	}
	return v
}

func (j *judge) until(what string, ok func(leader.Verdict) bool) leader.Verdict {
	j.t.Helper()
	var v leader.Verdict
	testkit.Eventually(j.t, what, func() error {
		if v = j.once(); !ok(v) {
			return fmt.Errorf("%+v", v)
		}
		return nil
	})
	return v
}

// lists waits until a kind was listed n times more, judging all along.
func (j *judge) lists(kind world.Kind, n uint64) leader.Verdict {
	j.t.Helper()
	from := view(j.t, j.r.World(), kind).Lists
	return j.until("listed", func(leader.Verdict) bool {
		j.r.Relist(kind)
		return view(j.t, j.r.World(), kind).Lists >= from+n
	})
}

func (j *judge) keepsAll() {
	j.t.Helper()
	if len(j.removed) > 0 {
		j.t.Errorf("removed %v", j.removed)
	}
}

func furnished(t *testing.T, n int) *server {
	s := newServer(t)
	s.put(services, "default", "kubernetes", service(443))
	s.put(nodes, "", "n1", node("192.0.2.1"))
	for i := range n {
		s.put(services, "default", fmt.Sprintf("web-%d", i), service(80))
	}
	return s
}

func emptyList(kind string, s *server) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"%sList","metadata":{"resourceVersion":"%d"},"items":[]}`, kind, s.revision+1000)
}

// hide has lists of Services lack one, which is given to those who ask for it by name.
func (s *server) hide(key string) {
	s.set(func() { // written by the same server in its normal state
		s.forgetful = true
		all := s.resources[services].objects
		hidden := all[key]
		delete(all, key)
		r, _ := http.NewRequest(http.MethodGet, services, nil)
		s.stale[services] = s.listing(httptest.NewRecorder(), r, s.resources[services])
		all[key] = hidden
	})
}

// refused tells whether a list was found to lack what is there.
func refused(w world.World) bool {
	return slices.ContainsFunc(w.Problems, func(p world.Problem) bool {
		return strings.Contains(p.Why, "lacks objects that are there")
	})
}

// A source that has just started knows what to ask for from the record. What is gone is asked for once, and what the record
// knows of later than a list, or not by a version, says nothing about it.
func TestListsWithoutWhatTheRecordKnowsAreRefused(t *testing.T) {
	t.Parallel()
	s := furnished(t, 3)
	known := func(name, uid string, version uint64) informers.Known {
		return informers.Known{ID: world.ID{Namespace: "default", Name: name}, UID: uid, Version: version}
	}
	uid := s.resources[services].objects["default/web-1"]["metadata"].(object)["uid"].(string)
	all := []informers.Known{known("gone", "u", 5), known("web-1", uid, 11), known("tomorrow", "u", 1<<40), known("web-2", "an earlier life", 5)}
	s.hide("default/web-1")
	r := readWith(t, s, informers.Options{Timing: fast, Known: func(kind world.Kind) []informers.Known {
		if kind != world.KindService {
			return nil
		}
		return all
	}})
	r.until(t, "refused", refused)
	if w := r.World(); view(t, w, world.KindService).Listed || !view(t, w, world.KindService).Away {
		t.Errorf("a list that lacks something counts: %+v", view(t, w, world.KindService))
	}
	s.set(func() { delete(s.stale, services) })
	r.until(t, "listed", complete)
	for range 3 {
		n := view(t, r.World(), world.KindService).Lists
		r.Relist(world.KindService)
		r.until(t, "listed again", func(w world.World) bool { return view(t, w, world.KindService).Lists > n })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := map[string]int{}
	for _, q := range s.queries {
		if _, name, ok := strings.Cut(q, "/namespaces/default/services/"); ok {
			asked[strings.TrimSuffix(name, "?")]++
		}
	}
	if asked["gone"] != 1 || asked["web-1"] == 0 || len(asked) != 2 {
		t.Errorf("asked for %v", asked)
	}
}

// What the record knows and another cluster does not have is asked for again once the address leads to the former one, whose lists may lack it.
func TestWhatAnotherClusterLacksIsAskedForAgain(t *testing.T) {
	t.Parallel()
	s := furnished(t, 3)
	uid := s.resources[services].objects["default/web-1"]["metadata"].(object)["uid"].(string)
	r := readWith(t, s, informers.Options{Timing: fast, Known: func(kind world.Kind) []informers.Known {
		if kind != world.KindService {
			return nil
		}
		return []informers.Known{{ID: world.ID{Namespace: "default", Name: "web-1"}, UID: uid}}
	}})
	r.until(t, "complete", complete)
	var here map[string]object
	former := s.uid
	lead := func(cluster string, to func() map[string]object) {
		s.set(func() {
			s.uid = cluster
			s.round++
			s.revision += 1000
			known := s.resources[services]
			known.objects, known.log, known.compacted = to(), nil, s.revision
		})
		s.cut(true)
	}
	lead("cluster-2", func() map[string]object {
		here = s.resources[services].objects
		return map[string]object{}
	})
	r.until(t, "the other cluster", func(w world.World) bool { return w.Cluster == "cluster-2" && w.Complete })
	lead(former, func() map[string]object { return here })
	s.hide("default/web-1")
	r.until(t, "refused", refused)
}

// A config map is asked for where lists are of it alone, and only in the namespace that they are of.
func TestConfigMapsAreAskedForWhereTheyAreListed(t *testing.T) {
	t.Parallel()
	s := furnished(t, 1)
	s.put(configMaps, "kube-system", convert.ConfigMapIPRule, object{"data": object{"SWITCH": "192.0.2.254"}})
	uid := s.resources[configMaps].objects["kube-system/"+convert.ConfigMapIPRule]["metadata"].(object)["uid"].(string)
	known := func(namespace, name, uid string) informers.Known {
		return informers.Known{ID: world.ID{Namespace: namespace, Name: name}, UID: uid, Version: 5}
	}
	r := readWith(t, s, informers.Options{Timing: fast, Known: func(kind world.Kind) []informers.Known {
		if kind != world.KindConfigMap {
			return nil
		}
		return []informers.Known{known("elsewhere", convert.ConfigMapIPRule, "u"), known("kube-system", convert.ConfigMapGoBGP, "u"), known("kube-system", convert.ConfigMapIPRule, uid)}
	}})
	r.until(t, "listed", complete)
	s.mu.Lock()
	defer s.mu.Unlock()
	// The one that is listed is asked for now and then too, as all that is shown.
	in := func(namespace, name string) string {
		return "/api/v1/namespaces/" + namespace + "/configmaps/" + name + "?"
	}
	if !slices.Contains(s.queries, in("kube-system", convert.ConfigMapGoBGP)) || slices.Contains(s.queries, in("elsewhere", convert.ConfigMapIPRule)) {
		t.Errorf("asked for %v", s.queries)
	}
}

// What a list lacks, and is given when it is asked for by name, stays: also if lists go on like that, and lack too little
// for a mass removal. Nothing more is believed of such a list either.
func TestListsWithoutWhatIsThereAreRefused(t *testing.T) {
	t.Parallel()
	s := furnished(t, 5)
	j := newJudge(t, read(t, s, fast), hurried)
	s.answer(services, refusal(503, "ServiceUnavailable", "away")) // no watch tells of it
	s.remove(services, "default", "web-3")
	s.hide("default/web-1")
	s.cut(true)
	s.answer(services, nil)
	j.until("refused", func(leader.Verdict) bool { return refused(j.r.World()) })
	if v := view(t, j.r.World(), world.KindService); v.Complete {
		t.Error("the view is complete")
	}
	began := time.Now()
	j.until("refused again and again", func(leader.Verdict) bool {
		j.r.Relist(world.KindService)
		return time.Since(began) > 5*hurried.Confirm
	})
	j.keepsAll()
	s.set(func() { delete(s.stale, services) })
	j.until("read again", func(leader.Verdict) bool { return view(t, j.r.World(), world.KindService).Complete })
	j.until("removed", func(leader.Verdict) bool { return j.removed["default/web-3"] })
	if len(j.removed) != 1 {
		t.Errorf("removed %v", j.removed)
	}
}

// An API server that answers with empty lists changes nothing.
func TestEmptyListsChangeNothing(t *testing.T) {
	t.Parallel()
	for name, paths := range map[string]map[string]string{
		"all": {services: "Service", nodes: "Node"}, "services": {services: "Service"}, "nodes": {nodes: "Node"},
	} {
		t.Run(name, func(t *testing.T) {
			s := furnished(t, 3)
			j := newJudge(t, read(t, s, fast), hurried)
			s.set(func() {
				for path, kind := range paths {
					s.stale[path] = emptyList(kind, s)
				}
			})
			s.cut(true)
			var v leader.Verdict
			for range 4 {
				for path := range paths {
					kind := map[string]world.Kind{services: world.KindService, nodes: world.KindNode}[path]
					v = j.lists(kind, 1)
				}
			}
			if v.Act {
				t.Errorf("an empty view is acted on: %+v", v)
			}
			j.keepsAll()
			s.set(func() {
				clear(s.stale)
				s.revision += 2000
			})
			s.cut(true)
			j.until("usable again", func(v leader.Verdict) bool { return v.Act })
			j.keepsAll()
		})
	}
}

func TestADeletionIsActedOnAtOnceAndAnAbsenceAfterTwoLists(t *testing.T) {
	t.Parallel()
	s := furnished(t, 3)
	j := newJudge(t, read(t, s, fast), hurried)
	s.remove(services, "default", "web-0")
	v := j.until("acted on", func(v leader.Verdict) bool { return len(v.Gone) == 1 })
	if v.Gone[0].Evidence != "its deletion was seen" {
		t.Errorf("got %+v", v.Gone)
	}
	s.answer(services, refusal(503, "ServiceUnavailable", "away"))
	s.remove(services, "default", "web-1")
	s.cut(true)
	before := view(t, j.r.World(), world.KindService).Lists // no list comes until the server answers
	s.answer(services, nil)
	j.until("acted on", func(v leader.Verdict) bool {
		for _, g := range v.Gone {
			if g.ID.Name == "web-1" {
				return g.Evidence == "two complete lists lack it"
			}
		}
		return false
	})
	if n := view(t, j.r.World(), world.KindService).Lists - before; n < 2 {
		t.Errorf("after %d lists", n)
	}
}

func TestMassAbsenceIsHeld(t *testing.T) {
	t.Parallel()
	s := furnished(t, 12)
	j := newJudge(t, read(t, s, fast), hurried)
	s.answer(services, refusal(503, "ServiceUnavailable", "away"))
	for i := range 12 {
		s.remove(services, "default", fmt.Sprintf("web-%d", i))
	}
	s.cut(true)
	s.answer(services, nil)
	j.until("held", func(v leader.Verdict) bool { return len(v.Hold) == 1 && len(v.Hold[0].Subjects) == 12 })
	j.keepsAll()
}

// A list from the past is not acted on, however complete it is; one from now on, at once.
func TestAStaleListIsNotActedOn(t *testing.T) {
	t.Parallel()
	s := furnished(t, 2)
	s.freeze(services)
	past := s.stale[services]
	s.set(func() { delete(s.stale, services) })
	s.put(services, "default", "late", service(80))
	j := newJudge(t, read(t, s, fast), hurried)
	s.set(func() { s.stale[services] = past })
	s.cut(true)
	v := j.until("refused", func(v leader.Verdict) bool { return !v.Act })
	j.keepsAll()
	if v.Why == "" {
		t.Error("without a reason")
	}
	s.set(func() { delete(s.stale, services) })
	j.until("acted on", func(v leader.Verdict) bool { return v.Act })
	j.keepsAll()
}

// Lists that stay in the past are a rewind: shown, and for an operator to accept.
func TestAClusterSetBackIsShownAsARewind(t *testing.T) {
	t.Parallel()
	s := furnished(t, 2)
	back := s.revision
	s.put(services, "default", "late", service(80))
	j := newJudge(t, read(t, s, fast), hurried)
	s.set(func() {
		for _, r := range s.resources {
			r.log = nil
		}
		delete(s.resources[services].objects, "default/late")
		s.revision = back
		s.round++
	})
	j.until("a rewind", func(v leader.Verdict) bool { return v.Rewind != nil })
	j.keepsAll()
}
