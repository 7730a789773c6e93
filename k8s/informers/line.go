// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"fairlead.io/fairlead/fsm/world"
)

// line leads to one resource of the API server. It is the ListerWatcher of a reflector, whose store is the shelf.
type line struct {
	source *Source
	kind   world.Kind
	// resource is its plural name, and what it is called in problems.
	resource string
	// versions are where the resource may be found, best first; nil for one that every cluster has.
	versions []schema.GroupVersion
	// wantedBy are resources without any of which nobody wants this one; nil for one that is always wanted.
	wantedBy []schema.GroupVersionResource
	// wanted tells by what is there otherwise whether anybody wants the resource; nil for one that is always wanted.
	wanted func(*world.World) bool
	// only is the one object that it lists; the zero ID for all.
	only   world.ID
	keeper Keeper // who is told whether everything is listed; nil for nobody
	store  store
	asked  chan struct{} // holds a token while a list is asked for
	begun  chan struct{} // holds a token after somebody began to ask

	// Guarded by the source's mutex.

	ask      asker
	troubles map[stage]trouble
	listed   bool
	lists    uint64
	version  uint64 // newest known
	floor    uint64 // version of the newest list: events up to it are known
	// together is the version of the last of the events that the watch said at once, and 0 when all are taken in.
	together uint64
	// began is the start of the reflector's newest list, listBegan and listEnded are those of the newest list taken in.
	began     start
	listBegan time.Time
	listEnded time.Time
	heard     time.Time
	watching  bool
	absent    bool // it was looked for and is not there, or not wanted
	// buried is what others know, and is not there when it is asked for: once is enough.
	buried map[life]bool
	doubt
	// deleted are the deletions that were seen since a list began beside the watch; nil while none is under way.
	deleted map[world.ID]uint64
	restart context.CancelFunc // of the reflector that runs, nil if none does
}

// start is how a list began.
type start struct {
	at      time.Time
	known   uint64 // the version that was known: a consistent list is no older
	cluster int    // counts the clusters that were seen
}

// store is a shelf of any kind.
type store interface {
	cache.ReflectorStore
	take(began start, items []any, version uint64) (news, ranBack bool)
	clearLocked(cluster bool)
	forgetLocked(before time.Time)
	countLocked() (all, unused int)
	settleLocked()
	lacking(listed map[world.ID]bool, version uint64) []life
	all() []life
	shows(life) bool
	sawGone(life) bool
}

func (s *Source) newLine(kind world.Kind, resource string) *line {
	l := &line{source: s, kind: kind, resource: resource, asked: make(chan struct{}, 1), begun: make(chan struct{}, 1), troubles: map[stage]trouble{}}
	s.lines = append(s.lines, l)
	return l
}

// run keeps a reflector going until ctx ends.
func (l *line) run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.Logger{}) // the reflector's words are ours to choose
	t := l.source.timing
	backoff := t.backoff()
	for ctx.Err() == nil {
		switch present, err := l.locate(ctx); {
		case errors.Is(err, errOtherCluster): // it answers, and is to be asked anew
			backoff = t.backoff()
			l.source.sleep(ctx, t.Retry, nil)
		case err != nil:
			l.source.sleep(ctx, backoff.Step(), nil)
		case present:
			backoff = t.backoff()
			l.reflect(ctx)
			l.source.sleep(ctx, t.Retry, nil) // it was restarted for a reason that may hold on
		default:
			l.source.sleep(ctx, t.Spacing, nil)
			l.source.sleep(ctx, t.Absent-t.Spacing, l.asked)
		}
	}
}

// sleep waits for d, for a token or for the end of ctx. It tells whether it was the token.
func (s *Source) sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) (woken bool) {
	if d <= 0 {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-wake:
		return true
	case <-s.clock.After(d):
		return false
	}
}

// reflect runs a reflector until ctx ends or the line is restarted.
func (l *line) reflect(ctx context.Context) {
	s := l.source
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	l.restart = cancel
	s.mu.Unlock()
	var relisting sync.WaitGroup
	defer func() {
		cancel()
		relisting.Wait()
	}()
	relisting.Go(func() { l.relistOnDemand(ctx) })
	relisting.Go(func() { l.lookAfter(ctx) })
	cache.NewReflectorWithOptions(l, nil, l.store, cache.ReflectorOptions{
		Name: l.resource, TypeDescription: l.resource, Clock: s.clock,
		Backoff: s.timing.backoff(),
	}).RunWithContext(ctx)
	s.mu.Lock()
	l.restart, l.watching = nil, false
	s.mu.Unlock()
}

// restartLocked has the resource listed and watched anew.
func (l *line) restartLocked() {
	if l.restart != nil {
		l.restart()
	}
	l.watching = false
}

// event notes that the watch said something.
func (l *line) event(name string, version uint64) {
	l.heard = l.source.clock.Now()
	l.version = max(l.version, version)
	l.source.metrics.events.WithLabelValues(string(l.kind), name).Inc()
}

// listedLocked notes that a complete list has been taken in.
func (l *line) listedLocked(began time.Time, version uint64) {
	l.listed = true
	l.lists++
	l.listBegan, l.listEnded = began, l.source.clock.Now()
	l.heard = l.listEnded
	l.version, l.floor = max(l.version, version), version
	if l.keeper != nil {
		l.keeper.Listed(l.kind, true)
	}
	l.source.metrics.lists.WithLabelValues(string(l.kind)).Inc()
}

// misunderstood notes that the server sent what makes no sense, and starts anew.
func (l *line) misunderstood(err error) error {
	l.note(stageWatch, fmt.Errorf("%w: %w", errMalformed, err))
	l.source.mu.Lock()
	defer l.source.mu.Unlock()
	l.restartLocked()
	return err
}

// relistOnDemand lists beside the running watch whenever that is asked for, until ctx ends.
func (l *line) relistOnDemand(ctx context.Context) {
	s := l.source
	idle := 0 // lists in a row that told nothing new
	backoff := s.timing.backoff()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.asked:
		}
		s.mu.Lock()
		listed, began := l.listed, l.listBegan
		s.mu.Unlock()
		if !listed {
			continue // the reflector is about to list anyway
		}
		if s.clock.Now().Sub(last) > idleReset {
			idle = 0
		}
		for s.sleep(ctx, s.timing.Spacing<<min(idle, maxIdle)-s.clock.Now().Sub(began), l.begun) {
			idle = 0 // what was told to others is nothing to who asks now
		}
		last = s.clock.Now()
		switch news, err := l.relist(ctx); {
		case err != nil:
			// Whoever asked still waits, and what is noted as failing must be seen to work again.
			s.sleep(ctx, backoff.Step(), nil)
			poke(l.asked)
			continue
		case news:
			idle = 0
		default:
			idle++
		}
		backoff = s.timing.backoff()
	}
}

// Lists that are asked for again and again and tell nothing new are made rarer, up to 2^maxIdle times the usual
// spacing, until none was asked for during idleReset or somebody else asks (Source.Begin).
const (
	maxIdle   = 3
	idleReset = time.Minute
)

// freshAgain is how often to look whether a list has come.
const freshAgain = 20 * time.Millisecond

// fresh waits for a list that began after a moment. It asks anew whenever an older one has come: the reflector's first takes the place of
// what is asked for meanwhile.
func (l *line) fresh(ctx context.Context, after time.Time) error {
	s := l.source
	for asked := int64(-1); ; s.sleep(ctx, freshAgain, nil) {
		s.mu.Lock()
		lists, done := int64(l.lists), l.lists > 0 && l.listed && !l.listBegan.Before(after)
		s.mu.Unlock()
		switch {
		case done:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case lists != asked:
			poke(l.asked)
			asked = lists
		}
	}
}

// relist lists once beside the watch.
func (l *line) relist(ctx context.Context) (news bool, err error) {
	s := l.source
	s.mu.Lock()
	began := l.startLocked()
	l.deleted = map[world.ID]uint64{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		l.deleted = nil
		s.mu.Unlock()
	}()
	items, version, err := l.list(ctx)
	if err != nil {
		return false, err
	}
	news, ranBack := l.store.take(began, items, version)
	if ranBack {
		s.mu.Lock()
		l.restartLocked()
		s.mu.Unlock()
		return true, nil
	}
	s.poke()
	return news, nil
}

func (l *line) startLocked() start {
	return start{l.source.clock.Now(), l.version, l.source.identity.number}
}

// parseVersion reads a resourceVersion. Those of one resource are numbers that can be compared (KEP-5504).
func parseVersion(text string) (uint64, error) {
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil || v == 0 {
		return 0, fmt.Errorf("%w: resourceVersion %q", errMalformed, text)
	}
	return v, nil
}

var errMalformed = errors.New("makes no sense")
