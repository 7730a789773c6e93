// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// s13 keeps the newest revision that each node acted on, over all lives of its agent: one without state is
// told what is committed. Only a disk as it was once has it say less than it did.
type s13 struct {
	idle
	*judge
	newest map[string]acted
}

type acted struct {
	revision fsm.Revision
	number   uint64
}

func newS13(j *judge) rule { return &s13{judge: j, newest: map[string]acted{}} }

func (r *s13) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.Wiped:
		if x.Old {
			delete(r.newest, x.Machine)
		}
	case event.Acted:
		r.checked()
		old := r.newest[x.Process]
		if x.Revision.Before(old.revision) {
			r.broken(x.Process, fmt.Sprintf("it acted on %s after %s", x.Revision, old.revision), old.number, e.Number)
			return
		}
		r.newest[x.Process] = acted{x.Revision, e.Number}
	}
}
