// SPDX-License-Identifier: Apache-2.0

package informers_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/informers"
)

// haunt has a Service go of which no watch tells, and lists show it on, at the newest version.
func (s *server) haunt(key string) (undead object) {
	s.set(func() {
		s.forgetful = true
		s.revision++
		all := s.resources[services].objects
		undead = all[key]
		r, _ := http.NewRequest(http.MethodGet, services, nil)
		s.stale[services] = s.listing(httptest.NewRecorder(), r, s.resources[services])
		delete(all, key)
	})
	return undead
}

func without(name string) func(world.World) bool {
	return func(w world.World) bool { return w.Complete && find(w, name) == nil }
}

// looking is fast, and looks after what is shown.
func looking() informers.Timing {
	t := fast
	t.Look = 2 * time.Millisecond
	return t
}

// A deletion of which no watch tells and that lists do not show is found by asking by name; all else stays, and lists go on counting.
func TestWhatIsShownAndGoneByNameDoesNotCount(t *testing.T) {
	t.Parallel()
	s := furnished(t, 3)
	r := read(t, s, looking())
	r.until(t, "complete", complete)
	s.haunt("default/web-1")
	w := r.until(t, "found out", without("web-1"))
	if find(w, "web-0") == nil || find(w, "web-2") == nil {
		t.Errorf("others went, too: %+v", w.Services)
	}
	for range 2 { // the first may have been under way
		before := view(t, w, world.KindService).Lists
		r.Relist(world.KindService)
		if w = r.until(t, "listed again", func(w world.World) bool {
			return view(t, w, world.KindService).Lists > before || find(w, "web-1") != nil
		}); find(w, "web-1") != nil {
			t.Error("the next list brought it back")
		}
	}
	if n := strings.Count(r.log.String(), "object listed that is gone"); n != 1 {
		t.Errorf("the log says so %d times:\n%s", n, r.log)
	}
}

// An object that a watch showed to be deleted does not come back by a list that is behind. It does if it is there by name: then its cluster was
// restored.
func TestWhatWasSeenDeletedIsAskedForBeforeItCountsAgain(t *testing.T) {
	t.Parallel()
	for _, there := range []bool{false, true} {
		s := furnished(t, 3)
		r := read(t, s, fast)
		r.until(t, "complete", complete)
		was := s.resources[services].objects["default/web-1"]
		uid := s.remove(services, "default", "web-1")
		r.until(t, "deleted", func(w world.World) bool {
			return find(w, "web-1") == nil && slices.ContainsFunc(w.Deleted, func(d world.Deletion) bool { return d.UID == uid })
		})
		s.set(func() { s.resources[services].objects["default/web-1"] = was })
		if !there {
			s.haunt("default/web-1")
		}
		before := view(t, r.World(), world.KindService).Lists
		s.cut(true)
		w := r.until(t, "listed", func(w world.World) bool { return view(t, w, world.KindService).Lists > before && w.Complete })
		vouched := slices.Contains(w.Vouched, world.Ref{Kind: world.KindService, ID: world.ID{Namespace: "default", Name: "web-1"}, UID: uid})
		if got := find(w, "web-1") != nil; got != there || vouched != there {
			t.Errorf("there by name %t: shown %t, vouched for %t", there, got, vouched)
		}
	}
}

// A source that has just started hears from others what is gone, and says of what they are wrong about that it is there.
func TestWhatOthersKnowToBeGoneIsAskedFor(t *testing.T) {
	t.Parallel()
	s := furnished(t, 3)
	uid := func(key string) string {
		return s.resources[services].objects[key]["metadata"].(object)["uid"].(string)
	}
	dead := map[string]string{"web-0": uid("default/web-0"), "web-1": uid("default/web-1"), "web-2": "an earlier life"}
	s.haunt("default/web-1")
	r := readWith(t, s, informers.Options{Timing: fast, Dead: func(kind world.Kind, id world.ID) string {
		if kind != world.KindService {
			return ""
		}
		return dead[id.Name]
	}})
	w := r.until(t, "complete", complete)
	if find(w, "web-0") == nil || find(w, "web-1") != nil || find(w, "web-2") == nil {
		t.Errorf("shown: %+v", w.Services)
	}
	if len(w.Vouched) != 1 || w.Vouched[0].Name != "web-0" {
		t.Errorf("vouched for: %+v", w.Vouched)
	}
}
