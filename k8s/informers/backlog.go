// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"fairlead.io/fairlead/fsm/world"
)

// What comes together is over once the watch has said nothing for catchUpQuiet, or after catchUpWithin.
const (
	catchUpQuiet  = 20 * time.Millisecond
	catchUpWithin = time.Second
)

// inBursts tells whether what a watch says is gathered all along, not only at its beginning: after a cut a connection
// may bring at once what it could not bring for long. That costs a moment each time, which endpoints do not have. What
// Nodes say is slow anyway, and who dies is noticed by silence.
func (l *line) inBursts() bool { return l.kind == world.KindNode }

// catchUp gathers what a watch says together. One that is resumed says first, all at once, what happened while nobody
// listened, and what was true in between is true no more: a node that was not ready for a while must not lose its
// addresses now. It tells whether the watch goes on.
func (t *tap) catchUp(first *watch.Event) (late []watch.Event, open bool) {
	b := backlog{newest: map[types.UID]int{}}
	if first != nil {
		b.add(*first)
	}
	end := time.NewTimer(catchUpWithin)
	defer end.Stop()
	quiet := time.NewTimer(catchUpQuiet)
	defer quiet.Stop()
	for {
		select {
		case <-t.done:
			return nil, false
		case <-end.C:
			return b.events(), true
		case <-quiet.C:
			return b.events(), true
		case e, ok := <-t.inner.ResultChan():
			if !ok {
				return b.events(), false
			}
			b.add(e)
			if e.Type == watch.Error {
				return b.events(), true
			}
			quiet.Reset(catchUpQuiet)
		}
	}
}

// backlog is what a watch says together, in order, without states of objects that later ones overtake. How an object
// ended, and what it was before, all stays: that is evidence.
type backlog struct {
	all    []watch.Event
	newest map[types.UID]int // where the newest state of an object is
}

func (b *backlog) add(e watch.Event) {
	b.all = append(b.all, e)
	o, err := meta.Accessor(e.Object)
	if err != nil {
		return // of an error
	}
	uid := o.GetUID()
	switch e.Type {
	case watch.Added, watch.Modified:
		if i, known := b.newest[uid]; known && uid != "" {
			b.all[i].Type = "" // overtaken
		}
		b.newest[uid] = len(b.all) - 1
	case watch.Deleted:
		delete(b.newest, uid)
	}
}

func (b *backlog) events() (out []watch.Event) {
	for _, e := range b.all {
		if e.Type != "" {
			out = append(out, e)
		}
	}
	return out
}

// lastVersion is the version of the last of several events; 0 if that cannot be told.
func lastVersion(events []watch.Event) (last uint64) {
	for _, e := range events {
		if o, err := meta.Accessor(e.Object); err == nil { // not of an error
			v, _ := parseVersion(o.GetResourceVersion())
			last = max(last, v)
		}
	}
	return last
}
