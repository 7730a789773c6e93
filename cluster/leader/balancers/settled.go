// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"slices"

	"fairlead.io/fairlead/fsm/world"
)

// settlement is what the newest plan found to be as it shall be.
type settlement struct {
	pods   []*world.Pod // that it was made from
	owners map[string]*settled
}

// settled is an owner of pods whose every binding is wanted as it is, and that wants nothing else. For as long as it, its
// bindings and its pods stay the same nothing comes of planning it again.
type settled struct {
	meta     *world.Meta
	uses     []use
	edition  uint64 // of what the record has of it
	expected int32
}

// recallSettled finds the owners that are still settled.
func (p *planner) recallSettled() {
	known := p.index.settled
	if len(known.owners) == 0 {
		return
	}
	for _, o := range p.owners {
		s := known.owners[o.id]
		o.settled = s != nil && s.stands(o) && !p.handled[o.id]
		if o.settled {
			o.expected = s.expected
		}
	}
	if slices.Equal(known.pods, p.in.Pods) {
		return
	}
	selectors := p.settledSelectors()
	changedPods(known.pods, p.in.Pods, selectors.unsettle)
}

// stands tells whether an owner is as it was found.
func (s *settled) stands(o *owner) bool {
	same := s.meta == o.meta || s.meta.Version != 0 && s.meta.Version == o.meta.Version // its UID is in its id
	return same && !o.meta.Deleting && s.edition == o.held.edition && slices.EqualFunc(s.uses, o.uses, func(a, b use) bool {
		return a.name == b.name && a.row.ID == b.row.ID && slices.Equal(a.attributes, b.attributes)
	})
}

// rememberSettled keeps what this plan found, and nothing of others: pods change while an owner is not planned.
func (p *planner) rememberSettled() {
	known := &p.index.settled
	owners := make(map[string]*settled, len(p.owners))
	for _, o := range p.owners {
		if o.settled {
			owners[o.id] = &settled{meta: o.meta, uses: o.uses, edition: o.held.edition, expected: o.expected}
		}
	}
	known.owners = owners
	if !slices.Equal(known.pods, p.in.Pods) {
		known.pods = slices.Clone(p.in.Pods)
	}
}

// selectors lead from pods to owners.
type selectors struct {
	// first are owners by a label that all their pods have; there may be more to their selectors.
	first map[label][]*owner
	named map[world.ID][]*owner
}

func (p *planner) settledSelectors() selectors {
	s := selectors{first: map[label][]*owner{}, named: map[world.ID][]*owner{}}
	for _, o := range p.owners {
		pods := o.balancing.Pods
		switch {
		case !o.settled || pods == nil:
		case !pods.ByLabel:
			for _, name := range pods.Names {
				id := world.ID{Namespace: o.meta.Namespace, Name: name}
				s.named[id] = append(s.named[id], o)
			}
		case len(pods.Selector) > 0:
			at := label{o.meta.Namespace, pods.Selector[0]}
			s.first[at] = append(s.first[at], o)
		}
	}
	return s
}

// unsettle has the owners planned that select a pod as it is or was.
func (s selectors) unsettle(pod *world.Pod) {
	for _, o := range s.named[pod.ID] {
		o.settled, o.expected = false, 0
	}
	for _, kv := range pod.Labels {
		for _, o := range s.first[label{pod.Namespace, kv}] {
			if matches(o.balancing.Pods.Selector, pod.Labels) {
				o.settled, o.expected = false, 0
			}
		}
	}
}

// changedPods visits the pods of two lists, both in order, that are not in the other one as they are.
func changedPods(old, now []*world.Pod, visit func(*world.Pod)) {
	for len(old) > 0 && len(now) > 0 {
		a, b := old[0], now[0]
		switch {
		case a == b || a.ID == b.ID && podAlike(a, b):
			old, now = old[1:], now[1:]
		case a.ID.Compare(b.ID) < 0:
			visit(a)
			old = old[1:]
		case a.ID == b.ID:
			visit(a)
			visit(b)
			old, now = old[1:], now[1:]
		default:
			visit(b)
			now = now[1:]
		}
	}
	for _, pod := range slices.Concat(old, now) {
		visit(pod)
	}
}

// podAlike compares by all that is planned from.
func podAlike(a, b *world.Pod) bool {
	if a.Version != 0 && a.Version == b.Version && a.UID == b.UID {
		return true
	}
	return a.UID == b.UID && a.Deleting == b.Deleting && a.IP == b.IP && a.Ready == b.Ready && a.Running == b.Running && slices.Equal(a.Labels, b.Labels)
}
