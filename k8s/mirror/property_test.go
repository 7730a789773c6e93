// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/api/lbcf"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// stranger is a BackendRecord that is neither ours nor taken over.
const stranger = 9

// story draws what happens to the record, to the API server and to the objects.
type story struct {
	*rapid.T
	b *book
	s *server
	c Config

	stop func()
}

func (x *story) one(name string) int { return rapid.IntRange(1, 3).Draw(x.T, name) }

// faults has one write in a few fail, or be carried out without an answer, or lets all through.
func (x *story) faults(on bool) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.s.fail, x.s.lose = nil, nil
	if !on {
		return
	}
	which := rapid.SampledFrom([]error{
		errAway, apierrors.NewTooManyRequests("slow down", 1), apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("changed")),
		apierrors.NewInternalError(errors.New("etcd")), nil,
	}).Draw(x.T, "fault")
	every := rapid.IntRange(1, 3).Draw(x.T, "every")
	n := 0
	x.s.fail = func(*Write) error {
		if n++; n%every == 0 {
			return which
		}
		return nil
	}
	if which == nil {
		x.s.fail, x.s.lose = nil, func(*Write) bool { n++; return n%every == 0 }
	}
}

// step is one thing that happens.
func (x *story) step(rough bool) {
	i := x.one("binding")
	b := x.b
	most := 9
	if rough {
		most = 17
	}
	switch rapid.IntRange(0, most).Draw(x.T, "step") {
	case 0, 1:
		parameters := rapid.SampledFrom([][]string{nil, {"weight", "1"}, {"weight", "2"}}).Draw(x.T, "parameters")
		_ = b.try(x, pod(i, parameters...))
	case 2:
		_ = b.try(x, b.answer(i, fmt.Sprintf("10.0.0.%d:8080", i), "", false))
	case 4: // a pod, at once
		_ = b.try(x, pod(i))
		_ = b.try(x, b.answer(i, fmt.Sprintf("10.0.0.%d:8080", i), "", false))
		fallthrough
	case 3:
		_ = b.call(x, fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: name(i)}, succeeded("welcome", kv("memberID", fmt.Sprint(i))...))
	case 5:
		_ = b.call(x, fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: name(i)}, refusedWith("full"))
	case 6:
		_ = b.try(x, &fsm.RemoveBinding{ID: name(i)})
	case 7:
		_ = b.call(x, fsm.BeginOperation{Action: fsm.ActionDeregister, Binding: name(i)}, succeeded(""))
	case 8:
		pass(time.Duration(rapid.IntRange(0, 5000).Draw(x.T, "ms")) * time.Millisecond)
	case 9: // a pod that is unready for a moment
		_ = b.try(x, &fsm.RemoveBinding{ID: name(i)})
		_ = b.call(x, fsm.BeginOperation{Action: fsm.ActionDeregister, Binding: name(i)}, succeeded(""))
		_ = b.try(x, pod(i))
	case 10:
		x.faults(true)
	case 17:
		x.faults(false)
	case 11:
		x.s.mu.Lock()
		x.s.lagging = !x.s.lagging
		if !x.s.lagging {
			x.s.catchUp(len(x.s.lag))
		}
		x.s.mu.Unlock()
	case 12:
		shown := rapid.IntRange(0, 4).Draw(x.T, "shown") // quarters: how much there is to show depends on how far the mirror is, which is no draw
		x.s.mu.Lock()
		x.s.catchUp(len(x.s.lag) * shown / 4)
		x.s.mu.Unlock()
	case 13: // another leader, or the same one after a crash
		x.stop()
		x.stop = lead(x, x.c)
	case 14: // hands, or the garbage collector
		x.s.remove(recordKey(name(i)))
	case 15: // hands that take the finalizer
		x.s.change(recordKey(name(i)), func(o Object) { o.SetFinalizers(nil) })
	case 16: // hands that change a status
		x.s.change(recordKey(name(i)), func(o Object) { o.(*v1beta1.BackendRecord).Status = v1beta1.BackendRecordStatus{} })
	}
	x.planner()
}

// planner does what that does about deletions by hand: what goes is deregistered, and what went is forgotten. It would
// take a binding that no driver was asked about, and whose object says that it is registered, for another controller's.
func (x *story) planner() {
	for _, b := range fsm.List[*fsm.Binding](x.b.Read(), fsm.TableBindings) {
		o, _ := x.s.get(recordKey(b.ID)).(*v1beta1.BackendRecord)
		switch {
		case o != nil && isOf(b, o) && !b.Asked && is(o.Status.Conditions, v1beta1.ConditionRegistered, metav1.ConditionTrue):
			x.Fatalf("nobody was asked to register %+v, but its object says %+v", b, o.Status)
		case o != nil && isOf(b, o) && deleting(o):
			x.b.do(x, &fsm.RemoveBinding{ID: b.ID})
		}
	}
}

// heal ends all trouble, and what is under way in the record.
func (x *story) heal() {
	x.faults(false)
	x.s.mu.Lock()
	x.s.lagging = false
	x.s.catchUp(len(x.s.lag))
	x.s.mu.Unlock()
	for range 3 {
		pass(2 * time.Minute)
		x.planner()
		for i := 1; i <= 3; i++ {
			_ = x.b.call(x, fsm.BeginOperation{Action: fsm.ActionDeregister, Binding: name(i)}, succeeded(""))
		}
	}
	pass(2 * time.Minute)
}

// check compares objects with the record, in words of its own.
func (x *story) check() {
	for i := 1; i <= 3; i++ {
		b, bound := fsm.Get[*fsm.Binding](x.b.Read(), fsm.TableBindings, string(name(i)))
		o := x.s.record(i)
		switch {
		case !bound && o == nil:
			continue
		case !bound || o == nil:
			x.Fatalf("binding %d: in the record %v, object %+v", i, bound, o)
		case o.Annotations[lbcf.AnnotationRecord] != "g/"+b.UID || !maps.Equal(o.Spec.Parameters, mapOf(b.Parameters)) || o.Status.BackendAddr != b.Address ||
			!maps.Equal(o.Status.InjectedInfo, mapOf(b.Returned)) || deleting(o):
			x.Fatalf("binding %+v, object %+v", b, o)
		case b.Registered != is(o.Status.Conditions, v1beta1.ConditionRegistered, metav1.ConditionTrue) && (b.Registered || b.Attempts > 0):
			x.Fatalf("registered %v, conditions %+v", b.Registered, o.Status.Conditions)
		}
	}
	n := len(x.s.writes)
	pass(time.Hour)
	if more := x.s.writes[n:]; len(more) > 0 {
		x.Fatalf("%d writes when nothing changed, the first %s %+v", len(more), more[0].Verb, more[0].Object)
	}
}

// inBubbles checks a property with a bubble for each case. In one bubble for all, rapid would see days pass and end early.
func inBubbles(t *testing.T, property func(*rapid.T)) {
	testkit.Check(t, func(rt *rapid.T) {
		var failure any
		synctest.Test(t, func(*testing.T) {
			defer func() { failure = recover() }()
			property(rt)
		})
		if failure != nil {
			panic(failure)
		}
	})
}

func begin(t *rapid.T) *story {
	x := &story{T: t, b: newBook(t), s: newServer()}
	x.b.edgeReady(t)
	x.s.put(recordKey(name(stranger)), &v1beta1.BackendRecord{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{lbcf.FinalizerBackendRecord}}})
	x.c = config(x.b, x.s)
	x.stop = lead(t, x.c)
	return x
}

// Whatever happens, in whatever order, objects come to show the record; then nothing is written, and what is a
// stranger's never is.
func TestPropertyTheMirrorComesToShowTheRecord(t *testing.T) {
	inBubbles(t, func(t *rapid.T) {
		x := begin(t)
		defer func() { x.stop() }()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			x.step(true)
		}
		x.heal()
		x.check()
		for _, w := range x.s.writes {
			if w.Key == recordKey(name(stranger)) {
				t.Fatalf("wrote a stranger's: %s", w.Verb)
			}
		}
	})
}

// A bound pod costs at most three writes of objects, however the record got there, as long as its parameters stay and
// nobody interferes.
func TestPropertyABoundPodCostsAtMostThreeWrites(t *testing.T) {
	inBubbles(t, func(t *rapid.T) {
		x := begin(t)
		defer func() { x.stop() }()
		x.b.do(t, pod(1))
		rest := func(what string) {
			pass(time.Duration(rapid.IntRange(0, 4000).Draw(t, what)) * time.Millisecond)
		}
		rest("before the address")
		x.b.addressed(t, 1)
		rest("before it is ensured")
		if failures := rapid.IntRange(0, 5).Draw(t, "failures"); failures > 0 {
			for range failures {
				x.b.must(t, fsm.BeginOperation{Action: fsm.ActionEnsure, Binding: name(1)}, refusedWith("full"))
			}
			pass(50 * time.Millisecond)
		}
		x.b.ensured(t, 1, "welcome")
		pass(time.Hour)
		x.check()
		if n := len(x.s.writes); n > 3 {
			t.Fatalf("%d writes: %s", n, x.s.verbs(Record))
		}
	})
}
