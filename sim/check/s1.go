// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"fmt"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
)

// s1 compares members with each other and with the native replica: the same entry and the same digest at the same
// index, and no member going back within a life. While a release of the group cannot read something, nothing of it is
// agreed on; once the group has agreed to, that release applies nothing any more.
type s1 struct {
	idle
	*judge
	epochs map[string]fsm.Epoch // of the record that a member was last seen to hold
	older  map[string]bool      // who is of the older release
}

func newS1(j *judge) rule {
	return &s1{judge: j, epochs: map[string]fsm.Epoch{}, older: map[string]bool{}}
}

func (r *s1) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.Started:
		r.older[x.Process] = x.Release == start.Older
	case event.Applied:
		r.applied(e.Number, x)
	case event.Restored:
		r.restored(e.Number, x)
	}
	if r.record.broken != "" {
		r.broken("record", "the native replica cannot follow: "+r.record.broken, e.Number)
	}
}

func (r *s1) applied(number uint64, x event.Applied) {
	is := r.record.past[fsm.Index(x.Index)]
	subject := fmt.Sprintf("%s at index %d", x.Process, x.Index)
	switch {
	case is == nil && fsm.Index(x.Index) <= r.record.View().Applied() && r.inWindow(x.Index):
		r.broken(subject, "it applied an entry where the group has none", number)
		return
	case is == nil:
		return // older than what is remembered, or the replica is broken
	case is.epoch > r.epochs[x.Process] && r.epochs[x.Process] != 0 && !bytes.Equal(is.data, x.Entry) && !opensEpoch(x.Entry, r.epochs[x.Process]):
		return // of a life of the group that ended
	}
	r.epochs[x.Process] = is.epoch
	r.checked()
	r.readable(x.Process, is, number)
	switch {
	case !bytes.Equal(is.data, x.Entry):
		r.broken(subject, "its entry is another one than that of the members before it", is.number, number)
	case is.digest != x.Digest && !r.scene.stray[x.Process]: // S28
		r.broken(subject, fmt.Sprintf("its digest is %s, replayed natively it is %s", x.Digest, is.digest), is.number, number)
	}
}

func (r *s1) inWindow(index uint64) bool {
	return len(r.record.order) > 0 && r.record.order[0] <= fsm.Index(index)
}

func (r *s1) restored(number uint64, x event.Restored) {
	is := r.record.upto(fsm.Index(x.Index))
	if is == nil {
		return
	}
	r.checked()
	r.epochs[x.Process] = is.epoch
	r.readable(x.Process, is, number)
	if is.digest != x.Digest && !r.scene.stray[x.Process] {
		r.broken(fmt.Sprintf("%s at index %d", x.Process, x.Index),
			fmt.Sprintf("its snapshot's digest is %s, replayed natively it is %s", x.Digest, is.digest), is.number, number)
	}
}
