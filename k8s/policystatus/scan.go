// SPDX-License-Identifier: Apache-2.0

package policystatus

import "fairlead.io/fairlead/fsm"

// scan names the policies for which Project or tell may say something else of the newer of two views of the record. All means every one.
func scan(before, now *fsm.View) (concerned map[fsm.PolicyID]bool, all bool) {
	if before == nil || before.Group().Format != now.Group().Format {
		return nil, true
	}
	out := map[fsm.PolicyID]bool{}
	fsm.Changes(before, now, fsm.TablePolicies, func(old, new *fsm.Policy) {
		if new != nil {
			out[new.ID] = true
		} else {
			out[old.ID] = true
		}
	})
	marks := marksThatMoved(before, now)
	if len(marks) == 0 {
		return out, false
	}
	oldest := marks[0].before
	for _, m := range marks {
		oldest = earlier(oldest, earlier(m.before, m.now))
	}
	for _, r := range fsm.List[*fsm.Policy](now, fsm.TablePolicies) {
		if r.Since.Before(oldest) && !marks.anew() {
			continue // everybody had it before, and has it now
		}
		for _, m := range marks {
			if m.counts(r) {
				out[r.ID] = true
				break
			}
		}
	}
	return out, false
}

// mark is what a node has acknowledged, before and now.
type mark struct {
	node        fsm.NodeID
	before, now fsm.Revision
	anew        bool // whether it carries policies out changed
}

type marks []mark

// anew tells whether it changed of any node whether it carries policies out.
func (m marks) anew() bool {
	for _, one := range m {
		if one.anew {
			return true
		}
	}
	return false
}

// counts tells whether a mark says another thing of a policy than before.
func (m mark) counts(r *fsm.Policy) bool {
	return (m.anew || m.before.Before(r.Since) != m.now.Before(r.Since)) && r.EffectiveOn(m.node)
}

func marksThatMoved(before, now *fsm.View) (out marks) {
	fsm.Changes(before, now, fsm.TableNodes, func(old, new *fsm.Node) {
		was, is := old != nil && old.Redirects, new != nil && new.Redirects
		m := mark{anew: was != is}
		if old != nil {
			m.node, m.before = old.ID, old.Acknowledged
		}
		if new != nil {
			m.node, m.now = new.ID, new.Acknowledged
		}
		if m.anew || is && m.before != m.now {
			out = append(out, m)
		}
	})
	return out
}

func earlier(a, b fsm.Revision) fsm.Revision {
	if b.Before(a) {
		return b
	}
	return a
}
