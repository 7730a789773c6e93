// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
)

// server is an API server as far as this package can tell, with a watch that lags as long as a test wants it to.
type server struct {
	mu      sync.Mutex
	version int
	objects map[Key]Object // as stored
	watched map[Key]Object // as the watch shows
	lag     []Key          // changes that the watch has yet to show
	lagging bool
	notify  func(Key)
	// unlisted says that not everything is shown, other that it is of another cluster.
	unlisted, other bool
	fail            func(*Write) error // before it is carried out
	lose            func(*Write) bool  // whether the answer gets lost

	writes []*Write // that were carried out
	events []*corev1.Event
	counts int
}

func newServer() *server {
	return &server{objects: map[Key]Object{}, watched: map[Key]Object{}}
}

func (s *server) stamp(o Object) {
	s.version++
	o.SetResourceVersion(strconv.Itoa(s.version))
}

// store keeps an object and has the watch show it, at once or later.
func (s *server) store(k Key, o Object) {
	if o == nil {
		delete(s.objects, k)
		s.version++
	} else {
		s.stamp(o)
		s.objects[k] = o
	}
	s.lag = append(s.lag, k)
	if !s.lagging {
		s.catchUp(len(s.lag))
	}
}

// catchUp has the watch show a number of changes. One object's changes may be shown as one.
func (s *server) catchUp(n int) {
	for _, k := range s.lag[:n] {
		if o := s.objects[k]; o != nil {
			s.watched[k] = o.DeepCopyObject().(Object)
		} else {
			delete(s.watched, k)
		}
		if s.notify != nil {
			s.notify(k)
		}
	}
	s.lag = s.lag[n:]
}

// put is somebody else's write of a whole object.
func (s *server) put(k Key, o Object) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	o = o.DeepCopyObject().(Object)
	o.SetNamespace(k.Namespace)
	o.SetName(k.Name)
	if o.GetUID() == "" {
		s.version++
		o.SetUID(types.UID(fmt.Sprintf("uid-%d", s.version)))
	}
	s.store(k, o)
	return s.objects[k].DeepCopyObject().(Object)
}

// get is what is stored.
func (s *server) get(k Key) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[k]; o != nil {
		return o.DeepCopyObject().(Object)
	}
	return nil
}

// change is somebody else's change of an object.
func (s *server) change(k Key, how func(Object)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.objects[k]; old != nil {
		o := old.DeepCopyObject().(Object)
		how(o)
		s.kept(k, o)
	}
}

// remove is somebody else's deletion.
func (s *server) remove(k Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleteNow(k)
}

func (s *server) deleteNow(k Key) {
	if old := s.objects[k]; old != nil && old.GetDeletionTimestamp() == nil {
		o := old.DeepCopyObject().(Object)
		at := metav1.Now()
		o.SetDeletionTimestamp(&at)
		s.kept(k, o)
	}
}

// kept stores an object, unless it is going and nothing holds it.
func (s *server) kept(k Key, o Object) {
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 {
		s.store(k, nil)
		return
	}
	s.store(k, o)
}

var errAway = errors.New("no route to host")

// Do carries out a write as an API server does.
func (s *server) Do(_ context.Context, w *Write) (Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		if err := s.fail(w); err != nil {
			return nil, err
		}
	}
	got, err := s.do(w)
	if err != nil {
		return nil, err
	}
	s.writes = append(s.writes, w)
	if s.lose != nil && s.lose(w) {
		return nil, errAway
	}
	return got, nil
}

func (s *server) do(w *Write) (Object, error) {
	old := s.objects[w.Key]
	resource := schema.GroupResource{Group: "lbcf.tkestack.io", Resource: string(w.Kind)}
	given := w.Object.DeepCopyObject().(Object)
	switch {
	case w.Verb == Create && old != nil:
		return nil, apierrors.NewAlreadyExists(resource, w.Name)
	case w.Verb == Create:
		setStatus(given, nil)
		s.version++
		given.SetUID(types.UID(fmt.Sprintf("uid-%d", s.version)))
		s.store(w.Key, given)
		return given.DeepCopyObject().(Object), nil
	case old == nil:
		return nil, apierrors.NewNotFound(resource, w.Name)
	case old.GetUID() != given.GetUID(), w.Verb != Delete && old.GetResourceVersion() != given.GetResourceVersion():
		return nil, apierrors.NewConflict(resource, w.Name, errors.New("another object or version"))
	}
	next := old.DeepCopyObject().(Object)
	switch w.Verb {
	case Delete:
		s.deleteNow(w.Key)
		return given, nil
	case UpdateStatus:
		setStatus(next, given)
	case Update:
		setStatus(given, old)
		next = given
	case Patch:
		next.SetFinalizers(given.GetFinalizers())
		next.SetAnnotations(given.GetAnnotations())
	}
	s.kept(w.Key, next)
	if o := s.objects[w.Key]; o != nil {
		return o.DeepCopyObject().(Object), nil
	}
	return next, nil
}

// setStatus gives o the status of from, or none.
func setStatus(o, from Object) {
	switch o := o.(type) {
	case *v1beta1.BackendRecord:
		f, _ := from.(*v1beta1.BackendRecord)
		o.Status = statusOf(f, func(f *v1beta1.BackendRecord) v1beta1.BackendRecordStatus { return f.DeepCopy().Status })
	case *v1beta1.LoadBalancer:
		f, _ := from.(*v1beta1.LoadBalancer)
		o.Status = statusOf(f, func(f *v1beta1.LoadBalancer) v1beta1.LoadBalancerStatus { return f.DeepCopy().Status })
	case *v1beta1.BackendGroup:
		f, _ := from.(*v1beta1.BackendGroup)
		o.Status = statusOf(f, func(f *v1beta1.BackendGroup) v1beta1.BackendGroupStatus { return f.Status })
	case *v1beta1.LoadBalancerDriver:
		f, _ := from.(*v1beta1.LoadBalancerDriver)
		o.Status = statusOf(f, func(f *v1beta1.LoadBalancerDriver) v1beta1.LoadBalancerDriverStatus { return f.DeepCopy().Status })
	case *v1.Bind:
		f, _ := from.(*v1.Bind)
		o.Status = statusOf(f, func(f *v1.Bind) v1.BindStatus { return f.DeepCopy().Status })
	}
}

func statusOf[O, S any](from *O, get func(*O) S) (none S) {
	if from == nil {
		return none
	}
	return get(from)
}

// Tell creates an Event.
func (s *server) Tell(_ context.Context, e *corev1.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.events, func(had *corev1.Event) bool { return had.Name == e.Name }) {
		return apierrors.NewAlreadyExists(corev1.Resource("events"), e.Name)
	}
	s.events = append(s.events, e)
	return nil
}

// Count counts an Event further.
func (s *server) Count(_ context.Context, e *corev1.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts++
	for i := range s.events {
		if s.events[i].Name == e.Name {
			s.events[i] = e
		}
	}
	return nil
}

// What follows is the Objects of the watch.

func (s *server) Complete(Kind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.unlisted
}

// elsewhere has the watch show another cluster, or this one again: everything goes, what is there comes, and then it is complete, all of it
// between two looks of the mirror's clock.
func (s *server) elsewhere(other bool) {
	show := func(k Key, o Object) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.watched[k] = o; o == nil {
			delete(s.watched, k)
		}
		s.notify(k)
	}
	list := func(unlisted bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.unlisted = unlisted
	}
	list(true)
	s.mu.Lock()
	s.other = other
	watched, objects := slices.SortedFunc(maps.Keys(s.watched), inOrder), maps.Clone(s.objects)
	s.mu.Unlock()
	for _, k := range watched {
		show(k, nil)
	}
	pass(100 * time.Millisecond)
	if !other {
		for _, k := range slices.SortedFunc(maps.Keys(objects), inOrder) {
			show(k, objects[k].DeepCopyObject().(Object))
		}
	}
	list(false)
}

func (s *server) ours() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.other
}

func shownAs[P Object](s *server, k Key) (none P) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := s.watched[k].(P); ok {
		return o
	}
	return none
}

func (s *server) BackendRecord(namespace, name string) *v1beta1.BackendRecord {
	return shownAs[*v1beta1.BackendRecord](s, Key{Record, namespace, name})
}

func (s *server) LoadBalancer(namespace, name string) *v1beta1.LoadBalancer {
	return shownAs[*v1beta1.LoadBalancer](s, Key{LoadBalancer, namespace, name})
}

func (s *server) BackendGroup(namespace, name string) *v1beta1.BackendGroup {
	return shownAs[*v1beta1.BackendGroup](s, Key{Group, namespace, name})
}

func (s *server) Bind(namespace, name string) *v1.Bind {
	return shownAs[*v1.Bind](s, Key{Bind, namespace, name})
}

func (s *server) Driver(namespace, name string) *v1beta1.LoadBalancerDriver {
	return shownAs[*v1beta1.LoadBalancerDriver](s, Key{Driver, namespace, name})
}

func (s *server) Names(kind Kind) (out []Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.watched {
		if k.Kind == kind {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, inOrder)
	return out
}

// inOrder has equal runs go through keys in equal order.
func inOrder(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func (s *server) Follow(notify func(Key)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify = notify
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.notify = nil
	}
}
