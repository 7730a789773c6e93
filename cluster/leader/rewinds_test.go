// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// restored is a leader of a cluster whose etcd is restored from a backup.
type restored struct {
	t       *rapid.T
	g       *liveGroup
	source  *liar
	clock   *hand
	log     *testkit.Log
	leader  *planning
	version uint64
	lists   uint64
	lost    []string // Services that the backup does not have
}

func newRestored(t *rapid.T) *restored {
	r := &restored{t: t, g: newLiveGroup(t), source: &liar{}, clock: &hand{now: time.Hour}, log: &testkit.Log{}}
	r.elect()
	for i := range rapid.IntRange(1, 6).Draw(t, "lost") {
		r.lost = append(r.lost, fmt.Sprintf("s%d", i))
	}
	return r
}

// elect has another member lead, who remembers nothing.
func (r *restored) elect() {
	l, err := New(Config{
		Sources: []NamedSource{{"lying", r.source}}, Record: r.g.state, Group: r.g, Clock: r.clock, Log: slog.New(slog.NewTextHandler(r.log, nil)),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.leader = newPlanning(l)
}

// look has the leader see a new list, with or without what the backup lacks.
func (r *restored) look(version uint64, whole bool) {
	r.version, r.lists = version, r.lists+1
	w := truth(version, r.lists)
	if !whole {
		w.Services = slices.DeleteFunc(w.Services, func(s *world.Service) bool { return slices.Contains(r.lost, s.Name) })
		w.EndpointSlices = slices.DeleteFunc(w.EndpointSlices, func(s *world.EndpointSlice) bool { return slices.Contains(r.lost, s.Service().Name) })
	}
	r.source.view = w
	r.leader.news.Add(1)
	for range 3 {
		r.leader.step(context.Background())
	}
	r.clock.now += time.Duration(rapid.IntRange(1100, 8400).Draw(r.t, "until the next list")) * time.Millisecond
}

// keeps insists that everything is served as before.
func (r *restored) keeps(when string) {
	r.t.Helper()
	for i := range truthServices {
		s, ok := fsm.Get[*fsm.Service](r.g.state.Read(), fsm.TableServices, fmt.Sprintf("default/s%d", i))
		if !ok || s.Deleting || len(s.Endpoints) != 2 {
			r.t.Fatalf("%s: s%d is given up: %+v", when, i, s)
		}
	}
}

func (r *restored) hold() *fsm.Hold { return RewindOf(r.g.state.Read(), "lying") }

// seen has the leader act on the cluster, see more of it that there is nothing to do about, and then an older version.
func (r *restored) seen() (newest, backup uint64) {
	r.look(100, true)
	r.keeps("to begin with")
	newest = uint64(rapid.IntRange(100, 400).Draw(r.t, "newest"))
	r.look(newest, true)
	return newest, uint64(rapid.IntRange(20, int(newest)-1).Draw(r.t, "backup"))
}

// A cluster that was set back loses nothing that it had, until a person says that it is meant, also where nothing was acted on since the
// backup, where it has overtaken all that was seen, and with another leader by then. Within a minute that is in the record for all members
// to tell, and in the log, with the command that ends it.
func TestPropertyWhatARestoreLosesStaysUntilAPersonHasSpoken(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		r := newRestored(t)
		newest, backup := r.seen()
		for begun := r.clock.now; r.hold() == nil; r.keeps("before it is told") {
			if r.clock.now-begun > time.Minute {
				t.Fatalf("nothing is told after a minute:\n%s", r.log)
			}
			r.look(min(backup, newest-1), false)
		}
		if h := r.hold(); !strings.Contains(h.Why, "fairlead accept-rewind lying") {
			t.Errorf("no remedy in %q", h.Why)
		}
		r.look(backup, false)
		if n := strings.Count(r.log.String(), "fairlead accept-rewind lying --reason"); n != 1 {
			t.Errorf("the log has the remedy %d times:\n%s", n, r.log)
		}
		for range rapid.IntRange(0, 3).Draw(t, "overtakes") {
			if rapid.Bool().Draw(t, "another leader") {
				r.elect()
			}
			backup += uint64(rapid.IntRange(1, 500).Draw(t, "more"))
			r.look(backup, false)
			r.keeps("after it was told")
			if r.hold() == nil {
				t.Fatalf("the hold ended at version %d, and nobody has spoken", backup)
			}
		}
		if rapid.Bool().Draw(t, "by its hold") {
			r.g.commit(&fsm.ReleaseHold{ID: r.hold().ID})
			r.look(backup, false)
		} else {
			r.g.commit(AcceptRewind(r.g.state.Read(), "lying")...)
		}
		for range 4 {
			backup++
			r.look(backup, false)
		}
		if r.hold() != nil {
			t.Errorf("the hold stays: %+v", r.hold())
		}
		for _, name := range r.lost {
			if s, ok := fsm.Get[*fsm.Service](r.g.state.Read(), fsm.TableServices, "default/"+name); ok && !s.Deleting {
				t.Errorf("%s is kept for ever", name)
			}
		}
	})
}

// A server that lags for a while, however often, is no cluster that was set back: nothing is told, and what it shows counts once it has
// caught up.
func TestPropertyAServerThatLagsIsNoRewind(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		r := newRestored(t)
		newest, older := r.seen()
		for range rapid.IntRange(1, 3).Draw(t, "times") {
			for range rapid.IntRange(1, 4).Draw(t, "old lists") {
				r.look(older, rapid.Bool().Draw(t, "whole"))
				r.keeps("while it lags")
			}
			newest++
			r.look(newest, true)
			r.clock.now += time.Duration(rapid.IntRange(0, 60).Draw(t, "seconds of good lists")) * time.Second
		}
		if r.hold() != nil || strings.Contains(r.log.String(), "ran back") {
			t.Errorf("taken for set back: %+v\n%s", r.hold(), r.log)
		}
		for range 3 {
			newest++
			r.look(newest, false)
		}
		for _, name := range r.lost {
			if s, ok := fsm.Get[*fsm.Service](r.g.state.Read(), fsm.TableServices, "default/"+name); ok && !s.Deleting {
				t.Errorf("%s, which is deleted, is kept", name)
			}
		}
	})
}
