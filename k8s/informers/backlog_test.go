// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"fairlead.io/fairlead/fsm/world"
)

// said is an event about a node, of a life of it.
func said(what watch.EventType, uid, version string) watch.Event {
	return watch.Event{Type: what, Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "n1", UID: types.UID(uid), ResourceVersion: version,
	}}}
}

// What was true only while nobody listened is not passed on; ends are, and everything that is said later.
func TestAResumedWatchBeginsWithWhatIsTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := watch.NewFake()
		s := &Source{}
		l := &line{source: s}
		first := said(watch.Modified, "a", "2")
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
		say(said(watch.Modified, "a", "3"), said(watch.Modified, "b", "4"), said(watch.Modified, "a", "5"), said(watch.Deleted, "a", "6"), said(watch.Added, "c", "7"))
		expect()
		time.Sleep(catchUpQuiet)
		now := []string{"MODIFIED 4", "MODIFIED 5", "DELETED 6", "ADDED 7"}
		expect(now...)
		say(said(watch.Modified, "c", "8"), said(watch.Modified, "c", "9"))
		now = append(now, "MODIFIED 8", "MODIFIED 9")
		expect(now...)
		l.kind = world.KindNode
		say(said(watch.Modified, "c", "10"), said(watch.Modified, "c", "11"))
		time.Sleep(time.Second)
		say(said(watch.Modified, "c", "12"), said(watch.Modified, "c", "13"))
		time.Sleep(catchUpQuiet)
		expect(append(now, "MODIFIED 11", "MODIFIED 13")...)
	})
}

// A watch that is never quiet is not waited for.
func TestABusyWatchIsHeardSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := watch.NewRaceFreeFake()
		tap := newTap(context.Background(), &line{source: &Source{}}, inner, nil, func() {})
		defer tap.Stop()
		go func() {
			for range int(2 * catchUpWithin / catchUpQuiet) {
				inner.Modify(said(watch.Modified, "a", "2").Object)
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
