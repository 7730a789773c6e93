// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"fairlead.io/fairlead/fsm/world"
)

// asker lists and watches one resource, and gets single objects of it.
type asker struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	get   func(context.Context, world.ID) (metav1.Object, error)
}

// ofKind asks with one of the typed clients.
func ofKind[L runtime.Object](c interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}) asker {
	return asker{watch: c.Watch, list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		out, err := c.List(ctx, o)
		if err != nil {
			return nil, err
		}
		return out, nil
	}}
}

func ofResource(c dynamic.Interface, r schema.GroupVersionResource) asker {
	return ofKind[runtime.Object](anyList{c.Resource(r)}).byName(c, r)
}

// byName has single objects be got with a dynamic client.
func (a asker) byName(c dynamic.Interface, r schema.GroupVersionResource) asker {
	a.get = func(ctx context.Context, id world.ID) (metav1.Object, error) {
		var in dynamic.ResourceInterface = c.Resource(r)
		if id.Namespace != "" {
			in = c.Resource(r).Namespace(id.Namespace)
		}
		o, err := in.Get(ctx, id.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return o, nil
	}
	return a
}

// anyList gives lists of a dynamic client as those of any other.
type anyList struct{ dynamic.ResourceInterface }

func (a anyList) List(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	out, err := a.ResourceInterface.List(ctx, o)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// named narrows an asker to the object of one name.
func (a asker) named(name string) asker {
	selector := "metadata.name=" + name
	return asker{
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return a.list(ctx, o)
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return a.watch(ctx, o)
		},
	}
}

// IsWatchListSemanticsUnSupported has the reflector list by listing: a stream of initial events has no bound in time.
func (l *line) IsWatchListSemanticsUnSupported() bool { return true }

// List is ListWithContext without one.
func (l *line) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

// Watch is WatchWithContext without one.
func (l *line) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o)
}

// ListWithContext lists everything for the reflector, whatever version and page it asks for.
func (l *line) ListWithContext(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	l.source.mu.Lock()
	l.began = l.startLocked()
	l.source.mu.Unlock()
	return l.listObject(ctx)
}

// list lists everything, as objects.
func (l *line) list(ctx context.Context) ([]any, uint64, error) {
	object, err := l.listObject(ctx)
	if err != nil {
		return nil, 0, err
	}
	m, err := meta.ListAccessor(object)
	if err != nil {
		return nil, 0, err
	}
	version, err := parseVersion(m.GetResourceVersion())
	if err != nil {
		return nil, 0, err
	}
	objects, err := meta.ExtractListWithAlloc(object)
	if err != nil {
		return nil, 0, err
	}
	items := make([]any, len(objects))
	for i := range objects {
		items[i] = objects[i]
	}
	return items, version, nil
}

// listObject makes one consistent and complete list, of the cluster that we know. An error is noted.
func (l *line) listObject(ctx context.Context) (runtime.Object, error) {
	object, err := l.askFor(ctx, metav1.ListOptions{})
	if err == nil {
		err = wholeList(object)
	}
	if err != nil {
		l.note(stageList, err)
		return nil, err
	}
	if err := l.source.identity.confirm(ctx); err != nil {
		return nil, err
	}
	if err := l.borneOut(ctx, object); err != nil {
		return nil, err
	}
	if err := l.tried(ctx, object); err != nil {
		return nil, err
	}
	l.fine(stageList, stageGet)
	return object, nil
}

// askFor sends a list request within its bound of time.
func (l *line) askFor(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	l.source.mu.Lock()
	ask := l.ask
	l.source.mu.Unlock()
	seconds := int64(l.source.timing.ListTimeout / time.Second)
	o.TimeoutSeconds = &seconds
	var object runtime.Object
	err := l.source.within(ctx, l.source.timing.ListTimeout, func(ctx context.Context) (err error) {
		object, err = ask.list(ctx, o)
		return err
	})
	return object, err
}

// wholeList refuses what is no list of everything.
func wholeList(object runtime.Object) error {
	m, err := meta.ListAccessor(object)
	if err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	if m.GetContinue() != "" {
		return fmt.Errorf("%w: part of a list though all was asked for", errMalformed)
	}
	_, err = parseVersion(m.GetResourceVersion())
	return err
}

// WatchWithContext watches for the reflector. Once the watch is open, the server must have what we have seen of it:
// one that was set back would wait for the version to come, and say nothing of what it has until then.
func (l *line) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	version, err := parseVersion(o.ResourceVersion)
	if err != nil {
		return nil, err
	}
	w, err := l.open(ctx, o)
	if err == nil {
		if err = l.reaches(ctx, version); err != nil {
			w.Stop()
		}
	}
	if err != nil {
		l.note(stageWatch, err)
		return nil, err
	}
	s := l.source
	s.mu.Lock()
	l.heard, l.watching = s.clock.Now(), true
	s.mu.Unlock()
	l.fine(stageWatch)
	return w, nil
}

// reaches makes sure, with a consistent read, that the server is at a version, and that it is the one that we know.
func (l *line) reaches(ctx context.Context, version uint64) error {
	object, err := l.askFor(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	m, err := meta.ListAccessor(object)
	if err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	at, err := parseVersion(m.GetResourceVersion())
	if err != nil {
		return err
	}
	if at < version {
		return apierrors.NewResourceExpired(fmt.Sprintf("the server is at version %d, the watch at %d", at, version))
	}
	return l.source.identity.confirm(ctx)
}

// open opens a watch. The bound of time is for its opening only.
func (l *line) open(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	s := l.source
	s.mu.Lock()
	ask := l.ask
	s.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	timer := s.clock.AfterFunc(s.timing.OpenTimeout, func() { cancel(errTimeout) })
	inner, err := ask.watch(ctx, o)
	timer.Stop()
	var first *watch.Event
	if err == nil {
		first, err = opened(inner)
	}
	if cause := context.Cause(ctx); cause != nil {
		if err == nil {
			inner.Stop()
		}
		err = cause
	}
	if err != nil {
		cancel(nil)
		return nil, err
	}
	return newTap(ctx, l, inner, first, func() { cancel(nil) }), nil
}

// opened tells a watch from the empty one that client-go gives where the server closed the connection without an
// answer. It may have to take an event for that.
func opened(w watch.Interface) (first *watch.Event, err error) {
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			return nil, errClosed
		}
		return &e, nil
	default:
		return nil, nil
	}
}

// locate finds where an optional resource is. If it is nowhere, or nobody wants it, its kind is complete and empty.
func (l *line) locate(ctx context.Context) (present bool, err error) {
	if !l.isWanted() {
		l.fine(stageLocate, stageList, stageWatch)
		l.missing()
		return false, nil
	}
	sought := l.wantedBy
	for _, v := range l.versions {
		sought = append(sought, v.WithResource(l.resource))
	}
	for _, r := range sought {
		there, err := l.source.serves(ctx, r)
		if err != nil {
			l.note(stageLocate, err)
			return false, err
		}
		if there {
			l.located(r)
			l.fine(stageLocate)
			return true, nil
		}
	}
	if sought == nil {
		return true, nil
	}
	if err := l.source.identity.confirm(ctx); err != nil {
		return false, err
	}
	l.fine(stageLocate, stageList, stageWatch)
	l.missing()
	return false, nil
}

// isWanted tells whether anybody wants the resource, as far as the World says.
func (l *line) isWanted() bool {
	s := l.source
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.wanted == nil {
		return true
	}
	wanted := l.wanted(&s.world)
	if wanted {
		l.absent = false
	}
	return wanted
}

// wakeLocked has resources looked for that nobody wanted and that the World asks for now.
func (s *Source) wakeLocked() {
	for _, l := range s.lines {
		if l.absent && l.wanted != nil && l.wanted(&s.world) {
			poke(l.asked)
		}
	}
}

// serves tells whether the server has a resource.
func (s *Source) serves(ctx context.Context, r schema.GroupVersionResource) (bool, error) {
	var known *metav1.APIResourceList
	err := s.within(ctx, s.timing.ListTimeout, func(ctx context.Context) (err error) {
		known, err = s.api.Resources(ctx, r.GroupVersion())
		return err
	})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(known.APIResources, func(one metav1.APIResource) bool { return one.Name == r.Resource }), nil
}

// located notes where the resource is, or what it is wanted by. Lines that are wanted because of it look again at once.
func (l *line) located(at schema.GroupVersionResource) {
	s := l.source
	s.mu.Lock()
	defer s.mu.Unlock()
	l.absent = false
	if l.versions == nil {
		return
	}
	l.ask = ofResource(s.api.Dynamic, at)
	for _, other := range s.lines {
		if other.absent && slices.Contains(other.wantedBy, at) {
			poke(other.asked)
		}
	}
}

// missing notes that the definition of the resource is not installed.
func (l *line) missing() {
	s := l.source
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, _ := l.store.countLocked(); known > 0 || !l.listed {
		s.poke()
	}
	l.absent = true
	l.store.clearLocked(false)
	l.listedLocked(s.clock.Now(), 0)
	l.version, l.floor = 0, 0
}

// within calls f with a context that ends after d on the source's clock.
func (s *Source) within(ctx context.Context, d time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := s.clock.AfterFunc(d, func() { cancel(errTimeout) })
	defer timer.Stop()
	err := f(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errTimeout) {
		return errTimeout
	}
	return err
}

var (
	errTimeout = errors.New("no answer in time")
	errClosed  = errors.New("the connection was closed without an answer")
	errSilent  = errors.New("the watch fell silent")
)
