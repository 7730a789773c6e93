// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"time"

	"fairlead.io/fairlead/sim/event"
)

// s24 bounds the snapshots that a leader sends a member while nobody disturbs either. One is enough for whoever lacks what the log has no more:
// more than mostSnapshots a minute are sent to one that comes to nothing by them.
type s24 struct {
	idle
	*judge
	sent map[pair][]sending
}

type sending struct {
	at     time.Duration
	number uint64
}

// mostSnapshots is how many a member may be sent in snapshotsWithin. A group in a world makes one every few seconds at most, and a member may have
// to be sent the next one while it reads the last.
const (
	mostSnapshots   = 6
	snapshotsWithin = time.Minute
)

func newS24(j *judge) rule { return &s24{judge: j, sent: map[pair][]sending{}} }

func (r *s24) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.Ended:
		r.anew(x.Process)
	case event.FaultBegan:
		for _, name := range x.On {
			r.anew(name)
		}
	case event.Sends:
		key := pair{x.Process, x.To}
		if !r.scene.worksFor(x.Process, 0) || !r.scene.worksFor(x.To, 0) {
			return
		}
		all := append(r.sent[key], sending{e.At, e.Number})
		for len(all) > 0 && e.At-all[0].at > snapshotsWithin {
			all = all[1:]
		}
		r.sent[key] = all
		r.checked()
		if len(all) > mostSnapshots {
			r.broken(x.To, fmt.Sprintf("%s has sent it %d snapshots within %s", x.Process, len(all), e.At-all[0].at), all[0].number, e.Number)
		}
	}
}

// anew forgets what somebody sent and was sent: what follows is for who begins anew.
func (r *s24) anew(name string) {
	for key := range r.sent {
		if key.by == name || key.of == name {
			delete(r.sent, key)
		}
	}
}
