// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// s19 holds which pods a policy leaves alone that spares its own backends: where it is effective, those that it has on the node, by the record, and nowhere
// any others. That counts once the node acknowledged it, and the pod has sockets, for as long as it takes to look around; and while nothing befell the node but that it was cut
// off. A row of such a policy says that it spares pods, others do not; what it leaves alone it leads not to itself.
type s19 struct {
	idle
	*judge
	probers
	// sparing is as of when policies spare their backends, or do not, by their number; has are the pods that they have, want those of them where they are
	// effective, and left those that they had.
	sparing    map[uint32]sparing
	has        map[sparedPod]bool
	want, left map[sparedPod]fsm.Revision
	there      map[string]podsThere // by node
	// wrong is since when a pod is spared that shall not be, or the other way round.
	wrong  overdue
	forgot bool // the record became another one: what that one had, nobody knows
	last   time.Duration
}

// sparing is whether a policy spares its backends, as of a revision.
type sparing struct {
	yes bool
	as  fsm.Revision
}

// sparedPod is a pod on a node that a policy leaves alone.
type sparedPod struct {
	node, pod string
	rule      uint32
}

func (p sparedPod) String() string {
	return fmt.Sprintf("pod %s on %s, of policy %d", p.pod, p.node, p.rule)
}

// podsThere are the pods that have sockets on a node, and who leaves them alone, with the event that said so.
type podsThere struct {
	boot   string
	pods   map[string]bool
	own    map[sparedPod]bool
	number uint64
}

// aroundLooked is how long it takes to look around, once a second, and to carry out what is found.
const aroundLooked = 3 * time.Second

func newS19(j *judge) rule {
	return &s19{judge: j, probers: newProbers(j), sparing: map[uint32]sparing{}, has: map[sparedPod]bool{}, want: map[sparedPod]fsm.Revision{}, left: map[sparedPod]fsm.Revision{},
		there: map[string]podsThere{}, wrong: newOverdue()}
}

func (r *s19) hear(e event.Stamped) {
	r.probers.hear(e)
	switch x := e.Event.(type) {
	case event.Spares:
		now := podsThere{x.Boot, map[string]bool{}, map[sparedPod]bool{}, e.Number}
		for _, pod := range x.Pods {
			now.pods[pod] = true
		}
		for _, text := range x.Own {
			p := sparedPod{node: x.Node}
			_, _ = fmt.Sscan(text, &p.pod, &p.rule) // the model wrote it
			now.own[p] = true
		}
		r.there[x.Node] = now
	case event.MachineDown:
		delete(r.there, x.Machine)
	}
}

func (r *s19) step(s *step) {
	r.probers.step(s)
	before := s.before
	if s.replaced {
		before, r.forgot = nil, true
		clear(r.sparing)
		clear(r.has)
		clear(r.want)
		clear(r.left)
	}
	fsm.Changes(before, s.after, fsm.TablePolicies, func(was, is *fsm.Policy) {
		at := s.after.Revision()
		had := sparedBy(was)
		if is != nil {
			if now := r.sparing[is.Number]; was == nil || was.Number != is.Number || now.yes != is.SpareOwn {
				r.sparing[is.Number] = sparing{is.SpareOwn, at}
			}
			for p, effective := range sparedBy(is) {
				r.has[p] = true
				if !effective {
					delete(r.want, p)
				} else if r.want[p].IsZero() {
					r.want[p] = at
				}
				delete(had, p)
				delete(r.left, p)
			}
		}
		for p := range had {
			delete(r.has, p)
			delete(r.want, p)
			r.left[p] = at
		}
	})
}

// sparedBy are the pods that a policy has and spares, and whether it is effective on their node: who captures nothing is so nowhere.
func sparedBy(d *fsm.Policy) map[sparedPod]bool {
	out := map[sparedPod]bool{}
	if d == nil || !d.SpareOwn {
		return out
	}
	for _, b := range d.Backends {
		if b.Pod != "" {
			out[sparedPod{string(b.Node), b.Pod, d.Number}] = d.EffectiveOn(b.Node) && len(d.Captures) > 0
		}
	}
	return out
}

func (r *s19) tick() {
	if !r.topology.Sockets.Policies || r.scene.now-r.last < lookedAt {
		return
	}
	r.last = r.scene.now
	v := r.record.View()
	now := map[string]bool{}
	for _, n := range r.topology.Nodes {
		if !r.works(n.Name, aroundLooked) {
			continue
		}
		r.rows(v, n.Name)
		there := r.there[n.Name]
		if there.boot != r.scene.boots[n.Name] {
			continue
		}
		for p, as := range r.want {
			if p.node == n.Name && there.pods[p.pod] && !there.own[p] && r.acknowledged(v, n.Name, as) {
				now[p.String()] = true
				r.wrong.note(p.String(), true, r.scene.now, "it is a backend, and not left alone", there.number)
			}
		}
		for p := range there.own {
			if as, was := r.left[p]; !r.has[p] && (was && r.acknowledged(v, n.Name, as) || !was && !r.forgot) {
				now[p.String()] = true
				r.wrong.note(p.String(), true, r.scene.now, "it is no backend, and left alone", there.number)
			}
		}
	}
	maps.DeleteFunc(r.wrong.since, func(key string, _ wrong) bool { return !now[key] })
	for _, key := range r.wrong.over(r.scene.now, aroundLooked) {
		r.broken(key, fmt.Sprintf("since %s: %s", r.wrong.since[key].at, r.wrong.since[key].why), r.wrong.since[key].event)
	}
}

// rows judges whom the rows of a node spare.
func (r *s19) rows(v *fsm.View, node string) {
	tables := r.scene.tables(node)
	for _, at := range tables.places() {
		row := tables.rows[at]
		of, known := r.sparing[row.Way.Rule]
		if !known || row.Way.Verdict != "use" || !r.acknowledged(v, node, of.as) {
			continue
		}
		r.checked()
		subject := fmt.Sprintf("calls on %s to %s", node, at)
		switch {
		case row.Way.Spares != of.yes:
			r.broken(subject, fmt.Sprintf("policy %d spares its backends: %v, and the row says: %v", row.Way.Rule, of.yes, row.Way.Spares), row.number)
		case of.yes && row.Beyond.Rule == row.Way.Rule && row.Beyond.Verdict == "use":
			r.broken(subject, fmt.Sprintf("pods that policy %d leaves alone are led to %s, by the same", row.Way.Rule, strings.Join(slices.Compact(row.Beyond.Backends), ", ")), row.number)
		}
	}
}
