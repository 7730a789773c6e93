// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"time"

	"fairlead.io/fairlead/sim/event"
)

// s26 holds what members do against what they have applied: one whose folder goes less far, since an older one was put in its place, neither
// follows nor votes, and does not lead. Who got an empty one is another server.
//
// A boot of its machine costs a member what tells it by itself. The others remember: all of them have to have worked undisturbed since.
type s26 struct {
	idle
	*judge
	folders map[string]*folder
}

// folder is what a member had of the log, and what it has.
type folder struct {
	applied uint64        // newest entry, in any life
	at      time.Duration // when that was
	boot    string        // of its machine then
	number  uint64        // of the event that said so
	older   bool          // the folder of the present life goes less far
	last    uint64        // up to there
	began   time.Duration // when the present life did
}

func newS26(j *judge) rule { return &s26{judge: j, folders: map[string]*folder{}} }

func (r *s26) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.Wiped:
		if !x.Old {
			delete(r.folders, x.Machine)
		}
	case event.Applied:
		r.has(x.Process, x.Index, e)
	case event.Restored:
		r.has(x.Process, x.Index, e)
	case event.Holds:
		f := r.of(x.Process)
		f.older, f.last, f.began = x.Last < f.applied, x.Last, e.At
	case event.Leading:
		if x.On {
			r.acts(x.Process, fmt.Sprintf("it leads in term %d", x.Term), e.Number)
		}
	case event.Answered:
		if x.Asked >= r.of(x.From).began {
			r.acts(x.From, "it "+x.Does+" "+x.Process, e.Number)
		}
	}
}

func (r *s26) of(member string) *folder {
	if r.folders[member] == nil {
		r.folders[member] = &folder{}
	}
	return r.folders[member]
}

// has takes in that a member holds entries up to an index.
func (r *s26) has(member string, index uint64, e event.Stamped) {
	if f := r.of(member); index > f.applied {
		f.applied, f.at, f.boot, f.number = index, e.At, r.scene.boots[member], e.Number
	}
}

// acts judges that a member takes part.
func (r *s26) acts(member, what string, number uint64) {
	f := r.of(member)
	r.checked()
	if f.older && (f.boot == r.scene.boots[member] || r.remembered(member, f.at)) {
		r.broken(member, fmt.Sprintf("%s with a folder that goes up to entry %d, and it had applied entry %d", what, f.last, f.applied), f.number, number)
	}
}

// remembered tells whether all others have worked undisturbed since a moment.
func (r *s26) remembered(member string, since time.Duration) bool {
	for _, other := range r.scene.members() {
		if other != member && (r.of(other).began > since || !r.scene.worksFor(other, r.scene.now-since)) {
			return false
		}
	}
	return true
}
