// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm/world"
)

// sliceMemory is what this guard has seen of EndpointSlices. The record keeps the endpoints of a Service, not their
// slices, so that only a guard that saw a slice can tell that it is missing.
type sliceMemory struct {
	of map[world.ID]*served
	// settled: two complete lists were seen, so that no slice is missing that was never seen.
	settled bool
	listed  bool
	lists   uint64        // the first complete list
	ended   time.Duration // and when it was answered
	round   uint64        // counts judgements
}

// served is a Service that had slices.
type served struct {
	// slices are those that it had, as they were seen last, those too that are missing, in order. None are left once the last was let go. There
	// are few of one Service.
	slices []*world.EndpointSlice
	// round is when its recorded endpoints were last judged.
	round uint64
}

// know notes a slice, in place of another one of its name.
func (s *served) know(slice *world.EndpointSlice) {
	if i, known := s.find(slice.ID); known {
		s.slices[i] = slice
	} else {
		s.slices = slices.Insert(s.slices, i, slice)
	}
}

func (s *served) find(id world.ID) (at int, known bool) {
	return slices.BinarySearchFunc(s.slices, id, func(s *world.EndpointSlice, id world.ID) int { return s.ID.Compare(id) })
}

func newSliceMemory() sliceMemory { return sliceMemory{of: map[world.ID]*served{}} }

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
	var last *served
	for i, s := range j.w.EndpointSlices {
		if i == 0 || s.Service() != j.w.EndpointSlices[i-1].Service() {
			if last = m.of[s.Service()]; last == nil {
				last = &served{}
				m.of[s.Service()] = last
			}
		}
		last.know(s)
	}
	for _, d := range j.w.Deleted {
		if d.Kind != world.KindEndpointSlice || d.How != world.ByWatch || m.of[d.Service] == nil {
			continue
		}
		of := m.of[d.Service]
		if i, known := of.find(d.ID); known && (of.slices[i].UID == d.UID || of.slices[i].UID == "" || d.UID == "") {
			of.slices = slices.Delete(of.slices, i, i+1)
		}
	}
}

// settle forgets the slices that a Service lacks. That it may have none is remembered.
func (m *sliceMemory) settle(j *judgement, service world.ID) {
	s := m.of[service]
	if s == nil {
		s = &served{round: m.round}
		m.of[service] = s
	}
	there := j.w.SlicesOf(service)
	s.slices = slices.DeleteFunc(s.slices, func(s *world.EndpointSlice) bool { return !has(there, s.ID) })
}

// prune forgets what Services without recorded endpoints lack: there is nothing to lose.
func (m *sliceMemory) prune(j *judgement) {
	for service, s := range m.of {
		if s.round == m.round {
			continue
		}
		if m.settle(j, service); len(s.slices) == 0 {
			delete(m.of, service)
		}
	}
}

func has(list []*world.EndpointSlice, slice world.ID) bool {
	return slices.ContainsFunc(list, func(s *world.EndpointSlice) bool { return s.ID == slice })
}

// judgeEndpoints decides whether the recorded endpoints of a Service may shrink to what the view lists.
func (j *judgement) judgeEndpoints(s subject) {
	there, known := j.w.SlicesOf(s.ID), j.slices.of[s.ID]
	if known != nil {
		known.round = j.slices.round
	}
	if len(there) == 0 {
		if why := j.joinBehind(s.ID); why != "" {
			delete(j.sightings, s)
			j.wait(s, why)
			j.relist(world.KindEndpointSlice)
			return
		}
	}
	missing, scanned := j.missingSlices(known, there)
	if j.listsNoSlices() && !(missing == "" && known != nil && j.slices.settled) { // else their deletion was seen
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
	case len(there) == 0 && j.slices.settled && known != nil:
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
func (j *judgement) missingSlices(known *served, there []*world.EndpointSlice) (names string, scanned bool) {
	if known == nil || len(known.slices) == len(there) { // all that are there are known
		return "", false
	}
	var missing []string
	scanned = true
	for _, s := range known.slices {
		if has(there, s.ID) {
			continue
		}
		missing = append(missing, s.ID.Name)
		scanned = scanned && j.deletionOf(subject{Kind: world.KindEndpointSlice, ID: s.ID, UID: s.UID}) == world.ByScan
	}
	slices.Sort(missing)
	return strings.Join(missing, " "), scanned
}
