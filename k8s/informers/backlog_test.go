// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/convert"
)

// told is an event about a node, of a life of it.
func told(what watch.EventType, uid, version string) watch.Event {
	return watch.Event{Type: what, Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "n1", UID: types.UID(uid), ResourceVersion: version,
	}}}
}

// nodesLine is a line that has been listed, and what it leads to.
func nodesLine(of world.Kind) (*line, *shelf[world.Node]) {
	s := &Source{clock: clock.RealClock{}, changed: make(chan struct{}, 1)}
	s.metrics = newMetrics(s)
	l := s.newLine(of, "nodes")
	l.listed = true
	node := kind[world.Node]{world.KindNode,
		func(w *world.World) *[]*world.Node { return &w.Nodes }, func(v *world.Node) *world.Meta { return &v.Meta }}
	return l, node.shelf(l, typed(node, convert.Node))
}

// What was true only while nobody listened is not passed on; ends are, and everything that is said later.
func TestAResumedWatchBeginsWithWhatIsTrue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := watch.NewFake()
		l, _ := nodesLine("")
		first := told(watch.Modified, "a", "2")
		tap := newTap(context.Background(), l, inner, &first, func() {})
		defer tap.Stop()
		var mu sync.Mutex
		var got []string
		go func() {
			for e := range tap.ResultChan() {
				mu.Lock()
				got = append(got, string(e.Type)+" "+e.Object.(*corev1.Node).ResourceVersion)
				mu.Unlock()
			}
		}()
		say := func(events ...watch.Event) {
			for _, e := range events {
				inner.Action(e.Type, e.Object)
			}
		}
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(got, want) {
				t.Fatalf("passed on %q, want %q", got, want)
			}
		}
		say(told(watch.Modified, "a", "3"), told(watch.Modified, "b", "4"), told(watch.Modified, "a", "5"), told(watch.Deleted, "a", "6"), told(watch.Added, "c", "7"))
		expect()
		time.Sleep(catchUpQuiet)
		now := []string{"MODIFIED 4", "MODIFIED 5", "DELETED 6", "ADDED 7"}
		expect(now...)
		say(told(watch.Modified, "c", "8"), told(watch.Modified, "c", "9"))
		now = append(now, "MODIFIED 8", "MODIFIED 9")
		expect(now...)
		l.kind = world.KindNode
		say(told(watch.Modified, "c", "10"), told(watch.Modified, "c", "11"))
		time.Sleep(time.Second)
		say(told(watch.Modified, "c", "12"), told(watch.Modified, "c", "13"))
		time.Sleep(catchUpQuiet)
		expect(append(now, "MODIFIED 11", "MODIFIED 13")...)
	})
}

// A watch that is never quiet is not waited for.
func TestABusyWatchIsHeardSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := watch.NewRaceFreeFake()
		l, _ := nodesLine("")
		tap := newTap(context.Background(), l, inner, nil, func() {})
		defer tap.Stop()
		go func() {
			for range int(2 * catchUpWithin / catchUpQuiet) {
				inner.Modify(told(watch.Modified, "a", "2").Object)
				time.Sleep(catchUpQuiet / 2)
			}
		}()
		began := time.Now()
		<-tap.ResultChan()
		if took := time.Since(began); took > catchUpWithin {
			t.Errorf("heard after %v", took)
		}
	})
}

// What a watch says together is seen as a whole or not at all: neither a node that is gone for a moment between two of
// its lives, nor its end as evidence.
func TestWhatIsSaidTogetherIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	testkit.Check(t, func(t *rapid.T) {
		l, shelf := nodesLine(world.KindNode)
		version, life := 10, 0
		there := map[string]string{} // name to UID
		draw := func(most int) (events []watch.Event) {
			for range rapid.IntRange(1, most).Draw(t, "events") {
				version++
				name := rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(t, "name")
				o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: strconv.Itoa(version)}}
				what := watch.Modified
				switch uid, known := there[name]; {
				case !known:
					life++
					what, there[name] = watch.Added, strconv.Itoa(life)
					o.UID = types.UID(there[name])
				case rapid.Bool().Draw(t, "deleted"):
					what, o.UID = watch.Deleted, types.UID(uid)
					delete(there, name)
				default:
					o.UID = types.UID(uid)
				}
				events = append(events, watch.Event{Type: what, Object: o})
			}
			return events
		}
		tap := makeTap(context.Background(), l, watch.NewFake(), func() {})
		for range 3 {
			before, events := seen(shelf), draw(12)
			cut := rapid.IntRange(1, len(events)).Draw(t, "cut") // events that are passed on until the watch ends
			go tap.passAll(events)
			for i := range cut {
				takeIn(t, shelf, <-tap.out)
				if now := seen(shelf); i < len(events)-1 && now != before {
					t.Fatalf("after %d of %d events %s is seen, before %s", i+1, len(events), now, before)
				}
			}
			if cut < len(events) {
				tap.Stop()
				if len(shelf.pending) > 0 {
					t.Fatalf("%d events that no watch says again are still waited with", len(shelf.pending))
				}
				tap = makeTap(context.Background(), l, watch.NewFake(), func() {})
				for _, e := range events[cut:] { // the next watch begins there
					takeIn(t, shelf, e)
				}
			}
			if got := lives(shelf); !maps.Equal(got, there) {
				t.Fatalf("seen are %v, there are %v", got, there)
			}
		}
	})
}

func takeIn(t *rapid.T, to cache.ReflectorStore, e watch.Event) {
	f := map[watch.EventType]func(any) error{watch.Added: to.Add, watch.Modified: to.Update, watch.Deleted: to.Delete}[e.Type]
	if err := f(e.Object); err != nil {
		t.Fatal(err)
	}
}

func seen(s *shelf[world.Node]) string {
	w := world.World{Nodes: s.publish(), Deleted: s.appendTo(nil)}
	w.Sort()
	return fmt.Sprintf("%+v %+v", w.Nodes, w.Deleted)
}

func lives(s *shelf[world.Node]) map[string]string {
	out := map[string]string{}
	for _, n := range s.publish() {
		out[n.Name] = n.UID
	}
	return out
}
