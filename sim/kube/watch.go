// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"

	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
)

// Times of watches, as those of a real server with its defaults.
const (
	bookmarkEvery = time.Minute
	// watchLag is how long a change takes through etcd's watch and the server's cache.
	watchLag = time.Millisecond
	// leastWatch is how long a watch lasts that asks for no time; up to twice that.
	leastWatch = 30 * time.Minute
)

// watcher is an open watch.
type watcher struct {
	*call
	selection
	version   uint64 // what it has seen: events follow on it
	bookmarks bool
	trouble   watchTrouble
	due       []pending
	timers    map[string]*engine.Timer
	over      bool
}

// pending is an event on its way to a watcher.
type pending struct {
	at   time.Duration
	send func() []byte
	upto uint64
	of   *change // nil for bookmarks
	kind watch.EventType
}

// watch opens a watch.
func (c *call) watch() *failure {
	sel, f := c.selection()
	if f != nil {
		return f
	}
	if c.key.name != "" {
		return badRequest("a watch of one object by its name in the path is not modelled: use a field selector")
	}
	text := c.Query.Get("resourceVersion")
	from, err := strconv.ParseUint(orZero(text), 10, 64)
	if err != nil {
		return unhandled("resourceVersion: Invalid value: %q: %v", text, err)
	}
	seconds, err := strconv.Atoi(orZero(c.Query.Get("timeoutSeconds")))
	if err != nil || seconds < 0 {
		return badRequest("timeoutSeconds %q is no number", c.Query.Get("timeoutSeconds"))
	}
	w := &watcher{call: c, selection: sel, version: from, bookmarks: c.Query.Get("allowWatchBookmarks") == "true", timers: map[string]*engine.Timer{}}
	initial := c.Query.Get("sendInitialEvents") == "true"
	if f := c.initialEvents(initial); f != nil {
		return f
	}
	if from != 0 && from < c.store.compacted && !initial {
		return w.tooOld(from)
	}
	c.Begin(http.StatusOK, map[string]string{"Content-Type": c.encoding.streamType()})
	c.server.watchers = append(c.server.watchers, w)
	c.OnClose(w.close)
	c.server.troubled(w)
	if from == 0 || initial {
		w.begin(initial)
	} else {
		for _, past := range c.store.since(from) {
			w.hear(past)
		}
	}
	life := time.Duration(seconds) * time.Second
	if life == 0 {
		life = leastWatch + time.Duration(c.server.random("watch").Int64N(int64(leastWatch)))
	}
	w.timers["life"] = c.server.w.After(life, w.end)
	if w.bookmarks {
		w.bookmarkLater()
	}
	return nil
}

func (c *call) initialEvents(wanted bool) *failure {
	match := c.Query.Get("resourceVersionMatch")
	switch {
	case wanted && match != "NotOlderThan":
		return invalid(listOptions, "", field.ErrorList{field.Forbidden(field.NewPath("resourceVersionMatch"), "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")})
	case !wanted && match != "":
		return invalid(listOptions, "", field.ErrorList{field.Forbidden(field.NewPath("resourceVersionMatch"), "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")})
	}
	return nil
}

// tooOld refuses a version that was compacted: most servers do so in the stream, some by the status of the answer.
func (w *watcher) tooOld(from uint64) *failure {
	f := expired("too old resource version: %d (%d)", from, w.store.compacted)
	w.server.viewed(w.call, "gone")
	if w.server.random("gone").IntN(5) == 0 {
		return f
	}
	w.Begin(http.StatusOK, map[string]string{"Content-Type": w.encoding.streamType()})
	w.fail(f)
	return nil
}

// fail ends a watch with an event that says why.
func (w *watcher) fail(f *failure) {
	w.Write(w.encoding.frame(string(watch.Error), f.object()))
	w.end()
}

// begin shows everything that there is.
func (w *watcher) begin(mark bool) {
	w.version = w.store.version
	for _, o := range w.store.list(w.resource) {
		if w.matches(o) {
			w.push(pending{upto: w.version, send: func() []byte { return w.encoding.frame(string(watch.Added), w.resource.dress(o)) }})
		}
	}
	if mark && w.bookmarks {
		w.push(w.bookmark(metav1.InitialEventsAnnotationKey))
	}
}

// hear takes in a change of an object.
func (w *watcher) hear(c *change) {
	if c.resource != w.resource || c.version <= w.version {
		return
	}
	kind, o := w.sees(c)
	if o == nil {
		return
	}
	if w.trouble.merges() {
		kind = w.merge(c, kind)
	}
	w.version = c.version
	p := pending{upto: c.version, of: c, kind: kind, send: func() []byte { return c.frame(kind, o, w.encoding) }}
	w.push(p)
	if w.trouble.repeats() {
		w.push(p)
	}
}

// merge leaves out the event before a change of the same object, if it has not gone out, and gives the kind of the
// event that stands for both. Deletions always show.
func (w *watcher) merge(c *change, kind watch.EventType) watch.EventType {
	for i, p := range w.due {
		if p.of != nil && p.of.key == c.key && p.kind != watch.Deleted && kind == watch.Modified {
			w.due = slices.Delete(w.due, i, i+1)
			return p.kind
		}
	}
	return kind
}

// sees tells what a change is to the watcher: objects come and go with what the selection says of them.
func (w *watcher) sees(c *change) (watch.EventType, Object) {
	before, after := w.matches(c.before), w.matches(c.after)
	switch {
	case before && c.after == nil:
		return watch.Deleted, c.gone
	case before && !after:
		o := c.before.DeepCopyObject().(Object)
		o.SetResourceVersion(strconv.FormatUint(c.version, 10))
		return watch.Deleted, o
	case before:
		return watch.Modified, c.after
	case after:
		return watch.Added, c.after
	}
	return "", nil
}

// frame encodes a change once for all watchers that see it alike.
func (c *change) frame(kind watch.EventType, o Object, e *encoding) []byte {
	name := string(kind) + e.media
	if b, ok := c.frames[name]; ok {
		return b
	}
	if c.frames == nil {
		c.frames = map[string][]byte{}
	}
	c.frames[name] = e.frame(string(kind), c.resource.dress(o))
	return c.frames[name]
}

func (w *watcher) bookmark(annotation string) pending {
	version := w.trouble.limit(w.store.version)
	return pending{upto: version, send: func() []byte {
		o := w.resource.blank()
		if u, ok := o.(*unstructured.Unstructured); ok {
			u.Object["metadata"] = map[string]any{}
		}
		o.SetResourceVersion(strconv.FormatUint(version, 10))
		if annotation != "" {
			o.SetAnnotations(map[string]string{annotation: "true"})
		}
		return w.encoding.frame(string(watch.Bookmark), w.resource.dress(o))
	}}
}

func (w *watcher) bookmarkLater() {
	w.timers["bookmark"] = w.server.w.After(bookmarkEvery, func() {
		if w.trouble.limit(w.store.version) >= w.version {
			w.push(w.bookmark(""))
		}
		w.bookmarkLater()
	})
}

// push queues an event. Events of a watch never overtake one another: one that is late holds up those after it.
func (w *watcher) push(p pending) {
	p.at = w.server.w.Now() + watchLag + w.trouble.delay()
	w.due = append(w.due, p)
	if len(w.due) == 1 {
		w.flushAt(p.at)
	}
}

func (w *watcher) flushAt(at time.Duration) {
	w.timers["flush"].Stop()
	w.timers["flush"] = w.server.w.At(at, w.flush)
}

// hurry has nothing be later than it would be without trouble.
func (w *watcher) hurry() {
	soon := w.server.w.Now() + watchLag
	for i := range w.due {
		w.due[i].at = min(w.due[i].at, soon)
	}
	w.flushAt(w.due[0].at)
}

// flush sends what is due, as far as the view of the server goes.
func (w *watcher) flush() {
	var out []byte
	for len(w.due) > 0 && w.due[0].at <= w.server.w.Now() && w.trouble.limit(w.due[0].upto) == w.due[0].upto {
		out = append(out, w.due[0].send()...)
		w.due = w.due[1:]
	}
	if len(out) > 0 && !w.over && !w.trouble.silent {
		w.Write(out)
	}
	if len(w.due) > 0 && w.due[0].at > w.server.w.Now() {
		w.flushAt(w.due[0].at)
	}
}

// end ends a watch in order, with what is on its way, as a server does whose time for it is up.
func (w *watcher) end() {
	if w.over {
		return
	}
	if w.trouble.silent {
		w.breakOff()
		return
	}
	w.close()
	w.End()
}

// breakOff ends a watch as a broken connection does.
func (w *watcher) breakOff() {
	if !w.over {
		w.close()
		w.Break()
	}
}

func (w *watcher) close() {
	w.over = true
	for _, name := range []string{"life", "bookmark", "flush"} {
		w.timers[name].Stop()
	}
	w.server.watchers = slices.DeleteFunc(w.server.watchers, func(o *watcher) bool { return o == w })
}

// viewed publishes that an answer is not the plain truth.
func (s *Server) viewed(c *call, how string) {
	kind := ""
	if c.resource != nil {
		kind = c.resource.kind
	}
	s.w.Publish(event.Viewed{Process: c.From, Kind: kind, How: how})
}
