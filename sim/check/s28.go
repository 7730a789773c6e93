// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
)

// s28 holds members whose copies of the record are other ones than the group's against what they do: one whose copy had something else applied to it,
// or in whose memory a bit flipped, ends by itself within strayFor, as long as all others work undisturbed, whoever leads. Of the others none does.
// Who ended with another record does not begin again on its folder.
type s28 struct {
	idle
	*judge
	strays map[string]*stray
}

// stray is a member whose copy is another one.
type stray struct {
	at     time.Duration
	number uint64
	disk   bool // its folder may be another one, too
	ended  bool // by itself
}

// strayFor is how long a member may take part with another record: both leaders' comparisons and members' own look at what they hold come once a minute.
const strayFor = 75 * time.Second

func newS28(j *judge) rule { return &s28{judge: j, strays: map[string]*stray{}} }

func (r *s28) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.Applied:
		r.goesOn(x.Process, e.Number)
		r.applied(x, e)
	case event.Restored:
		r.goesOn(x.Process, e.Number)
	case event.Ended:
		r.ends(x, e.Number)
	case event.Wiped:
		delete(r.strays, x.Machine)
	}
}

// applied takes in an entry by which a member's copy becomes another one.
func (r *s28) applied(x event.Applied, e event.Stamped) {
	if !r.scene.stray[x.Process] || r.strays[x.Process] != nil {
		return
	}
	_, proposals, err := fsm.DecodeEntry(x.Entry)
	if err != nil {
		return
	}
	for _, p := range proposals {
		put, ok := p.Command.(*fsm.PutRegister)
		if !ok {
			continue
		}
		for _, prefix := range []string{start.OtherRecord, start.FlippedBit} {
			if name, ok := strings.CutPrefix(string(put.ID), prefix); ok && name == x.Process {
				r.checked()
				r.strays[name] = &stray{at: e.At, number: e.Number, disk: prefix == start.OtherRecord}
			}
		}
	}
}

// goesOn judges that a member applies something.
func (r *s28) goesOn(member string, number uint64) {
	if s := r.strays[member]; s != nil && s.ended && s.disk {
		r.broken(member, "it ended with another record than the group's, and began again on its folder", s.number, number)
	}
}

func (r *s28) ends(x event.Ended, number uint64) {
	s := r.strays[x.Process]
	switch {
	case s != nil && x.Killed:
		delete(r.strays, x.Process) // whatever it holds next it read anew
	case s != nil:
		s.ended = true
	case !x.Killed && len(r.strays) > 0 && r.scene.unexcused(x.Process):
		r.broken(x.Process, "it ended by itself, and another one has another record than the group's", number)
	}
}

func (r *s28) tick() {
	for _, member := range sortedKeys(r.strays) {
		if s := r.strays[member]; !s.ended && r.scene.now-s.at > strayFor && r.alone(member) {
			r.broken(member, fmt.Sprintf("its record is another one than the group's since %s, and it goes on", s.at), s.number)
		}
	}
}

// alone tells whether all other members have worked undisturbed for strayFor.
func (r *s28) alone(member string) bool {
	for _, other := range r.scene.members() {
		if other != member && !r.scene.worksFor(other, strayFor) {
			return false
		}
	}
	return true
}
