// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"

	"fairlead.io/fairlead/fsm"
)

// s15 is that numbers of redirects, by which hosts and events name them, mean one policy each: no two have the same at a time, a policy
// keeps its own as long as it lives, and none is given to another one while rows of any node are still those of the former.
type s15 struct {
	idle
	*judge
	of     map[uint32]fsm.PolicyID // who had a number last
	number map[string]uint32       // by UID
}

func newS15(j *judge) rule {
	return &s15{judge: j, of: map[uint32]fsm.PolicyID{}, number: map[string]uint32{}}
}

func (r *s15) step(s *step) {
	before := s.before
	if s.replaced {
		before = nil
		clear(r.of)
		clear(r.number)
	}
	if before != nil && !fsm.Differ(before, s.after, fsm.TablePolicies) {
		return
	}
	r.forget(before, s.after)
	have := map[uint32]fsm.PolicyID{}
	for _, d := range fsm.List[*fsm.Policy](s.after, fsm.TablePolicies) {
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
		r.number[d.UID], r.of[d.Number] = d.Number, d.ID
		if known && was != d.Number {
			r.broken("redirect "+string(d.ID), fmt.Sprintf("its number was %d, and is %d", was, d.Number), s.Number)
		}
		if node := r.holds(d.Number); !known && used && last != d.ID && node != "" {
			r.broken(fmt.Sprintf("number %d", d.Number), fmt.Sprintf("%s was given it, and %s still has rows of %s by it", d.ID, node, last), s.Number)
		}
	}
}

// forget ends the lives of policies that the record has no more. One that comes back with the API server's backup, under its former UID, lives anew.
func (r *s15) forget(before, after *fsm.View) {
	if before == nil {
		return
	}
	fsm.Changes(before, after, fsm.TablePolicies, func(was, is *fsm.Policy) {
		if was != nil && (is == nil || is.UID != was.UID) {
			delete(r.number, was.UID)
		}
	})
}

// holds gives a node that has a row by a number, empty for none.
func (r *s15) holds(number uint32) string {
	for _, n := range r.topology.Nodes {
		for _, row := range r.scene.tables(n.Name).rows {
			if row.Way.Rule == number || row.Beyond.Rule == number {
				return n.Name
			}
		}
	}
	return ""
}
