// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault is something that may be wrong with the server.
type Fault string

// Faults. Each says what it does while it lasts, and at its end.
const (
	// Away: requests are not answered (Scope.How "silent"), their connections are broken ("refused") or a load balancer
	// answers 503 in the server's place ("unavailable"). Open watches fall silent or break. At the end whatever waits for
	// an answer is broken off.
	Away Fault = "away"
	// Slow: answers take Scope.Delay more, on average.
	Slow Fault = "slow"
	// ErrorOn: requests fail with Scope.Status. Every second write that fails has taken effect all the same.
	ErrorOn Fault = "error"
	// WatchDelay: events are late by Scope.Delay on average, and reads from the cache (resourceVersion=0) lag as much.
	WatchDelay Fault = "watch-delay"
	// WatchDrop: watches stay open and say nothing more. They break at the end.
	WatchDrop Fault = "watch-drop"
	// WatchBreak: watches break now, and new ones after Scope.Delay on average.
	WatchBreak Fault = "watch-break"
	// Duplicate: every second event of a watch comes twice.
	Duplicate Fault = "duplicate"
	// Coalesce: events are held back for Scope.Delay on average, and of several changes of an object meanwhile only the
	// last one shows.
	Coalesce Fault = "coalesce"
	// Compact: older versions are gone, now and every Scope.Delay, and watches break.
	Compact Fault = "compact"
	// StaleLists: a server answers that has heard nothing of etcd since Scope.Delay before the beginning. What it says is
	// consistent. At the end it catches up.
	StaleLists Fault = "stale-lists"
	// EmptyLists: a server answers whose caches are empty: lists are, at a valid version. At the end another one takes
	// over, which resumes no watch from before.
	EmptyLists Fault = "empty-lists"
	// PartialLists: likewise, but about half of the objects are there. With Scope.How "everywhere" what lists lack is not
	// found by name either, in both: a server that has lost it.
	PartialLists Fault = "partial-lists"
	// Rewind: etcd is restored from a backup that is Scope.Delay old, at once: state and version go back, and on from there.
	Rewind Fault = "rewind"
	// OtherCluster: the address leads to the API server of another cluster, with all that a machine asks: its connection
	// carries every kind, and ends at one server. Scope.Kinds and Scope.Share do not count.
	OtherCluster Fault = "other-cluster"
)

// Faults lists all of them.
func Faults() []Fault {
	return []Fault{Away, Slow, ErrorOn, WatchDelay, WatchDrop, WatchBreak, Duplicate, Coalesce, Compact, StaleLists, EmptyLists,
		PartialLists, Rewind, OtherCluster}
}

// Scope is whom a fault concerns, and how much. Fields are optional where a fault does not need them.
type Scope struct {
	Kinds  []string      // of objects, such as "Service"; all if empty
	From   []string      // machines that ask; all if empty
	Share  float64       // of requests or watches, drawn one by one; all if 0
	Delay  time.Duration // default 2 s
	Status int           // of ErrorOn; default 500
	How    string        // of Away, default "silent"; of EmptyLists and PartialLists, default in lists alone
}

// fault is one that lasts.
type fault struct {
	Fault
	Scope
	random  *rand.Rand
	version uint64       // of StaleLists
	hidden  map[key]bool // of PartialLists
	hung    []*call      // of Away
	over    bool
}

// Begin begins a fault and gives what ends it. Faults may overlap, also those of one kind.
func (s *Server) Begin(f Fault, scope Scope) (end func()) {
	if scope.Delay == 0 {
		scope.Delay = 2 * time.Second
	}
	if scope.Status == 0 {
		scope.Status = http.StatusInternalServerError
	}
	if f == OtherCluster {
		scope.Kinds, scope.Share = nil, 0
	}
	x := &fault{Fault: f, Scope: scope, random: s.random(string(f)), hidden: map[key]bool{}}
	s.faults = append(s.faults, x)
	s.begun(x)
	return func() {
		if x.over {
			return
		}
		x.over = true
		s.faults = slices.DeleteFunc(s.faults, func(o *fault) bool { return o == x })
		s.ended(x)
	}
}

// begun does what a fault does at once.
func (s *Server) begun(f *fault) {
	open := func(w *watcher) bool { return f.concerns(w.call) }
	switch f.Fault {
	case Away, WatchDrop, WatchBreak, WatchDelay, Duplicate, Coalesce:
		for _, w := range slices.Clone(s.watchers) {
			s.trouble(f, w, true)
		}
	case Compact:
		s.compactEvery(f)
	case StaleLists:
		f.version = s.store.versionAt(s.w.Now() - f.Delay)
		s.endWatches(open, (*watcher).breakOff)
	case EmptyLists, PartialLists:
		s.replaced(open)
	case Rewind:
		// No backup is older than what the cluster began with: kubelets do not register again, and without nodes it is none.
		s.rewind(s.store.versionAt(max(s.w.Now()-f.Delay, 0)))
	case OtherCluster:
		if s.other == nil {
			s.other = s.elsewhere()
		}
		s.endWatches(open, (*watcher).breakOff)
	}
}

// ended puts right what only the end of a fault can.
func (s *Server) ended(f *fault) {
	switch f.Fault {
	case EmptyLists, PartialLists:
		s.replaced(func(w *watcher) bool { return f.reaches(w.call) })
	case Slow:
		s.quick()
	case OtherCluster:
		s.endWatches(func(w *watcher) bool { return w.store == s.other }, (*watcher).breakOff)
	}
	for _, w := range slices.Clone(s.watchers) {
		w.trouble.over(w, f)
	}
	for _, c := range f.hung { // whoever comes back knows nothing of them
		c.Break()
	}
}

// replaced has another server take over the connections. It has seen nothing of before.
func (s *Server) replaced(of func(*watcher) bool) {
	s.store.pass(3)
	s.store.compact()
	s.endWatches(of, (*watcher).breakOff)
}

// compactEvery compacts, again and again. Watches that lag behind hear of it in their stream.
func (s *Server) compactEvery(f *fault) {
	if f.over {
		return
	}
	s.store.pass(1)
	s.store.compact()
	s.endWatches(func(w *watcher) bool { return f.concerns(w.call) }, func(w *watcher) {
		if len(w.due) > 0 {
			w.due = nil
			s.viewed(w.call, "gone")
			w.fail(expired("The resourceVersion for the provided watch is too old."))
			return
		}
		w.breakOff()
	})
	s.w.After(f.Delay, func() { s.compactEvery(f) })
}

// rewind restores a backup of etcd. The servers before it start anew.
func (s *Server) rewind(version uint64) {
	s.endWatches(func(w *watcher) bool { return w.store == s.store }, (*watcher).breakOff)
	for _, c := range s.store.rewind(version) {
		if c.before == c.after {
			continue
		}
		c.by, c.verb = "etcd", "update"
		switch {
		case c.before == nil:
			c.verb = "create"
		case c.after == nil:
			c.verb, c.gone = "delete", c.before
		}
		s.committed(c)
	}
}

// elsewhere makes the other cluster: some names are those of this one, and nothing else is.
func (s *Server) elsewhere() *store {
	random := s.random("elsewhere")
	c := newStore(s.w, s.options.Epoch, "kube/elsewhere", s.store.version/2+random.Uint64N(s.store.version))
	c.committed = func(x *change) { s.tell(c, x) }
	s.found(c)
	w := writer{by: "elsewhere", manager: "elsewhere", verb: "create"}
	for _, o := range s.List("Service") {
		if random.IntN(2) == 0 {
			continue
		}
		copied := o.DeepCopyObject().(*corev1.Service)
		copied.ObjectMeta = metav1.ObjectMeta{Namespace: copied.Namespace, Name: copied.Name, Labels: copied.Labels, Annotations: copied.Annotations}
		copied.Status = corev1.ServiceStatus{}
		if c.get(s.namespaces, key{"", copied.Namespace}) == nil {
			copied.Namespace = metav1.NamespaceDefault
		}
		_, _ = s.create(c, s.services, copied, w) // a name that is there already is as good
	}
	for _, name := range []string{"elsewhere-1", "elsewhere-2"} {
		_, _ = s.create(c, s.byKind("Node"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, w)
	}
	return c
}
