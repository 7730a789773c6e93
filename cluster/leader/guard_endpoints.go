// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm/world"
)

// sliceMemory is what this guard has seen of EndpointSlices. The record keeps the endpoints of a Service, not their
// slices, so that only a guard that saw a slice can tell that it is missing.
type sliceMemory struct {
	// there are the slices of the newest view, in order: its own list, since there are very many, and few of them are ever missing.
	there []*world.EndpointSlice
	// lacking are the Services that had slices which are not there, and those that had some, or may have none, and have none.
	lacking map[world.ID]*missed
	// settled: two complete lists were seen, so that no slice is missing that was never seen.
	settled bool
	listed  bool
	lists   uint64        // the first complete list
	ended   time.Duration // and when it was answered
	round   uint64        // counts judgements
}

// missed is a Service that is known by more than the slices that are there.
type missed struct {
	// missing are slices that it had and that are not there, as they were seen last, in order. None are left once the last was let go. There
	// are few of one Service.
	missing []*world.EndpointSlice
	// round is when its recorded endpoints were last judged.
	round uint64
}

// miss notes a slice that is not there, in place of another one of its name.
func (l *missed) miss(slice *world.EndpointSlice) {
	if i, known := l.find(slice.ID); known {
		l.missing[i] = slice
	} else {
		l.missing = slices.Insert(l.missing, i, slice)
	}
}

func (l *missed) find(id world.ID) (at int, known bool) {
	return slices.BinarySearchFunc(l.missing, id, func(s *world.EndpointSlice, id world.ID) int { return s.ID.Compare(id) })
}

func newSliceMemory() sliceMemory { return sliceMemory{lacking: map[world.ID]*missed{}} }

// rememberSlices takes in the slices of the view, and forgets those that were seen to be deleted.
func (j *judgement) rememberSlices() {
	m := &j.slices
	m.round++
	view, yielded := j.views[world.KindEndpointSlice]
	if yielded && view.Complete {
		began := j.now - view.ListAge
		if !m.listed {
			m.listed, m.lists, m.ended = true, view.Lists, j.now-view.ListedAge
		}
		m.settled = m.settled || view.Lists != m.lists && began-m.ended >= j.limits.Confirm
	}
	m.see(j.w.EndpointSlices)
	for _, d := range j.w.Deleted {
		l := m.lacking[d.Service]
		if d.Kind != world.KindEndpointSlice || d.How != world.ByWatch || l == nil {
			continue
		}
		if i, known := l.find(d.ID); known && (l.missing[i].UID == d.UID || l.missing[i].UID == "" || d.UID == "") {
			l.missing = slices.Delete(l.missing, i, i+1)
		}
	}
	for service, l := range m.lacking {
		there := j.w.SlicesOf(service)
		l.missing = slices.DeleteFunc(l.missing, func(s *world.EndpointSlice) bool { return has(there, s.ID) })
		if len(l.missing) == 0 && len(there) > 0 {
			delete(m.lacking, service)
		}
	}
}

// see takes in which slices are there, and misses those that were and are no more.
func (m *sliceMemory) see(now []*world.EndpointSlice) {
	was := m.there
	m.there = now
	for len(was) > 0 {
		order := -1
		switch {
		case len(now) == 0:
		case was[0] == now[0]: // as almost all of them
			order = 0
		default:
			order = cmp.Or(was[0].Service().Compare(now[0].Service()), was[0].ID.Compare(now[0].ID))
		}
		if order < 0 {
			m.lack(was[0].Service()).miss(was[0])
		}
		if order <= 0 {
			was = was[1:]
		}
		if order >= 0 {
			now = now[1:]
		}
	}
}

func (m *sliceMemory) lack(service world.ID) *missed {
	l := m.lacking[service]
	if l == nil {
		l = &missed{}
		m.lacking[service] = l
	}
	return l
}

// settle forgets the slices that a Service lacks. That it may have none is remembered.
func (m *sliceMemory) settle(j *judgement, service world.ID) {
	delete(m.lacking, service)
	if len(j.w.SlicesOf(service)) == 0 {
		m.lack(service).round = m.round
	}
}

// prune forgets what Services without recorded endpoints lack: there is nothing to lose.
func (m *sliceMemory) prune() {
	maps.DeleteFunc(m.lacking, func(_ world.ID, l *missed) bool { return l.round != m.round })
}

func has(list []*world.EndpointSlice, slice world.ID) bool {
	return slices.ContainsFunc(list, func(s *world.EndpointSlice) bool { return s.ID == slice })
}

// judgeEndpoints decides whether the recorded endpoints of a Service may shrink to what the view lists.
func (j *judgement) judgeEndpoints(s subject) {
	there, lacks := j.w.SlicesOf(s.ID), j.slices.lacking[s.ID]
	if lacks != nil {
		lacks.round = j.slices.round
	}
	known := lacks != nil || len(there) > 0
	if len(there) == 0 {
		if why := j.joinBehind(s.ID); why != "" {
			delete(j.sightings, s)
			j.wait(s, why)
			j.relist(world.KindEndpointSlice)
			return
		}
	}
	missing, scanned := j.missingSlices(lacks)
	if j.listsNoSlices() && !(missing == "" && known && j.slices.settled) { // else their deletion was seen
		delete(j.sightings, s)
		j.wait(s, "the cluster lists no EndpointSlice at all, as no cluster does")
		j.relist(world.KindEndpointSlice)
		return
	}
	switch {
	case missing != "" && scanned && j.slices.settled:
		delete(j.sightings, s)
		j.absent[s] = bySight
	case missing != "":
		j.sight(s, missing)
	case len(there) == 0 && j.slices.settled && known:
		j.grantDeletion(s, "the deletion of its slices was seen")
	case len(there) == 0:
		j.sight(s, "all")
	case !j.slices.settled:
		delete(j.sightings, s)
		j.wait(s, "a second complete list must show that no slice is missing")
		j.relist(world.KindEndpointSlice)
		j.again(j.limits.Confirm)
	default:
		j.seen(s)
	}
}

// listsNoSlices tells whether a whole cluster shows not one slice, not even the API server's own. However often it says
// so, the absence of all is no evidence for the absence of one.
func (j *judgement) listsNoSlices() bool { return j.w.WholeCluster && len(j.w.EndpointSlices) == 0 }

// joinBehind says why a Service without slices cannot be told to have none yet: it was seen at a version that the
// slices have not reached.
func (j *judgement) joinBehind(service world.ID) string {
	i, ok := slices.BinarySearchFunc(j.w.Services, service, func(s *world.Service, id world.ID) int { return s.ID.Compare(id) })
	if !ok {
		return ""
	}
	view := j.views[world.KindEndpointSlice]
	if at := j.w.Services[i].Version; at != 0 && view.Version != 0 && view.Version < at {
		return fmt.Sprintf("the Service is at version %d and its slices are seen up to %d", at, view.Version)
	}
	return ""
}

// missingSlices names the slices of a Service that were seen and are not there, and tells whether all of them were
// seen to go by a polled source.
func (j *judgement) missingSlices(lacks *missed) (names string, scanned bool) {
	if lacks == nil || len(lacks.missing) == 0 {
		return "", false
	}
	var missing []string
	scanned = true
	for _, s := range lacks.missing {
		missing = append(missing, s.ID.Name)
		scanned = scanned && j.deletionOf(subject{Kind: world.KindEndpointSlice, ID: s.ID, UID: s.UID}) == world.ByScan
	}
	slices.Sort(missing)
	return strings.Join(missing, " "), scanned
}
