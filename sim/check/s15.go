// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"

	"fairlead.io/fairlead/fsm"
)

// s15 is that numbers of redirects, by which hosts and events name them, mean one policy each: no two have the same at a time, a policy
// keeps its own as long as it lives, and a number that nobody atSockets for is one that no other policy had before. What a record that was replaced had
// given is forgotten with it.
type s15 struct {
	idle
	*judge
	of     map[uint32]string // the UID of who had a number last
	number map[string]uint32 // by UID
}

func newS15(j *judge) rule {
	return &s15{judge: j, of: map[uint32]string{}, number: map[string]uint32{}}
}

func (r *s15) step(s *step) {
	before := s.before
	if s.replaced {
		before = nil
		clear(r.of)
		clear(r.number)
	}
	if before != nil && !fsm.Differ(before, s.after, fsm.TableRedirects) {
		return
	}
	have := map[uint32]fsm.RedirectID{}
	for _, d := range fsm.List[*fsm.Redirect](s.after, fsm.TableRedirects) {
		r.checked()
		other, taken := have[d.Number]
		have[d.Number] = d.ID
		switch {
		case d.Number == 0:
			r.broken("redirect "+string(d.ID), "its number is 0", s.Number)
		case taken:
			r.broken(fmt.Sprintf("number %d", d.Number), fmt.Sprintf("%s and %s have it", other, d.ID), s.Number)
		}
		was, known := r.number[d.UID]
		last, used := r.of[d.Number]
		r.number[d.UID], r.of[d.Number] = d.Number, d.UID
		if known && was != d.Number {
			r.broken("redirect "+string(d.ID), fmt.Sprintf("its number was %d, and is %d", was, d.Number), s.Number)
		}
		if !known && used && last != d.UID && !r.atSockets.asksFor(d.UID, d.Number) {
			r.broken(fmt.Sprintf("number %d", d.Number), fmt.Sprintf("%s was given it, which another policy had before", d.ID), s.Number)
		}
	}
}
