// SPDX-License-Identifier: Apache-2.0

package check

import (
	"time"

	"fairlead.io/fairlead/sim/event"
)

// deceived keeps which members know of Kubernetes nothing but lists that lack something. Members ask by name for what a
// list lacks of what they know (package k8s/informers); one that has started since cannot know what to ask for: the record
// does not name slices. Two such lists a second apart then confirm each other, as design §5 has it, below what is held as a
// mass removal. Nothing else is excused: not who started before, and not what one list says.
type deceived struct {
	lying map[int]bool
	truth time.Duration                       // when the last lie ended
	since map[string]map[string]time.Duration // when a member was shown a list first that lacks something, by kind
}

// twoLists is within what time one list cannot have been confirmed by another.
const twoLists = time.Second

func newDeceived() deceived {
	return deceived{lying: map[int]bool{}, truth: never, since: map[string]map[string]time.Duration{}}
}

func (d *deceived) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.FaultBegan:
		if x.Fault == "kubernetes-partial-lists" {
			d.lying[x.ID] = true
		}
	case event.FaultEnded:
		if d.lying[x.ID] {
			delete(d.lying, x.ID)
			d.truth = e.At
		}
	case event.Started:
		delete(d.since, x.Process)
		if len(d.lying) > 0 {
			d.since[x.Process] = map[string]time.Duration{}
		}
	case event.Viewed:
		shown := d.since[x.Process]
		if _, known := shown[x.Kind]; shown != nil && !known && x.How == "partial" {
			shown[x.Kind] = e.At
		}
	}
}

// is tells whether a member may take for gone what it never saw of a kind: while lists lie, and until it asks again.
func (d *deceived) is(member, kind string, now, retry time.Duration) bool {
	at, shown := d.since[member][kind]
	return shown && now-at >= twoLists && (len(d.lying) > 0 || now-d.truth <= retry)
}
