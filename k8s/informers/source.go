// SPDX-License-Identifier: Apache-2.0

// Package informers is the source that reads a live Kubernetes cluster: client-go reflectors list and watch Services,
// EndpointSlices, Nodes, the two config maps of the old system, and pools, peers, advertisements, communities and LBCF's
// objects where their definitions are installed, policies of client-side balancing likewise if that is asked for; Pods where objects can
// be that choose some. It yields a fsm/world.World and keeps it current.
//
// It promises true evidence, and leaves every verdict to the leader's guard (design §5):
//
//   - A list is a consistent read of everything (no resourceVersion, no limit, no stream of initial events): it has
//     one beginning, one version and an end. Client-go's own first list may be served from a stale cache, and its
//     streamed lists can wait without an end, so neither is used.
//   - What a list lacks of what we or the record know is asked for by name before the list counts: an API server answers
//     that from its store, lists from a cache of its own, which may have lost something. A list without what is there is
//     refused as a whole.
//   - Deleted holds what a watch that resumed without a gap saw deleted. What is missing from a list is only absent.
//   - A watch that is resumed is first compared with a consistent read: a server that was set back is listed anew,
//     at its true, older version, instead of being waited for in silence.
//   - Lists count only while the UID of the namespace kube-system stays what it was; another one is another cluster
//     and empties the view.
//   - What cannot be asked (no permission, no server) makes the view incomplete and is one line in its problems; what
//     is known stays. An object that cannot be used keeps its last good form or is named in Unusable.
//
// Start reading at Source, then shelf for what is known of a resource and line for how the server is asked.
package informers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/alike"
	"fairlead.io/fairlead/k8s/client"
	"fairlead.io/fairlead/k8s/convert"
	"fairlead.io/fairlead/k8s/unread"
)

// Name is the World's Source.
const Name = "kubernetes"

// defaultConfigMaps is the namespace in which the old system keeps its config maps.
const defaultConfigMaps = "kube-system"

// Clock is the time that a source lives by.
type Clock = clock.WithTickerAndDelayedExecution

// Options says which cluster to read and how. Fields without "optional" are required.
type Options struct {
	API *client.API
	// ConfigMaps is the namespace of kube-gobgp-cfg and kube-iprule-cfg; optional: kube-system.
	ConfigMaps string
	// Review tells what of their contents has no effect; optional.
	Review convert.Review
	// Namespaces are those from which objects are read that configure the fabric; optional: all. Others are watched as well, so that
	// their authors can be told.
	Namespaces convert.Namespaces
	Clock      Clock // optional: the machine's
	// Services is shown every Service as it comes and goes; optional.
	Services Mirror
	// Show is shown every Node and every policy of client-side balancing as they come, with their managedFields, and nil for one that
	// is gone, in the order in which the source takes them in. It must not block, call the source or change what it is given; optional.
	Show func(kind world.Kind, id world.ID, o any)
	// Unread is shown the objects that are in no namespace which counts for their kind, in the order in which the source takes them in; optional.
	Unread Unread
	// Objects is shown the Services, Nodes and Pods and LBCF's objects; optional.
	Objects Keeper
	// Redirects has policies of client-side balancing read, too; optional.
	Redirects bool
	// Known lists what somebody else, such as the record, knows to have been there of a kind. What a list lacks of it is
	// asked for by name, too: a source that has just started knows nothing itself. It may be called at any time; optional.
	Known func(world.Kind) []Known
	// Dead gives the UID of an object of that name whose deletion somebody else, such as the record, knows of; empty for none. If a list shows it, it
	// is asked for by name, too: UIDs never come back. It may be called at any time; optional.
	Dead func(world.Kind, world.ID) (uid string)
	// Logger is told of every new problem and of its end, once.
	Logger  *slog.Logger
	Metrics prometheus.Registerer // optional
	Timing  Timing
}

// Known is an object that was there.
type Known struct {
	ID      world.ID
	UID     string
	Version uint64 // its resourceVersion then
}

// Mirror sees the Services themselves, with what a World leaves out, in the order in which the source took them in. It
// must not block, call the source or change what it is given.
type Mirror interface {
	Set(*corev1.Service)
	Delete(namespace, name string)
}

// Unread sees the objects that do not count where they are. It must not block, call the source or change what it is given.
type Unread interface {
	Show(unread.Key, unread.Seen)
	Gone(unread.Key)
}

// Keeper keeps of objects what a World leaves out.
type Keeper interface {
	// Keep makes of an object what is worth keeping. It is called before anything is known of the object's place among
	// others, from any goroutine, and may take its time; it must not change what it is given.
	Keep(world.Kind, runtime.Object) any
	// Set and Delete tell, in the order in which the source takes objects in, what Keep made of an object that is there,
	// and which one is not there any more. Listed tells whether everything of a kind that there is was told. They must
	// not block or call the source.
	Set(kind world.Kind, id world.ID, kept any)
	Delete(kind world.Kind, id world.ID)
	Listed(kind world.Kind, whole bool)
}

// Source reads a cluster. Its methods may be called from any goroutine; Run from one.
type Source struct {
	api      *client.API
	clock    Clock
	log      *slog.Logger
	timing   Timing
	metrics  *metrics
	changed  chan struct{}
	identity *identity
	known    func(world.Kind) []Known
	dead     func(world.Kind, world.ID) string
	like     alike.Table

	mu    sync.Mutex // of everything below, and of the state of lines and shelves
	lines []*line
	racks []publisher
	world world.World // without Kinds and ages
	notes bool        // problems or unusable objects changed since world was made
	gone  bool        // likewise deletions
	told  map[world.Problem]bool
}

// New returns a source that has read nothing yet: its World is incomplete until Run has listed every kind. It fails on
// a missing field and on metrics that are registered already.
func New(o Options) (*Source, error) {
	if o.API == nil || o.Logger == nil {
		return nil, errors.New("kubernetes source: options lack API or Logger")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.ConfigMaps == "" {
		o.ConfigMaps = defaultConfigMaps
	}
	s := &Source{
		api: o.API, clock: o.Clock, log: o.Logger, timing: o.Timing.withDefaults(), changed: make(chan struct{}, 1),
		world: world.World{Source: Name, WholeCluster: true}, told: map[world.Problem]bool{},
	}
	s.metrics = newMetrics(s)
	if err := s.metrics.register(o.Metrics); err != nil {
		return nil, err
	}
	s.identity = &identity{source: s}
	if s.known = o.Known; s.known == nil {
		s.known = func(world.Kind) []Known { return nil }
	}
	if s.dead = o.Dead; s.dead == nil {
		s.dead = func(world.Kind, world.ID) string { return "" }
	}
	s.racks = s.makeRacks(&o)
	return s, nil
}

// Run reads the cluster until ctx ends, and then returns nil. Trouble with the API server is in the World's problems,
// not an error: the source goes on and recovers when the server does.
func (s *Source) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for _, l := range s.lines {
		running.Go(func() { l.run(ctx) })
	}
	tick := s.clock.NewTicker(s.timing.Housekeeping)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
			s.keepHouse()
		}
	}
}

// keepHouse ends watches that fell silent, forgets old evidence and tells new problems.
func (s *Source) keepHouse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	for _, l := range s.lines {
		if l.watching && now.Sub(l.heard) > s.timing.Silence {
			t, _ := s.diagnose(stageWatch, l.resource, errSilent)
			l.noteLocked(stageWatch, t)
			l.restartLocked()
		}
		l.store.forgetLocked(now.Add(-s.timing.Remember))
	}
	s.noteLocked() // without the lists: nobody may be asking for those
}

// World gives the newest view. Its lists are shared and must not be changed; see world.World.Clone. Ages are those at
// the moment of the call. It costs a copy of the lists in which something changed since the last call,
// not of their objects.
func (s *Source) World() world.World {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refreshLocked()
	w := s.world
	w.Cluster = s.identity.uid
	now := s.clock.Now()
	w.Kinds, w.Complete, w.Age = s.viewsLocked(now)
	for _, l := range s.lines {
		w.Vouched = l.vouchedLocked(w.Vouched, now)
	}
	slices.SortFunc(w.Vouched, world.Ref.Compare)
	return w
}

// Cluster is the UID of the cluster that the view is of; empty before that is known.
func (s *Source) Cluster() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.identity.uid
}

// Changed holds a token after the World has changed, other than by growing older or by being confirmed unasked.
func (s *Source) Changed() <-chan struct{} { return s.changed }

// Relist asks for a new complete list of kinds, begun after this call. Lists of one kind begin at least
// Timing.Spacing apart; those that one asks for again and again and tell nothing new, further.
func (s *Source) Relist(kinds ...world.Kind) {
	for _, l := range s.lines {
		for _, kind := range kinds {
			if l.kind == kind {
				poke(l.asked)
			}
		}
	}
}

// Begin says that somebody else asks for lists from now on, such as a new leader, to whom the next one tells something in any case:
// that nothing is new.
func (s *Source) Begin() {
	for _, l := range s.lines {
		poke(l.begun)
	}
}

// doubtLocked has all resources but one listed anew, since that one ran back: a server that was set back and has overtaken a version
// since goes on with a watch of it as if nothing had happened.
func (s *Source) doubtLocked(known *line) {
	for _, l := range s.lines {
		if l != known {
			poke(l.asked)
		}
	}
}

// Fresh waits until the World shows a kind by a complete list that began after this call, and asks for one. Errors: that of
// ctx.
func (s *Source) Fresh(ctx context.Context, kind world.Kind) error {
	began := s.clock.Now()
	for _, l := range s.lines {
		if l.kind != kind {
			continue
		}
		if err := l.fresh(ctx, began); err != nil {
			return fmt.Errorf("list %s anew: %w", l.resource, err)
		}
	}
	return nil
}

// poke leaves a token if there is none.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Timing is what tests, simulations and unusual networks change. Zero fields take their default.
type Timing struct {
	// Spacing is the least time between the beginnings of two lists of a resource. Default 1.05 s: a little more than
	// the leader's guard needs between two that confirm an absence.
	Spacing time.Duration
	// ListTimeout bounds a list and every other short request; OpenTimeout the wait for a watch to be opened, which
	// some proxies delay to the first event. Default 60 s and 70 s.
	ListTimeout time.Duration
	OpenTimeout time.Duration
	// Silence is how long a watch may say nothing. An API server sends a bookmark every minute. Default 100 s.
	Silence time.Duration
	// Absent is how often to look whether a definition has been installed that was missing. Default 10 s.
	Absent time.Duration
	// Retry and RetryCap bound the wait after a request that failed; it doubles, and half of it is random. Default
	// 200 ms and 5 s.
	Retry    time.Duration
	RetryCap time.Duration
	// Housekeeping is how often watches are looked after. Default 1 s.
	Housekeeping time.Duration
	// Remember is how long evidence of a deletion is kept. Default 1 h.
	Remember time.Duration
	// Look is how often one of few objects of a resource is asked for by name, to see that it is still there. Default 10 s.
	Look time.Duration
}

func (t Timing) backoff() *wait.Backoff {
	return &wait.Backoff{Duration: t.Retry, Cap: t.RetryCap, Steps: 16, Factor: 2, Jitter: 1}
}

func (t Timing) withDefaults() Timing {
	t.Spacing = cmp.Or(t.Spacing, 1050*time.Millisecond)
	t.ListTimeout = cmp.Or(t.ListTimeout, time.Minute)
	t.OpenTimeout = cmp.Or(t.OpenTimeout, 70*time.Second)
	t.Silence = cmp.Or(t.Silence, 100*time.Second)
	t.Absent = cmp.Or(t.Absent, 10*time.Second)
	t.Retry = cmp.Or(t.Retry, 200*time.Millisecond)
	t.RetryCap = cmp.Or(t.RetryCap, 5*time.Second)
	t.Housekeeping = cmp.Or(t.Housekeeping, time.Second)
	t.Remember = cmp.Or(t.Remember, time.Hour)
	t.Look = cmp.Or(t.Look, 10*time.Second)
	return t
}
