// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// tap passes the events of a watch on, and notes errors among them, which the reflector keeps to itself.
type tap struct {
	ctx   context.Context // of the request
	line  *line
	inner watch.Interface
	out   chan watch.Event
	done  chan struct{}
	stop  func()
}

// newTap has a tap pass on what inner says, of which first was taken already.
func newTap(ctx context.Context, l *line, inner watch.Interface, first *watch.Event, cancel func()) *tap {
	t := makeTap(ctx, l, inner, cancel)
	go t.run(first)
	return t
}

func makeTap(ctx context.Context, l *line, inner watch.Interface, cancel func()) *tap {
	t := &tap{ctx: ctx, line: l, inner: inner, out: make(chan watch.Event), done: make(chan struct{})}
	t.stop = sync.OnceFunc(func() {
		close(t.done)
		inner.Stop()
		cancel()
		l.source.mu.Lock()
		defer l.source.mu.Unlock()
		l.watching = false
		l.store.settleLocked() // the next watch begins after the last event that was passed on
	})
	return t
}

// ResultChan gives the events.
func (t *tap) ResultChan() <-chan watch.Event { return t.out }

// Stop ends the watch.
func (t *tap) Stop() { t.stop() }

func (t *tap) run(first *watch.Event) {
	defer close(t.out)
	late, open := t.catchUp(first)
	for t.passAll(late) && open {
		var e watch.Event
		select {
		case <-t.done:
			return
		case e, open = <-t.inner.ResultChan():
		}
		switch {
		case !open:
			return
		case t.line.inBursts():
			late, open = t.catchUp(&e)
		default:
			late = []watch.Event{e}
		}
	}
}

// passAll passes events on that were said together. It tells whether to go on.
func (t *tap) passAll(events []watch.Event) bool {
	if len(events) > 1 && !t.announce(lastVersion(events)) {
		return false
	}
	for _, e := range events {
		if !t.pass(e) {
			return false
		}
	}
	return true
}

// announce says what the last version of events is that were said together. It tells whether to go on.
func (t *tap) announce(last uint64) bool {
	t.line.source.mu.Lock()
	defer t.line.source.mu.Unlock()
	select {
	case <-t.done:
		return false // who stops sees to it that nobody waits for that version
	default:
		t.line.together = last
		return true
	}
}

// pass passes an event on. It tells whether to go on.
func (t *tap) pass(e watch.Event) bool {
	if e.Type == watch.Error && t.ctx.Err() == nil { // the end of our own asking comes as an error, too
		t.line.note(stageWatch, apierrors.FromObject(e.Object))
	}
	select {
	case <-t.done:
		return false
	case t.out <- e:
		return true
	}
}
